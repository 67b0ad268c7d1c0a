"""Accounts of programs: what their keys may, what ends them, and that no key gets more than it was given."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest

from lakehouse_platform.audit.entries import AuditEntry
from lakehouse_platform.errors import (
    AccountDisabledError,
    AuthenticationFailedError,
    InvalidArgumentError,
    InvalidCredentialsError,
    InvalidNameError,
    PermissionDeniedError,
    RateLimitedError,
    TokenInvalidError,
    UserExistsError,
    UserNotFoundError,
)
from lakehouse_platform.identity.api_keys import NewApiKey
from lakehouse_platform.identity.permissions import RULES, Permission, Right
from lakehouse_platform.identity.users import UserRecord
from lakehouse_platform.model.actions import ActionType
from lakehouse_platform.model.actors import ANONYMOUS, Actor, ActorKind, Role, SubscriptionTier
from lakehouse_platform.model.rights import EVERY_TABLE, Scopes
from lakehouse_platform.services.accounts import AuthActor
from lakehouse_platform.services.audit_access import AuditAccess
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.store.tables import SYSTEM_TABLES
from lakehouse_platform_tests.support.people import OTHER_PASSWORD, PASSWORD, entries, signed_in, user
from lakehouse_platform_tests.unit.services.conftest import Clock

P = Permission
EVERYTHING = "maintain:*"


def program(
    auth: AuthActor,
    scopes: str = "read:*",
    *,
    name: str = "importer",
    role: Role = Role.USER,
    rights: dict[str, Right] | None = None,
    tier: SubscriptionTier = SubscriptionTier.ENTERPRISE,
) -> tuple[UserRecord, NewApiKey]:
    """Make an account for a program, with rights and one key."""
    account = auth.create_service_account(name, role=role, tier=tier)
    for table, right in (rights or {}).items():
        auth.grant(account.user_id, table, right)
    return account, auth.create_api_key(account.user_id, "the only one", scopes)


def may(auth: AuthActor, actor: Actor, permission: Permission, table: str | None) -> bool:
    """Tell whether the gate lets an actor through."""
    try:
        auth.gate.run(actor, permission, table, lambda _: None)
    except PermissionDeniedError:
        return False
    return True


# ── Accounts and keys ───────────────────────────────────────────────────────────────────────────────


def test_a_program_acts_with_its_key_as_its_account(auth: AuthActor, clock: Clock) -> None:
    account, key = program(auth, "write:rides")
    assert (account.is_service, account.is_active, account.role) == (True, True, Role.USER)
    actor = auth.authenticate(key.key, ip_address="192.0.2.7", user_agent="cron")
    assert actor == Actor(
        id=account.user_id, kind=ActorKind.SERVICE, role=Role.USER, tier=SubscriptionTier.ENTERPRISE,
        ip_address="192.0.2.7", user_agent="cron", scopes=Scopes.parse("write:rides"), key_id=key.key_id,
    )  # fmt: skip
    assert auth.authenticate_key(key.key).key_id == key.key_id
    assert auth.user(account.user_id, actor=actor) == account
    (listed,) = auth.list_api_keys(account.user_id, actor=actor)
    assert (listed.label, listed.expires_at) == ("the only one", clock.now + timedelta(days=90))
    assert listed.last_used_at == clock.now


def test_accounts_of_programs_are_listed_by_name_and_are_no_people(auth: AuthActor) -> None:
    made = [auth.create_service_account(name) for name in ("b-job", "A-job")]
    user(auth, "ada")
    assert auth.service_accounts() == made[::-1]
    assert len({one.email for one in made}) == 2
    assert auth.pending() == []
    assert len(auth.users().users) == 3


def test_a_program_has_a_name_of_its_own(auth: AuthActor) -> None:
    user(auth, "ada")
    auth.create_service_account("importer")
    for name in ("ADA", "importer"):
        with pytest.raises(UserExistsError):
            auth.create_service_account(name)
    with pytest.raises(UserExistsError):
        auth.register("Importer", "ada2@example.com", PASSWORD)
    with pytest.raises(InvalidNameError):
        auth.create_service_account("a b")
    assert len(auth.service_accounts()) == 1


def test_keys_are_for_programs_only(auth: AuthActor) -> None:
    ada = user(auth, "ada")
    for ask in (
        lambda: auth.create_api_key(ada.user_id, "mine"),
        lambda: auth.revoke_api_key(ada.user_id, "0" * 16),
    ):
        with pytest.raises(InvalidArgumentError, match="person's"):
            ask()
    assert auth.list_api_keys(ada.user_id) == []


@pytest.mark.parametrize(
    ("label", "scopes", "life", "error"),
    [
        ("", "read:*", timedelta(days=1), InvalidArgumentError),
        ("x", "", timedelta(days=1), InvalidArgumentError),
        ("x", ["own:rides"], timedelta(days=1), InvalidArgumentError),
        ("x", ["read:../rides"], timedelta(days=1), InvalidNameError),
        ("x", ["read:users"], timedelta(days=1), InvalidArgumentError),
        ("x", "read:*", timedelta(0), InvalidArgumentError),
        ("x", "admin", timedelta(days=1), InvalidArgumentError),
    ],
)
def test_a_key_that_is_asked_for_wrongly_is_not_made(
    auth: AuthActor, label: str, scopes: Any, life: timedelta, error: type[Exception]
) -> None:
    account = auth.create_service_account("importer")
    with pytest.raises(error):
        auth.create_api_key(account.user_id, label, scopes, life)
    assert auth.list_api_keys(account.user_id) == []


@pytest.mark.parametrize("user_id", ["no-such-id", "", "owner", "anonymous", "' OR 1=1 --"])
def test_nobody_elses_id_gets_a_key(auth: AuthActor, user_id: str) -> None:
    with pytest.raises(UserNotFoundError):
        auth.create_api_key(user_id, "guessed")
    with pytest.raises(UserNotFoundError):
        auth.revoke_api_key(user_id, "0" * 16)
    assert auth.list_api_keys(user_id) == []


def test_a_key_is_revoked_as_its_own_accounts_only(auth: AuthActor) -> None:
    one, key = program(auth)
    two = auth.create_service_account("other")
    assert not auth.revoke_api_key(two.user_id, key.key_id)
    assert auth.authenticate(key.key).id == one.user_id
    assert auth.revoke_api_key(one.user_id, key.key_id)
    assert not auth.revoke_api_key(one.user_id, key.key_id)


# ── What ends a key ─────────────────────────────────────────────────────────────────────────────────


def test_a_key_ends_with_its_time(auth: AuthActor, clock: Clock) -> None:
    _, key = program(auth)
    clock.go_on(days=90)
    with pytest.raises(AuthenticationFailedError):
        auth.authenticate(key.key)


def test_disabling_an_account_makes_its_keys_void_at_once_and_enabling_brings_them_back(
    auth: AuthActor, store: DeltaStore, clock: Clock
) -> None:
    account, key = program(auth)
    with AuthActor(store, clock=clock) as elsewhere:
        assert elsewhere.authenticate(key.key).id == account.user_id
        auth.disable(account.user_id)
        for one in (auth, elsewhere):
            with pytest.raises(AccountDisabledError):
                one.authenticate(key.key)
            with pytest.raises(AuthenticationFailedError):
                one.authenticate(f"lhk_{key.key_id}_{'0' * 64}")
        auth.enable(account.user_id)
        assert elsewhere.authenticate(key.key).id == account.user_id


def test_a_key_revoked_while_its_account_was_disabled_stays_void(auth: AuthActor) -> None:
    account, key = program(auth)
    auth.disable(account.user_id)
    auth.revoke_api_key(account.user_id, key.key_id)
    auth.enable(account.user_id)
    with pytest.raises(AuthenticationFailedError):
        auth.authenticate(key.key)


def test_the_keys_of_an_account_that_is_gone_count_no_more(auth: AuthActor, store: DeltaStore) -> None:
    account, key = program(auth)
    store.table("users").merge([{"user_id": account.user_id, "_op": "DELETE"}])
    with pytest.raises(AuthenticationFailedError) as gone:
        auth.authenticate(key.key)
    with pytest.raises(AuthenticationFailedError) as unknown:
        auth.authenticate(f"lhk_{'0' * 16}_{'0' * 64}")
    assert gone.value.to_dict() == unknown.value.to_dict()


def test_a_key_that_was_written_under_a_persons_id_does_not_count(auth: AuthActor, store: DeltaStore) -> None:
    root = user(auth, "root", Role.SUPERADMIN)
    _, key = program(auth)
    store.table("api_keys").merge([{"key_id": key.key_id, "user_id": root.user_id, "_op": "UPDATE"}])
    with pytest.raises(AuthenticationFailedError):
        auth.authenticate(key.key)


def test_role_and_tier_are_those_that_the_account_has_now(auth: AuthActor) -> None:
    account, key = program(auth)
    auth.change_role(account.user_id, Role.ADMIN)
    auth.change_tier(account.user_id, SubscriptionTier.PRO)
    actor = auth.authenticate(key.key)
    assert (actor.role, actor.tier) == (Role.ADMIN, SubscriptionTier.PRO)


# ── What a key is not ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("password", ["", "none", PASSWORD, "$argon2id$v=19$m=8,t=1,p=1$"])
def test_no_password_signs_a_program_in(auth: AuthActor, password: str) -> None:
    account, key = program(auth)
    for login in ("importer", account.email):
        with pytest.raises(InvalidCredentialsError):
            auth.login(login, password)
    with pytest.raises(InvalidCredentialsError):
        auth.login("importer", key.key)
    assert auth.sessions(account.user_id) == []


def test_a_program_gets_no_password(auth: AuthActor) -> None:
    account, _ = program(auth)
    with pytest.raises(InvalidArgumentError, match="no password"):
        auth.set_password(account.user_id, OTHER_PASSWORD)
    with pytest.raises(InvalidCredentialsError):
        auth.change_password(account.user_id, "none", OTHER_PASSWORD)
    assert auth.user(account.user_id) == account


def test_a_key_is_no_token_and_a_token_no_key(auth: AuthActor) -> None:
    _, key = program(auth)
    user(auth, "ada")
    tokens = auth.login("ada", PASSWORD)
    for ask in (auth.verify, auth.logout, auth.refresh):
        with pytest.raises(TokenInvalidError):
            ask(key.key)
    with pytest.raises(AuthenticationFailedError):
        auth.authenticate_key(tokens.access_token)
    assert auth.authenticate(tokens).kind is ActorKind.USER


# ── Scopes ──────────────────────────────────────────────────────────────────────────────────────────

ON_TABLES = [one for one in P if RULES[one].right is not None]


def test_a_key_that_may_read_one_table_may_nothing_else(auth: AuthActor) -> None:
    account, key = program(auth, "read:rides", role=Role.SUPERADMIN)
    actor = auth.authenticate(key.key)
    reading = {one for one in ON_TABLES if RULES[one].right is Right.READ}
    assert {one for one in ON_TABLES if may(auth, actor, one, "rides")} == reading
    for table in ("towns", "Rides", EVERY_TABLE, *SYSTEM_TABLES):
        assert not [one for one in ON_TABLES if may(auth, actor, one, table)]
    assert not may(auth, actor, P.CREATE_TABLE, "towns")
    others: list[Callable[[], object]] = [
        lambda: auth.create_api_key(account.user_id, "more", EVERYTHING, actor=actor),
        lambda: auth.revoke_api_key(account.user_id, key.key_id, actor=actor),
        lambda: auth.create_service_account("helper", actor=actor),
        lambda: auth.change_password(account.user_id, "none", OTHER_PASSWORD, actor=actor),
        lambda: auth.grant(account.user_id, "towns", Right.READ, actor=actor),
        lambda: auth.change_role(account.user_id, Role.SUPERADMIN, actor=actor),
        lambda: auth.change_tier(account.user_id, SubscriptionTier.ENTERPRISE, actor=actor),
        lambda: auth.override_limits(account.user_id, None, None, actor=actor),
        lambda: auth.users(actor=actor),
        lambda: auth.service_accounts(actor=actor),
        lambda: AuditAccess(auth.audit, auth.gate).search(actor=actor),
        lambda: AuditAccess(auth.audit, auth.gate).log(
            AuditEntry(action=ActionType.CUSTOM, user_id=account.user_id), actor=actor
        ),
    ]
    for ask in others:
        with pytest.raises(PermissionDeniedError):
            ask()
    assert len(auth.list_api_keys(account.user_id)) == 1


@pytest.mark.parametrize(
    ("scopes", "rides", "towns"),
    [
        ("read:*", Right.READ, Right.READ),
        ("write:rides", Right.WRITE, None),
        ("maintain:rides read:*", Right.WRITE, Right.READ),
        ("maintain:*", Right.WRITE, Right.READ),
        ("read:towns", None, Right.READ),
        ("read:lakes", None, None),
    ],
)
def test_a_key_may_the_less_of_its_scope_and_its_accounts_grant(
    auth: AuthActor, scopes: str, rides: Right | None, towns: Right | None
) -> None:
    _, key = program(auth, scopes, rights={"rides": Right.WRITE, EVERY_TABLE: Right.READ})
    actor = auth.authenticate(key.key)
    for table, right in (("rides", rides), ("towns", towns)):
        allowed = {one for one in ON_TABLES if may(auth, actor, one, table)} - {P.DROP_TABLE}
        needed = {one: RULES[one].right for one in ON_TABLES if one is not P.DROP_TABLE}
        assert allowed == {one for one, need in needed.items() if right and need and right.includes(need)}


def test_a_grant_taken_away_is_gone_for_the_key_too(auth: AuthActor) -> None:
    account, key = program(auth, EVERYTHING, rights={"rides": Right.READ})
    actor = auth.authenticate(key.key)
    assert may(auth, actor, P.READ_TABLE, "rides")
    auth.revoke_grant(account.user_id, "rides")
    assert not may(auth, actor, P.READ_TABLE, "rides")


def test_administration_needs_both_the_scope_and_the_role(auth: AuthActor) -> None:
    account, plain = program(auth, EVERYTHING, role=Role.ADMIN)
    mighty = auth.create_api_key(account.user_id, "administrates", "admin")
    with pytest.raises(PermissionDeniedError):
        auth.users(actor=auth.authenticate(plain.key))
    actor = auth.authenticate(mighty.key)
    assert auth.users(actor=actor).users
    assert not may(auth, actor, P.READ_TABLE, "rides")
    with pytest.raises(PermissionDeniedError):
        auth.change_role(account.user_id, Role.SUPERADMIN, actor=actor)
    auth.change_role(account.user_id, Role.USER)
    with pytest.raises(PermissionDeniedError):
        auth.users(actor=auth.authenticate(mighty.key))


def test_to_delete_a_table_takes_administration_and_the_right_on_it(auth: AuthActor) -> None:
    account, _ = program(auth, "maintain:rides", role=Role.ADMIN)
    for scopes, allowed in (
        ("maintain:rides", False), ("admin", False), ("write:rides admin", False), ("maintain:rides admin", True),
    ):  # fmt: skip
        key = auth.create_api_key(account.user_id, "drops", scopes)
        assert may(auth, auth.authenticate(key.key), P.DROP_TABLE, "rides") is allowed


@pytest.mark.parametrize("table", sorted(SYSTEM_TABLES))
def test_every_table_does_not_mean_the_platforms_own(auth: AuthActor, table: str) -> None:
    account, plain = program(auth, EVERYTHING, role=Role.SUPERADMIN)
    mighty = auth.create_api_key(account.user_id, "administrates", f"{EVERYTHING} admin")
    assert not may(auth, auth.authenticate(plain.key), P.READ_TABLE, table)
    assert may(auth, auth.authenticate(mighty.key), P.READ_TABLE, table)
    assert not may(auth, auth.authenticate(mighty.key), P.WRITE_TABLE, table)


def test_the_mightiest_key_makes_no_keys_and_no_programs(auth: AuthActor) -> None:
    account, key = program(auth, f"{EVERYTHING} admin", role=Role.SUPERADMIN)
    actor = auth.authenticate(key.key)
    other = auth.create_service_account("other")
    for ask in (
        lambda: auth.create_api_key(account.user_id, "more", actor=actor),
        lambda: auth.create_api_key(other.user_id, "more", actor=actor),
        lambda: auth.create_service_account("third", actor=actor),
        lambda: auth.revoke_api_key(account.user_id, key.key_id, actor=actor),
    ):
        with pytest.raises(PermissionDeniedError, match="API key"):
            ask()


def test_an_actor_of_a_program_without_scopes_may_nothing(auth: AuthActor) -> None:
    account, _ = program(auth, role=Role.SUPERADMIN)
    actor = Actor(id=account.user_id, kind=ActorKind.SERVICE, role=Role.SUPERADMIN)
    with pytest.raises(PermissionDeniedError):
        auth.user(account.user_id, actor=actor)
    assert not may(auth, actor, P.READ_TABLE, "rides")


# ── Who makes them ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("role", [Role.ADMIN, Role.SUPERADMIN])
def test_only_a_superadmin_makes_programs_and_keys_that_may_more_than_a_user(
    auth: AuthActor, role: Role
) -> None:
    auth.bootstrap("root", "root@example.com", PASSWORD)
    admin, root = signed_in(auth, "admin", Role.ADMIN), auth.authenticate(auth.login("root", PASSWORD))
    with pytest.raises(PermissionDeniedError, match="superadmin"):
        auth.create_service_account("importer", role=role, actor=admin)
    assert auth.service_accounts() == []
    account = auth.create_service_account("importer", role=role, actor=root)
    made = auth.create_api_key(account.user_id, "root's", actor=root)
    for ask in (
        lambda: auth.create_api_key(account.user_id, "mine", actor=admin),
        lambda: auth.revoke_api_key(account.user_id, made.key_id, actor=admin),
    ):
        with pytest.raises(PermissionDeniedError, match="superadmin"):
            ask()
    assert auth.authenticate(made.key).role is role


def test_a_programs_superadmin_is_no_way_out_for_people(auth: AuthActor) -> None:
    root = auth.bootstrap("root", "root@example.com", PASSWORD)
    account, _ = program(auth, role=Role.SUPERADMIN)
    with pytest.raises(InvalidArgumentError, match="last active superadmin"):
        auth.disable(root.user_id)
    assert auth.disable(account.user_id).user_id == account.user_id


def test_a_program_does_not_keep_the_first_superadmin_from_being_made(auth: AuthActor) -> None:
    auth.create_service_account("importer", role=Role.SUPERADMIN)
    assert auth.bootstrap("root", "root@example.com", PASSWORD).role is Role.SUPERADMIN


# ── Limits and the audit log ────────────────────────────────────────────────────────────────────────


def test_the_limits_of_its_tier_count_for_a_program_with_all_its_keys(auth: AuthActor) -> None:
    account, one = program(auth, tier=SubscriptionTier.FREE, rights={"rides": Right.READ})
    two = auth.create_api_key(account.user_id, "second")
    for turn in range(10):
        assert may(auth, auth.authenticate((one, two)[turn % 2].key), P.READ_TABLE, "rides")
    for key in (one, two):
        with pytest.raises(RateLimitedError):
            may(auth, auth.authenticate(key.key), P.READ_TABLE, "rides")
    assert auth.usage(account.user_id).minute == 10


def test_what_is_done_with_accounts_and_keys_is_in_the_audit_log(auth: AuthActor, store: DeltaStore) -> None:
    root = signed_in(auth, "root", Role.SUPERADMIN)
    account = auth.create_service_account("importer", actor=root)
    key = auth.create_api_key(account.user_id, "nightly", ["write:rides"], actor=root)
    auth.revoke_api_key(account.user_id, key.key_id, actor=root)
    who = f"user {account.user_id}"
    found = [
        (row["action"], row["outcome"], row["details"])
        for row in entries(auth, store)
        if row["user_id"] == root.id and account.user_id in (row["details"] or "")
    ]
    assert found == [
        ("admin_action", "done", f"{who} made for a program: user, free"),
        ("api_key_created", "started", who),
        ("api_key_created", "done", f"{who}: key {key.key_id}, write:rides"),
        ("api_key_revoked", "started", f"{who}: key {key.key_id}"),
        ("api_key_revoked", "done", f"{who}: key {key.key_id}"),
    ]


def test_no_key_comes_into_the_audit_log(auth: AuthActor, store: DeltaStore) -> None:
    account, key = program(auth)
    auth.authenticate(key.key)
    auth.revoke_api_key(account.user_id, key.key)
    auth.revoke_api_key(account.user_id, key.key.rpartition("_")[2])
    with pytest.raises(AuthenticationFailedError):
        auth.authenticate(key.key + "0")
    with pytest.raises(InvalidArgumentError):
        auth.create_api_key(account.user_id, "x", [key.key])
    with pytest.raises(UserNotFoundError):
        auth.revoke_api_key(key.key, key.key_id)
    told = str(entries(auth, store))
    assert key.key.rpartition("_")[2] not in told


def test_checks_of_keys_are_counted_by_key_and_refusals_name_the_key_that_they_tried(
    auth: AuthActor, store: DeltaStore, clock: Clock
) -> None:
    account, key = program(auth)
    for _ in range(3):
        auth.authenticate(key.key)
    with pytest.raises(AuthenticationFailedError):
        auth.authenticate(f"lhk_{key.key_id}_{'0' * 64}", ip_address="192.0.2.7")
    with pytest.raises(AuthenticationFailedError):
        auth.authenticate(f"lhk_{'0' * 16}_{'0' * 64}", ip_address="192.0.2.7")
    clock.go_on(minutes=1)
    auth.authenticate(key.key)
    found = [
        (row["action"], row["user_id"], row["details"], row["ip_address"])
        for row in entries(auth, store)
        if row["action"] in ("token_checks", "token_rejected")
    ]
    assert found == [
        ("token_rejected", ANONYMOUS.id, f"authentication_failed; key {key.key_id}", "192.0.2.7"),
        ("token_rejected", ANONYMOUS.id, "authentication_failed", "192.0.2.7"),
        ("token_checks", account.user_id, f"4 accepted; key {key.key_id}", None),
    ]


def test_keys_can_be_checked_by_many_threads_while_they_are_made_and_revoked(auth: AuthActor) -> None:
    account, stays = program(auth)

    def turn(number: int) -> int:
        key = auth.create_api_key(account.user_id, f"key {number}")
        seen = sum(auth.authenticate(one.key).id == account.user_id for one in (stays, key))
        assert auth.revoke_api_key(account.user_id, key.key_id)
        with pytest.raises(AuthenticationFailedError):
            auth.authenticate(key.key)
        return seen

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(turn, range(8))) == [2] * 8
    assert auth.authenticate(stays.key).key_id == stays.key_id
