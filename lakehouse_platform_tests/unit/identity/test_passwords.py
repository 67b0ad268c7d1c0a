"""Passwords: which are taken, what a check tells, and that a flood of them is turned away."""

from __future__ import annotations

import errno
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from argon2 import PasswordHasher, Type, extract_parameters
from argon2.profiles import CHEAPEST, RFC_9106_LOW_MEMORY

from lakehouse_platform.errors import AuthenticationFailedError, PasswordTooWeakError, RateLimitedError
from lakehouse_platform.identity.passwords import MAX_PASSWORD_BYTES, Check, Passwords

GOOD = "StrongP@ss123!"


class Gate(PasswordHasher):
    """The real hasher, which waits at a door: so that tests know what is in progress without a sleep."""

    def __init__(self) -> None:
        super().__init__(time_cost=1, memory_cost=8, parallelism=1)
        self.open = threading.Event()
        self.entered = threading.Semaphore(0)

    def hash(self, password: str | bytes, *, salt: bytes | None = None) -> str:
        self.entered.release()
        assert self.open.wait(30)
        return super().hash(password, salt=salt)


@pytest.fixture
def passwords() -> Iterator[Passwords]:
    with Passwords(2, hasher=PasswordHasher.from_parameters(CHEAPEST)) as made:
        yield made


def test_the_default_is_argon2id_as_the_library_recommends() -> None:
    with Passwords() as default:
        parameters = extract_parameters(default.hash(GOOD))
    assert parameters.type is Type.ID
    assert parameters == RFC_9106_LOW_MEMORY


def test_the_right_password_is_told_from_a_wrong_one(passwords: Passwords) -> None:
    made = passwords.hash(GOOD)
    assert GOOD not in made
    assert passwords.verify(made, GOOD) == Check(ok=True, needs_rehash=False)
    assert passwords.verify(made, GOOD + " ").ok is False
    assert passwords.verify(made, "").ok is False


def test_the_same_password_has_another_hash_each_time(passwords: Passwords) -> None:
    assert passwords.hash(GOOD) != passwords.hash(GOOD)


def test_a_hash_with_other_parameters_is_to_be_made_anew(passwords: Passwords) -> None:
    old = PasswordHasher(time_cost=2, memory_cost=16, parallelism=1).hash(GOOD)
    assert passwords.verify(old, GOOD) == Check(ok=True, needs_rehash=True)
    assert passwords.verify(old, "wrong") == Check(ok=False, needs_rehash=False)


def test_nobodys_password_is_never_right(passwords: Passwords) -> None:
    assert passwords.verify_nobody(GOOD) == Check(ok=False)
    assert passwords.verify_nobody("") == Check(ok=False)
    assert passwords.verify_nobody("x" * 5000) == Check(ok=False)


def test_nobody_takes_as_long_as_somebody() -> None:
    def seconds(check: Callable[[], Check]) -> float:
        started = time.perf_counter()
        assert check().ok is False
        return time.perf_counter() - started

    with Passwords(1, hasher=PasswordHasher(time_cost=2, memory_cost=8192, parallelism=1)) as made:
        stored = made.hash("another password")
        made.verify_nobody(GOOD)
        # Taken in turn, and the best of each: a busy machine slows both down.
        pairs = [
            (seconds(lambda: made.verify(stored, GOOD)), seconds(lambda: made.verify_nobody(GOOD)))
            for _ in range(15)
        ]
    somebody, nobody = min(pair[0] for pair in pairs), min(pair[1] for pair in pairs)
    # A refusal without a hash would take microseconds, and one with two hashes twice as long.
    assert 0.6 < nobody / somebody < 1.7


def test_how_it_was_typed_makes_no_difference(passwords: Passwords) -> None:
    composed, decomposed = "Stra\u00dfe-caf\u00e9", "Stra\u00dfe-cafe\u0301"
    assert passwords.verify(passwords.hash(composed), decomposed).ok


@pytest.mark.parametrize("text", ["x" * (MAX_PASSWORD_BYTES + 1), "\u00e9" * 513, "a\ud800"])
def test_what_is_too_long_or_no_text_is_refused_and_never_right(passwords: Passwords, text: str) -> None:
    with pytest.raises(PasswordTooWeakError, match="1024 bytes"):
        passwords.hash(text)
    with pytest.raises(PasswordTooWeakError, match="1024 bytes"):
        passwords.require_strong(text)
    assert passwords.verify(passwords.hash(GOOD), text).ok is False


def test_the_longest_password_counts_to_its_last_byte(passwords: Passwords) -> None:
    longest = "x" * MAX_PASSWORD_BYTES
    made = passwords.hash(longest)
    assert passwords.verify(made, longest).ok
    assert not passwords.verify(made, longest[:-1]).ok


@pytest.mark.parametrize("stored", ["", "erased", "$argon2id$v=19$m=8,t=1,p=1$broken"])
def test_a_stored_text_that_is_no_hash_is_told(passwords: Passwords, stored: str) -> None:
    with pytest.raises(AuthenticationFailedError, match="administrator"):
        passwords.verify(stored, GOOD)


@pytest.mark.parametrize(
    "text", [GOOD, "correct horse battery staple", "xK9#mQ2$vL", "x7" * 4 + "Qz!pL" * 200]
)
def test_a_password_that_is_hard_to_guess_is_taken(passwords: Passwords, text: str) -> None:
    passwords.require_strong(text, ["bernoulli", "bernoulli@example.com"])


@pytest.mark.parametrize("text", ["", "password", "P@ssw0rd1", "qwertyuiop", "aaaaaaaaaaaa", "12345678901"])
def test_a_password_that_is_easy_to_guess_is_refused(passwords: Passwords, text: str) -> None:
    with pytest.raises(PasswordTooWeakError, match="too easy to guess") as caught:
        passwords.require_strong(text)
    # "password" is a word of the message itself.
    assert text in ("", "password") or text not in caught.value.message


def test_the_refusal_says_what_would_be_better(passwords: Passwords) -> None:
    with pytest.raises(PasswordTooWeakError, match=r"common password.*Add another word"):
        passwords.require_strong("password")


@pytest.mark.parametrize("text", ["leonhard.euler", "leonhard.euler@basel.example", "Leonhard.Euler1"])
def test_names_of_the_user_are_no_password(passwords: Passwords, text: str) -> None:
    with pytest.raises(PasswordTooWeakError):
        passwords.require_strong(text, ["leonhard.euler", "leonhard.euler@basel.example"])


def test_one_users_names_do_not_count_against_another(passwords: Passwords) -> None:
    passwords.require_strong("zanzibarquux-velope", ["someone"])
    with pytest.raises(PasswordTooWeakError):
        passwords.require_strong("zanzibarquux-velope", ["zanzibarquux-velope"])
    passwords.require_strong("zanzibarquux-velope", ["someone"])


class Observed(Gate):
    """Notes how the thread is scheduled in which each password is hashed."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[int, int, int]] = []

    def hash(self, password: str | bytes, *, salt: bytes | None = None) -> str:
        thread = threading.get_native_id()
        niceness, cores = os.getpriority(os.PRIO_PROCESS, thread), len(os.sched_getaffinity(0))
        self.seen.append((os.sched_getscheduler(0), niceness, cores))
        return super().hash(password, salt=salt)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux schedules each thread by itself")
def test_passwords_stand_back_and_in_a_flood_take_only_what_is_left() -> None:
    observed = Observed()
    own = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
    with Passwords(1, queue=2, hasher=observed) as small:
        callers = [threading.Thread(target=small.hash, args=(GOOD,)) for _ in range(3)]
        callers[0].start()
        assert observed.entered.acquire(timeout=30)
        for caller in callers[1:]:
            caller.start()
        assert _soon(lambda: _is_full(small))
        observed.open.set()
        for caller in callers:
            caller.join(30)
    cores = len(os.sched_getaffinity(0))
    # The second has another one waiting behind it.
    assert observed.seen == [
        (os.SCHED_OTHER, 10, cores),
        (os.SCHED_IDLE, own, -(-cores // 2)),
        (os.SCHED_OTHER, 10, cores),
    ]
    assert os.getpriority(os.PRIO_PROCESS, threading.get_native_id()) == own


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux schedules each thread by itself")
@pytest.mark.parametrize("call", ["setpriority", "sched_setscheduler", "sched_setaffinity"])
def test_passwords_are_checked_where_the_system_lets_no_thread_stand_back(
    monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    def forbidden(*_: object) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, call, forbidden)
    with Passwords(1, queue=8, hasher=PasswordHasher.from_parameters(CHEAPEST)) as made:
        stored = made.hash(GOOD)
        with ThreadPoolExecutor(8) as callers:
            checks = [callers.submit(made.verify, stored, GOOD) for _ in range(8)]
            assert all(check.result(30).ok for check in checks)


def test_a_flood_is_turned_away_and_the_queue_is_free_again_afterwards() -> None:
    gate = Gate()
    with Passwords(1, queue=2, hasher=gate) as small:
        callers = [threading.Thread(target=small.hash, args=(GOOD,)) for _ in range(3)]
        callers[0].start()
        assert gate.entered.acquire(timeout=30)  # one in progress
        for caller in callers[1:]:
            caller.start()
        assert _soon(lambda: _is_full(small))  # two more wait for their turn
        with pytest.raises(RateLimitedError, match="try again") as caught:
            small.hash(GOOD)
        assert caught.value.retry_after > 0
        gate.open.set()
        for caller in callers:
            caller.join(30)
        assert small.hash(GOOD).startswith("$argon2id$")


def _is_full(passwords: Passwords) -> bool:
    try:
        passwords.require_place()
    except RateLimitedError:
        return True
    return False


def _soon(happened: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if happened():
            return True
    return False
