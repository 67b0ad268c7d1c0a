"""Accounts from registration on, within their limits, and all of it in the audit log."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from lakehouse_platform.errors import (
    AccountPendingError,
    InvalidArgumentError,
    InvalidCredentialsError,
    InvalidNameError,
    PasswordTooWeakError,
    RateLimitedError,
    UserExistsError,
)
from lakehouse_platform.identity.passwords import Passwords
from lakehouse_platform.model.actions import ActionType, Outcome
from lakehouse_platform.model.actors import (
    ANONYMOUS,
    OWNER,
    AccountStatus,
    Actor,
    Role,
    SubscriptionTier,
)
from lakehouse_platform.services.accounts import AuthActor
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform_tests.support.people import (
    OTHER_PASSWORD,
    PASSWORD,
    actions,
    entries,
    signed_in,
    user,
)
from lakehouse_platform_tests.unit.services.conftest import Clock

# ── Registration ────────────────────────────────────────────────────────────────────────────────────


def test_who_registers_waits_for_approval_and_signs_in_after_it(auth: AuthActor) -> None:
    made = auth.register("ada", "Ada@Example.COM", PASSWORD, SubscriptionTier.PRO)
    assert (made.status, made.role, made.tier) == (AccountStatus.PENDING, Role.USER, SubscriptionTier.PRO)
    assert auth.pending() == [made]
    with pytest.raises(AccountPendingError):
        auth.login("ada", PASSWORD)
    approved = auth.approve(made.user_id)
    assert approved.is_active
    assert approved.password_hash == made.password_hash
    claims = auth.verify(auth.login("ada@example.com", PASSWORD))
    assert (claims.sub, claims.role, claims.tier) == (made.user_id, Role.USER, SubscriptionTier.PRO)
    assert auth.pending() == []


def test_with_auto_approval_who_registers_signs_in_at_once(store: DeltaStore, passwords: Passwords) -> None:
    config = store.config.model_copy(update={"auto_approve": True})
    with AuthActor(store, config, passwords=passwords) as auth:
        made = auth.register("ada", "ada@example.com", PASSWORD)
        assert auth.verify(auth.login("ada", PASSWORD)).sub == made.user_id
        assert auth.user(made.user_id).approved_at is not None


def register(auth: AuthActor, number: int, actor: Actor, ip_address: str | None) -> None:
    auth.register(f"name{number}", f"name{number}@example.com", PASSWORD, ip_address=ip_address, actor=actor)


def test_an_address_asks_for_so_many_accounts_in_an_hour_as_the_setting_says(
    store: DeltaStore, passwords: Passwords, clock: Clock
) -> None:
    config = store.config.model_copy(update={"registrations_per_hour": 3})
    with AuthActor(store, config, passwords=passwords, clock=clock) as auth:
        for number, actor in enumerate([ANONYMOUS, OWNER, ANONYMOUS]):
            register(auth, number, actor, "192.0.2.7")
        known = signed_in(auth, "ada")
        for actor in (ANONYMOUS, OWNER, known, replace(known, ip_address="192.0.2.7")):
            with pytest.raises(RateLimitedError) as caught:
                register(auth, 4, actor, "192.0.2.7" if actor.ip_address is None else None)
        assert caught.value.retry_after == 3600
        assert auth.audit.search(action=ActionType.RATE_LIMITED, outcome=Outcome.DENIED)
        register(auth, 5, ANONYMOUS, "192.0.2.8")
        clock.go_on(hours=1)
        register(auth, 6, ANONYMOUS, "192.0.2.7")


def test_a_failed_registration_counts_for_its_address(auth: AuthActor) -> None:
    auth.register("ada", "ada@example.com", PASSWORD)
    for _ in range(10):
        with pytest.raises(UserExistsError):
            auth.register("ada", "ada@example.com", PASSWORD, ip_address="192.0.2.7", actor=ANONYMOUS)
    with pytest.raises(RateLimitedError, match="Too many accounts"):
        auth.register("ada", "ada@example.com", PASSWORD, ip_address="192.0.2.7", actor=ANONYMOUS)


def test_administrators_and_who_owns_the_files_register_as_many_as_they_like(auth: AuthActor) -> None:
    admin = signed_in(auth, "admin", Role.ADMIN)
    for number in range(12):
        register(auth, number, admin, "192.0.2.7")
    for number in range(12, 24):
        register(auth, number, OWNER, None)


@pytest.mark.parametrize(("name", "email"), [("ADA", "other@example.com"), ("other", "ADA@example.com")])
def test_names_and_addresses_are_taken_whatever_their_capitals(
    auth: AuthActor, name: str, email: str
) -> None:
    auth.register("ada", "ada@example.com", PASSWORD)
    with pytest.raises(UserExistsError):
        auth.register(name, email, PASSWORD)
    assert len(auth.users().users) == 1


@pytest.mark.parametrize(
    ("name", "email", "password", "error"),
    [
        ("a", "ada@example.com", PASSWORD, InvalidNameError),
        ("ada", "nowhere", PASSWORD, InvalidNameError),
        ("ada", "ada@example.com", "password1", PasswordTooWeakError),
        ("ada", "ada@example.com", "ada@example.com", PasswordTooWeakError),
    ],
)
def test_what_is_not_allowed_makes_no_account_and_is_audited(
    auth: AuthActor, store: DeltaStore, name: str, email: str, password: str, error: type[Exception]
) -> None:
    with pytest.raises(error):
        auth.register(name, email, password)
    assert auth.users().users == []
    assert ("register", "failed") in actions(auth, store)


def test_the_first_superadmin_is_made_once(auth: AuthActor) -> None:
    root = auth.bootstrap("root", "root@example.com", PASSWORD)
    assert auth.authenticate(auth.login("root", PASSWORD)).role is Role.SUPERADMIN
    with pytest.raises(InvalidArgumentError, match="change_role"):
        auth.bootstrap("root2", "root2@example.com", PASSWORD)
    assert [one.user_id for one in auth.users().users] == [root.user_id]


def test_of_several_first_superadmins_at_once_one_is_made(auth: AuthActor, store: DeltaStore) -> None:
    def attempt(number: int) -> bool:
        with AuthActor(store, audit=auth.audit) as accounts:
            try:
                accounts.bootstrap(f"root{number}", f"root{number}@example.com", PASSWORD)
            except InvalidArgumentError:
                return False
            return True

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(attempt, range(4))) == [False, False, False, True]
    assert [one.role for one in auth.users().users] == [Role.SUPERADMIN]


# ── Limits ──────────────────────────────────────────────────────────────────────────────────────────


def test_a_free_user_has_ten_requests_a_minute_and_can_still_sign_out(auth: AuthActor, clock: Clock) -> None:
    ada = signed_in(auth, "ada", Role.ADMIN, SubscriptionTier.FREE)
    for _ in range(10):
        auth.pending(actor=ada)
    with pytest.raises(RateLimitedError) as caught:
        auth.pending(actor=ada)
    assert 0 < caught.value.retry_after <= 60
    assert auth.usage(ada.id, actor=ada).minute == 10
    auth.logout_everywhere(ada.id, actor=ada)
    clock.go_on(seconds=caught.value.retry_after)
    auth.pending(actor=ada)


def test_an_override_and_a_reset_let_a_user_go_on(auth: AuthActor) -> None:
    ada = signed_in(auth, "ada", Role.ADMIN, SubscriptionTier.FREE)
    auth.override_limits(ada.id, 1, None)
    auth.pending(actor=ada)
    with pytest.raises(RateLimitedError):
        auth.pending(actor=ada)
    auth.reset_usage(ada.id)
    auth.pending(actor=ada)
    auth.follow_tier(ada.id)
    assert auth.usage(ada.id).quota.per_minute == 10


# ── The audit log ───────────────────────────────────────────────────────────────────────────────────


def test_the_life_of_an_account_is_in_the_audit_log_and_no_secret_is(
    auth: AuthActor, store: DeltaStore
) -> None:
    made = auth.register("zora", "zora@example.com", PASSWORD, ip_address="192.0.2.7")
    auth.approve(made.user_id)
    with pytest.raises(InvalidCredentialsError):
        auth.login("zora", OTHER_PASSWORD, ip_address="192.0.2.7")
    tokens = auth.refresh(str(auth.login("zora", PASSWORD).refresh_token))
    auth.verify(tokens)
    auth.change_password(made.user_id, PASSWORD, OTHER_PASSWORD)
    auth.logout(auth.login("zora", OTHER_PASSWORD), actor=ANONYMOUS)
    auth.disable(made.user_id)
    auth.close()
    rows = sorted(store.scan("audit_log").to_pylist(), key=lambda row: row["sequence"])
    assert [(row["action"], row["outcome"]) for row in rows] == [
        ("register", "done"),
        ("user_approved", "started"), ("user_approved", "done"),
        ("login_failed", "failed"), ("login", "done"), ("token_refresh", "done"),
        ("password_change", "started"), ("password_change", "done"),
        ("login", "done"), ("logout", "done"),
        ("user_disabled", "started"), ("user_disabled", "done"),
        ("token_checks", "done"),
    ]  # fmt: skip
    assert {row["user_id"] for row in rows} == {made.user_id, "owner"}
    text = repr(rows)
    secrets = [PASSWORD, OTHER_PASSWORD, made.password_hash, tokens.access_token, str(tokens.refresh_token)]
    assert [secret for secret in secrets if secret in text] == []
    # A name that no hexadecimal digits spell, for hashes and ids are full of those.
    assert "zora" not in text


def test_an_unknown_name_at_a_sign_in_is_not_written_down(auth: AuthActor, store: DeltaStore) -> None:
    with pytest.raises(InvalidCredentialsError):
        auth.login("my-password-by-mistake", PASSWORD, actor=ANONYMOUS)
    (row,) = entries(auth, store)
    assert (row["user_id"], row["action"], row["details"]) == (
        "anonymous",
        "login_failed",
        "invalid_credentials",
    )


def test_roles_tiers_and_rights_may_be_given_as_texts_and_no_other_texts(auth: AuthActor) -> None:
    user_id = user(auth, "ada").user_id
    asks: list[tuple[Callable[[Any], object], str]] = [
        (lambda text: auth.change_role(user_id, text), "admin"),
        (lambda text: auth.change_tier(user_id, text), "pro"),
        (lambda text: auth.grant(user_id, "rides", text), "write"),
        (lambda text: auth.register("grace", "grace@example.com", PASSWORD, text), "pro"),
        (lambda text: auth.create_service_account("loader", role=text), "admin"),
        (lambda text: auth.create_service_account("job", tier=text), "pro"),
    ]
    for ask, text in asks:
        with pytest.raises(InvalidArgumentError, match="these are"):
            ask("owner")
        ask(text)


def test_a_key_with_the_most_and_longest_scopes_is_made_and_written_down(auth: AuthActor) -> None:
    job = auth.create_service_account("job")
    scopes = [f"maintain:{number:0>100}" for number in range(100)]
    made = auth.create_api_key(job.user_id, "everything", scopes)
    assert [known.key_id for known in auth.list_api_keys(job.user_id)] == [made.key_id]
    started, done = auth.audit.search(action=ActionType.API_KEY_CREATED)
    assert (started.outcome, done.outcome) == ("started", "done")
    assert made.key_id in str(done.details)
