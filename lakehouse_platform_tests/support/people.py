"""Users in every role, made the way users are made, and what the audit log says of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lakehouse_platform.model.actors import Actor, Role, SubscriptionTier

if TYPE_CHECKING:
    from lakehouse_platform.identity.users import UserRecord
    from lakehouse_platform.services.accounts import AuthActor
    from lakehouse_platform.store.delta_store import DeltaStore

PASSWORD = "a long and winding passphrase"
OTHER_PASSWORD = "another passphrase of some length"


def user(
    auth: AuthActor,
    name: str,
    role: Role = Role.USER,
    tier: SubscriptionTier = SubscriptionTier.ENTERPRISE,
) -> UserRecord:
    """Make an active user."""
    made = auth.register(name, f"{name}@example.com", PASSWORD, tier)
    auth.approve(made.user_id)
    return auth.change_role(made.user_id, role)


def signed_in(
    auth: AuthActor,
    name: str,
    role: Role = Role.USER,
    tier: SubscriptionTier = SubscriptionTier.ENTERPRISE,
) -> Actor:
    """Make an active user and return the actor of a sign-in."""
    user(auth, name, role, tier)
    return auth.authenticate(auth.login(name, PASSWORD))


def entries(auth: AuthActor, store: DeltaStore) -> list[dict[str, Any]]:
    """Return everything in the audit log, in the order of the chain."""
    auth.audit.flush()
    return sorted(store.scan("audit_log").to_pylist(), key=lambda row: row["sequence"])


def actions(auth: AuthActor, store: DeltaStore) -> list[tuple[str, str]]:
    """Return action and outcome of everything in the audit log."""
    return [(row["action"], row["outcome"]) for row in entries(auth, store)]
