"""Every operation on accounts × everybody who could ask: what the matrix allows is done, all else is denied."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from argon2 import PasswordHasher

from lakehouse_platform.audit.entries import AuditEntry
from lakehouse_platform.errors import InvalidArgumentError, PermissionDeniedError
from lakehouse_platform.identity.passwords import Passwords
from lakehouse_platform.identity.permissions import MATRIX, RULES, Permission, Right
from lakehouse_platform.identity.users import UserRecord
from lakehouse_platform.model.actions import ActionType
from lakehouse_platform.model.actors import ANONYMOUS, OWNER, Actor, Role, SubscriptionTier
from lakehouse_platform.services.accounts import AuthActor
from lakehouse_platform.services.audit_access import AuditAccess
from lakehouse_platform.services.sign_ins import Tokens
from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform_tests.support.people import OTHER_PASSWORD, PASSWORD, signed_in, user

P = Permission
# They check tokens: they are asked by nobody yet, and tell who asks.
AUTHENTICATION = {"verify", "authenticate", "authenticate_key", "admit_ticket"}
# They do nothing for anybody.
NO_OPERATIONS = {"close"}


@dataclass(frozen=True)
class Victim:
    """The ordinary user that is acted upon, fresh for each step."""

    record: UserRecord
    tokens: Tokens | None = None

    @property
    def id(self) -> str:
        return self.record.user_id


Step = Callable[[AuthActor, Victim, Actor], Any]
Accounts = tuple[AuthActor, dict[str, Actor]]


@dataclass(frozen=True)
class Walk:
    """One operation on another person's account: what it needs, and the state it is done in."""

    permission: Permission
    call: Step
    state: str = "active"


WALKS: Mapping[str, Walk] = {
    "register": Walk(P.REGISTER, lambda a, v, by: a.register(f"new-{v.record.username}", f"new{v.record.email}",
                                                             PASSWORD, actor=by)),
    "bootstrap": Walk(P.BOOTSTRAP, lambda a, v, by: a.bootstrap("root", "root@example.com", PASSWORD, actor=by)),
    "login": Walk(P.LOGIN, lambda a, v, by: a.login(v.record.username, PASSWORD, actor=by)),
    "refresh": Walk(P.REFRESH, lambda a, v, by: a.refresh(str(v.tokens.refresh_token), actor=by), "signed in"),
    "logout": Walk(P.LOGOUT, lambda a, v, by: a.logout(v.tokens, actor=by), "signed in"),
    "logout_everywhere": Walk(P.MANAGE_SESSIONS, lambda a, v, by: a.logout_everywhere(v.id, actor=by)),
    "change_password": Walk(P.SET_PASSWORD, lambda a, v, by: a.change_password(v.id, PASSWORD, OTHER_PASSWORD,
                                                                               actor=by)),
    "set_password": Walk(P.SET_PASSWORD, lambda a, v, by: a.set_password(v.id, OTHER_PASSWORD, actor=by)),
    "user": Walk(P.SEE_USERS, lambda a, v, by: a.user(v.id, actor=by)),
    "sessions": Walk(P.SEE_USERS, lambda a, v, by: a.sessions(v.id, actor=by)),
    "usage": Walk(P.SEE_USERS, lambda a, v, by: a.usage(v.id, actor=by)),
    "grants": Walk(P.SEE_USERS, lambda a, v, by: a.grants(v.id, actor=by)),
    "revoke_session": Walk(P.MANAGE_SESSIONS, lambda a, v, by: a.revoke_session(v.tokens.session_id, actor=by),
                           "signed in"),
    "mount_ticket": Walk(P.MOUNT, lambda a, v, by: a.mount_ticket(by)),
    "users": Walk(P.SEE_USERS, lambda a, v, by: a.users(actor=by)),
    "pending": Walk(P.SEE_USERS, lambda a, v, by: a.pending(actor=by)),
    "approve": Walk(P.APPROVE_USER, lambda a, v, by: a.approve(v.id, actor=by), "pending"),
    "reject": Walk(P.APPROVE_USER, lambda a, v, by: a.reject(v.id, actor=by), "pending"),
    "disable": Walk(P.DISABLE_USER, lambda a, v, by: a.disable(v.id, actor=by)),
    "enable": Walk(P.DISABLE_USER, lambda a, v, by: a.enable(v.id, actor=by), "disabled"),
    "change_role": Walk(P.CHANGE_ROLE, lambda a, v, by: a.change_role(v.id, Role.ADMIN, actor=by)),
    "change_tier": Walk(P.CHANGE_TIER, lambda a, v, by: a.change_tier(v.id, SubscriptionTier.PRO, actor=by)),
    "reset_usage": Walk(P.CHANGE_LIMITS, lambda a, v, by: a.reset_usage(v.id, actor=by)),
    "override_limits": Walk(P.CHANGE_LIMITS, lambda a, v, by: a.override_limits(v.id, 1, 2, actor=by)),
    "follow_tier": Walk(P.CHANGE_LIMITS, lambda a, v, by: a.follow_tier(v.id, actor=by)),
    "grant": Walk(P.CHANGE_GRANTS, lambda a, v, by: a.grant(v.id, "rides", Right.READ, actor=by)),
    "revoke_grant": Walk(P.CHANGE_GRANTS, lambda a, v, by: a.revoke_grant(v.id, "rides", actor=by)),
    "create_service_account": Walk(P.MAKE_SERVICE_ACCOUNT, lambda a, v, by: a.create_service_account(
        f"for-{v.record.username}", actor=by)),
    "service_accounts": Walk(P.SEE_USERS, lambda a, v, by: a.service_accounts(actor=by)),
    "create_api_key": Walk(P.MANAGE_KEYS, lambda a, v, by: a.create_api_key(v.id, "new", actor=by), "program"),
    "list_api_keys": Walk(P.SEE_USERS, lambda a, v, by: a.list_api_keys(v.id, actor=by), "program"),
    "revoke_api_key": Walk(P.MANAGE_KEYS, lambda a, v, by: a.revoke_api_key(v.id, "0" * 16, actor=by), "program"),
}  # fmt: skip
# What a user may do to the own account although the permission for other people's is missing.
OWN: Mapping[str, Step] = {
    "user": lambda a, v, by: a.user(v.id, actor=by),
    "sessions": lambda a, v, by: a.sessions(v.id, actor=by),
    "usage": lambda a, v, by: a.usage(v.id, actor=by),
    "grants": lambda a, v, by: a.grants(v.id, actor=by),
    "change_password": lambda a, v, by: a.change_password(v.id, PASSWORD, OTHER_PASSWORD, actor=by),
    "revoke_session": lambda a, v, by: a.revoke_session(str(by.session_id), actor=by),
    "logout_everywhere": lambda a, v, by: a.logout_everywhere(v.id, actor=by),
    "list_api_keys": lambda a, v, by: a.list_api_keys(v.id, actor=by),
}
# They leave their victim as it was, as every denied one does: then one user serves for all.
READING = {
    "user",
    "sessions",
    "usage",
    "grants",
    "users",
    "pending",
    "mount_ticket",
    "service_accounts",
    "list_api_keys",
}
# Programs: a user's, that of a superadmin with a key for tables, and one with a key for everything.
KEYS = {
    "user's key": (Role.USER, "maintain:*"),
    "superadmin's key": (Role.SUPERADMIN, "maintain:*"),
    "mightiest key": (Role.SUPERADMIN, "maintain:* admin"),
}
CALLERS = ["owner", "anonymous", *Role, *KEYS]


@pytest.fixture(scope="module")
def quick() -> Iterator[Passwords]:
    with Passwords(hasher=PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)) as passwords:
        yield passwords


@pytest.fixture(scope="module")
def shared() -> dict[str, Victim]:
    """The users that serve for more than one step, by name."""
    return {}


@pytest.fixture(scope="module")
def accounts(tmp_path_factory: pytest.TempPathFactory, quick: Passwords) -> Iterator[Accounts]:
    """One lakehouse for all steps, because each takes users of its own; without a superadmin until one is made."""
    place: Path = tmp_path_factory.mktemp("roles")
    config = LakehouseConfig(base_path=str(place / "lake"), state_path=str(place / "state"), durability="os")
    with AuthActor(DeltaStore(config), passwords=quick) as auth:
        callers = {role.value: signed_in(auth, f"caller-{role}", role) for role in Role}
        callers |= {name: program(auth, role, scopes) for name, (role, scopes) in KEYS.items()}
        yield auth, {"owner": OWNER, "anonymous": ANONYMOUS, **callers}


def program(auth: AuthActor, role: Role, scopes: str) -> Actor:
    """Make a program and return the actor of its key."""
    name = f"program-{role}-{len(scopes)}"
    account = auth.create_service_account(name, role=role, tier=SubscriptionTier.ENTERPRISE)
    return auth.authenticate(auth.create_api_key(account.user_id, "walks", scopes).key)


def victim(auth: AuthActor, name: str, state: str) -> Victim:
    """Make a user in a state."""
    if state == "pending":
        return Victim(auth.register(name, f"{name}@example.com", PASSWORD))
    if state == "program":
        return Victim(auth.create_service_account(name))
    made = user(auth, name)
    if state == "disabled":
        return Victim(auth.disable(made.user_id))
    return Victim(made, auth.login(name, PASSWORD) if state == "signed in" else None)


def may(caller: str, permission: Permission) -> bool:
    """Read the matrix as its page is read."""
    if caller == "owner":
        return True
    rule = RULES[permission]
    if caller == "anonymous":
        return rule.is_public
    if caller not in KEYS:
        return Role(caller) in MATRIX[permission]
    role, scopes = KEYS[caller]
    is_open = "admin" in scopes.split() or Role.USER in rule.roles
    return role in MATRIX[permission] and is_open and not rule.is_for_people


@pytest.mark.parametrize("caller", CALLERS)
@pytest.mark.parametrize("name", WALKS)
def test_what_the_matrix_allows_is_done_and_all_else_is_denied(
    accounts: Accounts, shared: dict[str, Victim], name: str, caller: str
) -> None:
    auth, callers = accounts
    walk = WALKS[name]
    is_shared = name in READING or not may(caller, walk.permission)
    login = (
        f"shared-{walk.state.replace(' ', '-')}"
        if is_shared
        else f"{name}-{CALLERS.index(caller)}".replace("_", "-")
    )
    who = shared.get(login) or victim(auth, login, walk.state)
    shared[login] = who
    before = auth.user(who.id)
    if not may(caller, walk.permission):
        with pytest.raises(PermissionDeniedError):
            walk.call(auth, who, callers[caller])
        assert auth.user(who.id) == before
    elif name == "bootstrap":
        # The walking superadmin is there already: it is allowed, and refused for another reason.
        with pytest.raises(Exception, match="superadmin already"):
            walk.call(auth, who, callers[caller])
    elif name == "mount_ticket" and caller == "owner":
        # Nothing keeps the owner from it, but a ticket stands for a sign-in.
        with pytest.raises(InvalidArgumentError):
            walk.call(auth, who, callers[caller])
    else:
        walk.call(auth, who, callers[caller])


@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize("name", OWN)
def test_everybody_may_look_after_the_own_account(accounts: Accounts, name: str, role: Role) -> None:
    auth, _ = accounts
    login = f"own-{name.replace('_', '-')}-{role}"
    actor = signed_in(auth, login, role)
    OWN[name](auth, Victim(auth.user(actor.id)), actor)


REPORTS: Mapping[str, tuple[Permission, Callable[[AuditAccess, str, Actor], Any]]] = {
    "log": (P.WRITE_AUDIT, lambda r, v, by: r.log(AuditEntry(action=ActionType.CUSTOM, user_id=v), actor=by)),
    "activity": (P.READ_AUDIT, lambda r, v, by: r.activity(v, actor=by)),
    "billing_summary": (
        P.READ_AUDIT,
        lambda r, v, by: r.billing_summary(v, "2026-01-01", "2026-01-31", actor=by),
    ),
    "search": (P.READ_AUDIT, lambda r, v, by: r.search(limit=1, actor=by)),
    "verify": (P.READ_AUDIT, lambda r, v, by: r.verify(actor=by)),
    "watch": (P.READ_AUDIT, lambda r, v, by: r.watch(actor=by)),
    "export": (P.READ_AUDIT, lambda r, v, by: r.export(user_id=v, actor=by).reader().read_all()),
}


@pytest.mark.parametrize("caller", CALLERS)
@pytest.mark.parametrize("name", REPORTS)
def test_the_audit_log_opens_to_administrators_only(accounts: Accounts, name: str, caller: str) -> None:
    auth, callers = accounts
    permission, call = REPORTS[name]
    reports = AuditAccess(auth.audit, auth.gate)
    if may(caller, permission):
        call(reports, "somebody", callers[caller])
    else:
        with pytest.raises(PermissionDeniedError):
            call(reports, "somebody", callers[caller])


@pytest.mark.parametrize("name", ["activity", "billing_summary"])
def test_everybody_may_see_what_they_did_themselves(accounts: Accounts, name: str) -> None:
    auth, callers = accounts
    REPORTS[name][1](AuditAccess(auth.audit, auth.gate), callers["user"].id, callers["user"])


def test_a_program_may_see_its_own_account_and_keys_and_no_more(accounts: Accounts) -> None:
    auth, callers = accounts
    for name in KEYS:
        actor = callers[name]
        itself = Victim(auth.user(actor.id))
        for see in ("user", "sessions", "usage", "grants", "list_api_keys", "logout_everywhere"):
            OWN[see](auth, itself, actor)
        with pytest.raises(PermissionDeniedError):
            OWN["change_password"](auth, itself, actor)


def test_no_report_is_left_out() -> None:
    members = inspect.getmembers(AuditAccess, inspect.isfunction)
    assert {name for name, _ in members if not name.startswith("_")} == set(REPORTS)


def test_no_operation_is_left_out() -> None:
    operations = {
        name
        for name, member in inspect.getmembers(AuthActor, inspect.isfunction)
        if not name.startswith("_") and "actor" in inspect.signature(member).parameters
    }
    public = {
        name for name, _ in inspect.getmembers(AuthActor, inspect.isfunction) if not name.startswith("_")
    }
    assert operations == set(WALKS)
    assert public - operations == AUTHENTICATION | NO_OPERATIONS


def test_a_denial_is_in_the_audit_log_with_who_and_what(accounts: Accounts) -> None:
    auth, callers = accounts
    with pytest.raises(PermissionDeniedError):
        auth.users(actor=callers["user"])
    auth.audit.flush()
    rows = auth.audit.store.query("audit_log", "action = 'permission_denied'").to_pylist()
    found = [
        row
        for row in rows
        if row["user_id"] == callers["user"].id and row["details"] == "accounts; see_users"
    ]
    assert found
    assert {row["outcome"] for row in found} == {"denied"}
