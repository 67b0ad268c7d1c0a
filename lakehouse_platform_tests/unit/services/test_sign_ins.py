"""Signing in and out: what is told to whom, how long tokens count, and what ends them at once."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from argon2 import PasswordHasher

from lakehouse_platform.errors import (
    AccountDisabledError,
    AccountPendingError,
    AuthenticationFailedError,
    InvalidCredentialsError,
    LoginThrottledError,
    PasswordTooWeakError,
    TokenExpiredError,
    TokenInvalidError,
    TokenReuseError,
)
from lakehouse_platform.identity.passwords import Check, Passwords
from lakehouse_platform.model.actors import Role, SubscriptionTier
from lakehouse_platform.services.accounts import AuthActor
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform_tests.support.people import (
    OTHER_PASSWORD,
    PASSWORD,
    entries,
    signed_in,
    user,
)
from lakehouse_platform_tests.unit.services.conftest import Clock

# ── Signing in ──────────────────────────────────────────────────────────────────────────────────────


def test_a_wrong_password_and_an_unknown_name_are_refused_alike(auth: AuthActor) -> None:
    user(auth, "ada")
    messages = set()
    for login, password in [("ada", OTHER_PASSWORD), ("nobody", PASSWORD), ("no\ud800body", PASSWORD)]:
        with pytest.raises(InvalidCredentialsError) as caught:
            auth.login(login, password)
        messages.add(str(caught.value))
    assert len(messages) == 1


def test_guessing_makes_even_the_right_password_wait(auth: AuthActor, clock: Clock) -> None:
    user(auth, "ada")
    for _ in range(5):
        with pytest.raises(InvalidCredentialsError):
            auth.login("ada", OTHER_PASSWORD)
    with pytest.raises(LoginThrottledError) as caught:
        auth.login("ada", PASSWORD)
    clock.go_on(seconds=caught.value.retry_after)
    assert auth.verify(auth.login("ada", PASSWORD)).sub


def test_a_state_is_told_only_to_who_knows_the_password(auth: AuthActor) -> None:
    auth.register("ada", "ada@example.com", PASSWORD)
    with pytest.raises(InvalidCredentialsError):
        auth.login("ada", OTHER_PASSWORD)
    with pytest.raises(AccountPendingError):
        auth.login("ada", PASSWORD)


def test_the_tokens_of_a_sign_in_are_its_text_and_in_no_print_out(auth: AuthActor) -> None:
    user(auth, "ada")
    tokens = auth.login("ada", PASSWORD)
    assert str(tokens) == tokens.access_token
    assert tokens.access_token not in repr(tokens)
    assert str(tokens.refresh_token) not in repr(tokens)


def test_a_sign_in_is_listed_with_where_it_came_from(auth: AuthActor, clock: Clock) -> None:
    ada = user(auth, "ada")
    tokens = auth.login("ada", PASSWORD, ip_address="192.0.2.7", user_agent="curl")
    (session,) = auth.sessions(ada.user_id)
    assert (session.session_id, session.ip_address, session.user_agent) == (
        tokens.session_id,
        "192.0.2.7",
        "curl",
    )
    assert auth.user(ada.user_id).last_login_at == clock.now


def test_a_sign_in_is_one_commit(auth: AuthActor, store: DeltaStore, clock: Clock) -> None:
    ada = user(auth, "ada")
    for minutes in (0, 1, 61):
        clock.go_on(minutes=minutes)
        before = {name: store.table(name).version() for name in ("sessions", "users")}
        auth.login("ada", PASSWORD)
        made = {name: store.table(name).version() - version for name, version in before.items()}
        assert made == {"sessions": 1, "users": 0}
        assert auth.user(ada.user_id).last_login_at == clock.now
        assert auth.users().users[0].last_login_at == clock.now


def test_the_time_of_the_last_sign_in_is_kept_to_the_hour_when_it_has_ended(
    auth: AuthActor, store: DeltaStore, clock: Clock
) -> None:
    ada = user(auth, "ada")
    for minutes, kept in ((0, True), (59, False), (1, True)):
        clock.go_on(minutes=minutes)
        before = store.table("users").version()
        auth.logout(auth.login("ada", PASSWORD).access_token)
        assert store.table("users").version() - before == kept
        assert auth.user(ada.user_id).last_login_at == clock.now - timedelta(minutes=0 if kept else 59)


def test_a_hash_of_weaker_parameters_is_replaced_at_the_next_sign_in(
    auth: AuthActor, store: DeltaStore, clock: Clock
) -> None:
    ada = user(auth, "ada")
    with AuthActor(store, clock=clock) as strong:
        strong.login("ada", PASSWORD)
        changed = strong.user(ada.user_id)
        assert changed.password_hash != ada.password_hash
        assert strong.login("ada", PASSWORD).user_id == ada.user_id
        assert strong.user(ada.user_id).password_hash == changed.password_hash


class Interrupted(Passwords):
    """Passwords during whose check something else happens, as another process may bring about."""

    meanwhile = staticmethod(lambda: None)

    def verify(self, password_hash: str, password: str) -> Check:
        check = super().verify(password_hash, password)
        self.meanwhile()
        return check


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda auth, user_id: auth.disable(user_id), AccountDisabledError),
        (lambda auth, user_id: auth.set_password(user_id, OTHER_PASSWORD), InvalidCredentialsError),
    ],
    ids=["disabled", "new password"],
)
def test_a_sign_in_that_was_overtaken_by_a_change_of_the_account_does_not_begin(
    auth: AuthActor,
    store: DeltaStore,
    clock: Clock,
    change: Callable[[AuthActor, str], object],
    error: type[Exception],
) -> None:
    ada = user(auth, "ada")
    with (
        Interrupted(hasher=PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)) as passwords,
        AuthActor(store, passwords=passwords, clock=clock) as slow,
    ):
        passwords.meanwhile = lambda: change(auth, ada.user_id)  # type: ignore[method-assign]
        with pytest.raises(error):
            slow.login("ada", PASSWORD)
    assert auth.sessions(ada.user_id) == []


def test_many_may_sign_in_at_once(auth: AuthActor) -> None:
    people = [user(auth, f"user{number}") for number in range(4)]
    with ThreadPoolExecutor(8) as pool:
        signed = list(pool.map(lambda number: auth.login(f"user{number % 4}", PASSWORD), range(8)))
    assert len({tokens.session_id for tokens in signed}) == 8
    assert [auth.verify(tokens).sub for tokens in signed] == [
        people[number % 4].user_id for number in range(8)
    ]
    assert all(auth.user(person.user_id).last_login_at is not None for person in people)


# ── Tokens ──────────────────────────────────────────────────────────────────────────────────────────


def test_a_token_ends_after_the_configured_time(auth: AuthActor, clock: Clock) -> None:
    user(auth, "ada")
    tokens = auth.login("ada", PASSWORD)
    clock.go_on(hours=24, seconds=-1)
    auth.verify(tokens)
    clock.go_on(seconds=1)
    assert clock.now == tokens.expires_at
    with pytest.raises(TokenExpiredError):
        auth.verify(tokens)


def test_a_renewed_sign_in_has_new_tokens_and_its_old_ones_are_void(auth: AuthActor, clock: Clock) -> None:
    user(auth, "ada")
    first = auth.login("ada", PASSWORD)
    clock.go_on(days=20)
    second = auth.refresh(str(first.refresh_token))
    assert auth.verify(second).sid == first.session_id
    with pytest.raises((AuthenticationFailedError, TokenExpiredError)):
        auth.verify(first)


def test_a_refresh_token_shown_twice_ends_the_sign_in(auth: AuthActor, store: DeltaStore) -> None:
    ada = user(auth, "ada")
    first = auth.login("ada", PASSWORD)
    second = auth.refresh(str(first.refresh_token))
    with pytest.raises(TokenReuseError) as caught:
        auth.refresh(str(first.refresh_token))
    assert ada.user_id not in str(caught.value.to_dict())
    with pytest.raises(AuthenticationFailedError):
        auth.verify(second)
    refused = [row for row in entries(auth, store) if row["action"] == "token_rejected"]
    assert (refused[0]["user_id"], refused[0]["details"]) == (ada.user_id, "token_reuse")


def test_a_sign_in_that_was_not_renewed_in_time_has_ended(auth: AuthActor, clock: Clock) -> None:
    user(auth, "ada")
    tokens = auth.login("ada", PASSWORD)
    clock.go_on(days=30)
    with pytest.raises(TokenExpiredError):
        auth.refresh(str(tokens.refresh_token))


def test_a_token_of_another_lakehouse_with_the_same_key_is_refused(
    store: DeltaStore, tmp_path: object, passwords: Passwords
) -> None:
    secret = "x" * 32
    here = store.config.model_copy(update={"base_path": f"{tmp_path}/a", "state_path": f"{tmp_path}/sa"})
    there = store.config.model_copy(update={"base_path": f"{tmp_path}/b", "state_path": f"{tmp_path}/sb"})
    configs = [
        type(here)(**{**one.model_dump(exclude_unset=True), "jwt_secret": secret}) for one in (here, there)
    ]
    with (
        AuthActor(DeltaStore(configs[0]), passwords=passwords) as one,
        AuthActor(DeltaStore(configs[1]), passwords=passwords) as other,
    ):
        user(one, "ada")
        tokens = one.login("ada", PASSWORD)
        assert one.verify(tokens).sub == tokens.user_id
        with pytest.raises(AuthenticationFailedError):
            other.verify(tokens)


def test_tokens_outlive_the_process_that_issued_them(
    auth: AuthActor, store: DeltaStore, passwords: Passwords, clock: Clock
) -> None:
    ada = user(auth, "ada")
    tokens = auth.login("ada", PASSWORD)
    auth.close()
    with AuthActor(store, passwords=passwords, clock=clock) as again:
        assert again.verify(tokens).sub == ada.user_id


def test_what_is_no_token_is_refused_and_audited_but_not_in_floods(
    auth: AuthActor, store: DeltaStore
) -> None:
    for _ in range(30):
        with pytest.raises(TokenInvalidError):
            auth.verify("rubbish", ip_address="192.0.2.7")
    with pytest.raises(TokenInvalidError):
        auth.verify("rubbish", ip_address="192.0.2.8")
    refused = [row["ip_address"] for row in entries(auth, store) if row["action"] == "token_rejected"]
    assert refused == ["192.0.2.7"] * 10 + ["192.0.2.8"]


# ── Signing out, and what acts at once ──────────────────────────────────────────────────────────────


def test_signing_out_ends_one_sign_in_and_no_other(auth: AuthActor) -> None:
    user(auth, "ada")
    one, other = auth.login("ada", PASSWORD), auth.login("ada", PASSWORD)
    auth.logout(one)
    with pytest.raises(AuthenticationFailedError):
        auth.verify(one)
    assert auth.verify(other).sid == other.session_id
    with pytest.raises(AuthenticationFailedError):
        auth.logout(one)


def test_signing_out_everywhere_ends_all_sign_ins_of_one_user(auth: AuthActor) -> None:
    ada, ben = user(auth, "ada"), user(auth, "ben")
    tokens = [auth.login("ada", PASSWORD) for _ in range(3)]
    bens = auth.login("ben", PASSWORD)
    assert auth.logout_everywhere(ada.user_id) == 3
    for one in tokens:
        with pytest.raises(AuthenticationFailedError):
            auth.verify(one)
    assert auth.verify(bens).sub == ben.user_id


def test_a_new_password_ends_all_other_sign_ins(auth: AuthActor) -> None:
    ada = user(auth, "ada")
    stolen, own = auth.login("ada", PASSWORD), auth.login("ada", PASSWORD)
    actor = auth.authenticate(own)
    auth.change_password(ada.user_id, PASSWORD, OTHER_PASSWORD, actor=actor)
    assert auth.verify(own).sub == ada.user_id
    with pytest.raises(AuthenticationFailedError):
        auth.verify(stolen)
    with pytest.raises(InvalidCredentialsError):
        auth.login("ada", PASSWORD)
    assert auth.login("ada", OTHER_PASSWORD).user_id == ada.user_id


def test_the_old_password_must_be_known_and_cannot_be_guessed_without_end(auth: AuthActor) -> None:
    actor = signed_in(auth, "ada")
    for _ in range(5):
        with pytest.raises(InvalidCredentialsError):
            auth.change_password(actor.id, OTHER_PASSWORD, "yet another passphrase", actor=actor)
    with pytest.raises(LoginThrottledError):
        auth.change_password(actor.id, PASSWORD, "yet another passphrase", actor=actor)


def test_a_weak_new_password_leaves_the_old_one_and_all_sign_ins(auth: AuthActor) -> None:
    ada = user(auth, "ada")
    tokens = auth.login("ada", PASSWORD)
    with pytest.raises(PasswordTooWeakError):
        auth.change_password(ada.user_id, PASSWORD, "12345678")
    assert auth.verify(tokens).sub == auth.login("ada", PASSWORD).user_id


def test_a_disabled_account_is_out_at_once_and_enabling_brings_no_sign_in_back(
    auth: AuthActor, store: DeltaStore, passwords: Passwords, clock: Clock
) -> None:
    ada = user(auth, "ada")
    tokens = auth.login("ada", PASSWORD)
    with AuthActor(store, passwords=passwords, clock=clock) as elsewhere:
        elsewhere.verify(tokens)
        auth.disable(ada.user_id)
        for accounts in (auth, elsewhere):
            with pytest.raises((AuthenticationFailedError, AccountDisabledError)):
                accounts.verify(tokens)
    with pytest.raises(AccountDisabledError):
        auth.login("ada", PASSWORD)
    auth.enable(ada.user_id)
    with pytest.raises(AuthenticationFailedError):
        auth.verify(tokens)
    assert auth.login("ada", PASSWORD).user_id == ada.user_id


def test_a_rejected_account_cannot_sign_in_until_it_is_approved(auth: AuthActor) -> None:
    made = auth.register("ada", "ada@example.com", PASSWORD)
    auth.reject(made.user_id)
    with pytest.raises(AccountDisabledError, match="rejected"):
        auth.login("ada", PASSWORD)
    auth.approve(made.user_id)
    assert auth.login("ada", PASSWORD).user_id == made.user_id


def test_a_new_role_and_tier_count_from_the_next_request_on(auth: AuthActor) -> None:
    ada = user(auth, "ada", tier=SubscriptionTier.FREE)
    tokens = auth.login("ada", PASSWORD)
    auth.change_role(ada.user_id, Role.ADMIN)
    auth.change_tier(ada.user_id, SubscriptionTier.PRO)
    claims = auth.verify(tokens)
    assert (claims.role, claims.tier) == (Role.ADMIN, SubscriptionTier.PRO)


def test_a_forgotten_password_is_replaced_and_the_wait_forgiven(auth: AuthActor) -> None:
    ada = user(auth, "ada")
    for _ in range(5):
        with pytest.raises(InvalidCredentialsError):
            auth.login("ada", OTHER_PASSWORD)
    auth.set_password(ada.user_id, OTHER_PASSWORD)
    assert auth.login("ada", OTHER_PASSWORD).user_id == ada.user_id
