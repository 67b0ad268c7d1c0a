"""Passwords: the policy for new ones, and Argon2id, for few at a time and behind everything else.

Hashing is meant to be slow. With a bounded queue a flood of sign-ins slows other sign-ins down and is turned away in
the end, but never holds up a check of a token, a query or the mount.
"""

from __future__ import annotations

import os
import secrets
import sys
import threading
import unicodedata
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError, VerifyMismatchError

from lakehouse_platform.errors import AuthenticationFailedError, PasswordTooWeakError, RateLimitedError
from lakehouse_platform.identity.closing import Closing

MAX_PASSWORD_BYTES = 1024
# zxcvbn's scale is 0 to 4: 3 stands for "safely unguessable", above 10^8 guesses (zxcvbn's README).
LEAST_SCORE = 3
# zxcvbn takes quadratic time and refuses more characters than these; what is behind them can only make it better.
_MOST_SCORED = 72
# Each one in progress takes 64 MiB (Argon2id's second recommended option, RFC 9106 §4, argon2-cffi's default).
_MOST_AT_ONCE = 4
_QUEUE = 32
# When the queue is full, a place in it is free again after one hash.
_RETRY_AFTER_S = 1.0

# A tenth of the time that a thread with niceness 0 gets on the same core (sched(7): 1.25 for each step).
_NICENESS = 10

_T = TypeVar("_T")

# zxcvbn keeps the words of the user in a global table while it works.
_zxcvbn_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class Check:
    """What a check of a password found.

    Attributes:
        ok: Whether it is the right one.
        needs_rehash: Whether the hash was made with weaker parameters than today's: hash the password anew.
    """

    ok: bool
    needs_rehash: bool = False


class Passwords(Closing):
    """Hashes and checks passwords. Safe to share between threads."""

    def __init__(
        self, at_once: int | None = None, queue: int = _QUEUE, *, hasher: PasswordHasher | None = None
    ) -> None:
        """Prepare; nothing is hashed yet.

        Args:
            at_once: Passwords that are hashed at the same time; None for as many as there are cores for the threads of
                one hash (its parallelism), at most 4: more would gain nothing.
            queue: Passwords that may wait for their turn; further ones are refused.
            hasher: The parameters of Argon2id; None for the library's defaults.
        """
        self._hasher = hasher or PasswordHasher()
        cores_each = (os.cpu_count() or 1) // self._hasher.parallelism
        size = at_once or min(_MOST_AT_ONCE, max(1, cores_each))
        self._pool = ThreadPoolExecutor(size, thread_name_prefix="passwords")
        self._places = threading.BoundedSemaphore(size + queue)
        self._waiting = 0
        self._waiting_lock = threading.Lock()
        self._nobody_lock = threading.Lock()
        self._nobody: str | None = None

    def require_place(self) -> None:
        """Refuse at once what would have no place in the queue.

        Raises:
            RateLimitedError: Too many passwords wait.
        """
        self._enter()
        self._places.release()

    def require_strong(self, password: str, inputs: Iterable[str] = ()) -> None:
        """Refuse a new password that is easy to guess.

        Args:
            password: The new password.
            inputs: What an attacker knows of the user, such as the user name and the e-mail address.

        Raises:
            PasswordTooWeakError: It is too easy to guess or too long; the message says what would be better.
            RateLimitedError: Too many passwords wait to be looked at.
        """
        text = _normal(password)
        if text is None:
            raise _too_long()
        score, advice = self._run(lambda: _scored(text[:_MOST_SCORED], _words(inputs)))
        if score < LEAST_SCORE:
            raise PasswordTooWeakError(
                f"The password is too easy to guess: choose another one. {advice}".rstrip(), score=score
            )

    def hash(self, password: str) -> str:
        """Return the Argon2id hash of a password, with its salt and parameters.

        Raises:
            PasswordTooWeakError: It is longer than 1024 bytes, or no text that can be written as UTF-8.
            RateLimitedError: Too many passwords wait to be hashed.
        """
        text = _normal(password)
        if text is None:
            raise _too_long()
        return self._run(lambda: self._hasher.hash(text))

    def verify(self, password_hash: str, password: str) -> Check:
        """Check a password against a hash.

        Raises:
            AuthenticationFailedError: What is stored is no hash of a password.
            RateLimitedError: Too many passwords wait to be checked.
        """
        text = _normal(password)
        if text is None:
            return self.verify_nobody(password)
        # Made here too, or else the first unknown name would be told by the time that making it takes.
        self._dummy_hash()
        return self._run(lambda: self._verify(password_hash, text))

    def verify_nobody(self, password: str) -> Check:
        """Spend the time of a check when there is no user: how long a refusal takes must not tell who exists.

        Raises:
            RateLimitedError: Too many passwords wait to be checked.
        """
        dummy, text = self._dummy_hash(), _normal(password) or ""
        self._run(lambda: self._verify(dummy, text))
        return Check(ok=False)

    def close(self) -> None:
        """Let the passwords in progress end, and end the threads."""
        self._pool.shutdown()

    def _verify(self, password_hash: str, text: str) -> Check:
        try:
            self._hasher.verify(password_hash, text)
        except VerifyMismatchError:
            return Check(ok=False)
        except (InvalidHashError, VerificationError) as error:
            raise AuthenticationFailedError(
                "The stored password of this account cannot be read: an administrator must set a new one."
            ) from error
        return Check(ok=True, needs_rehash=self._hasher.check_needs_rehash(password_hash))

    def _dummy_hash(self) -> str:
        """Return the hash of a password that nobody has, made once with the parameters of all others."""
        with self._nobody_lock:
            if self._nobody is None:
                self._nobody = _apart(lambda: self._hasher.hash(secrets.token_hex(32)), is_flood=False)
            return self._nobody

    def _run(self, act: Callable[[], _T]) -> _T:
        self._enter()
        with self._waiting_lock:
            self._waiting += 1
        try:
            return self._pool.submit(self._begin, act).result()
        finally:
            self._places.release()

    def _enter(self) -> None:
        if not self._places.acquire(blocking=False):
            raise RateLimitedError(
                "Too many sign-ins are in progress: try again in a moment.", retry_after=_RETRY_AFTER_S
            )

    def _begin(self, act: Callable[[], _T]) -> _T:
        with self._waiting_lock:
            self._waiting -= 1
            is_flood = self._waiting > 0
        return _apart(act, is_flood=is_flood)


def _apart(act: Callable[[], _T], *, is_flood: bool) -> _T:
    """Do something in a thread of its own, because a thread that has stepped back may not come forward again."""
    done = Future[_T]()

    def work() -> None:
        try:
            # Where it may not (some containers forbid it), passwords are checked all the same.
            with suppress(OSError):
                _step_back(is_flood=is_flood)
            done.set_result(act())
        except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
            done.set_exception(error)

    threading.Thread(target=work, name="password", daemon=True).start()
    return done.result()


def _step_back(*, is_flood: bool) -> None:
    """Let other threads go first: where all cores hash, checks of tokens would wait for them.

    Who signs in alone gets some of each core, even beside a query that takes all. In a flood passwords get only what is
    left, of half of the cores: a thread that wakes up then never waits for one. Without that 99 of 100 checks of tokens
    took up to 17 ms on two cores, with it up to 4.2 (measured by `campaigns.login_flood`).
    """
    # Only Linux gives each thread a priority of its own, which the threads of Argon2 take over (sched(7)).
    if sys.platform != "linux":
        return
    if is_flood:
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, cores[len(cores) // 2 :])
    else:
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)


def _normal(password: str) -> str | None:
    """Return the password as it is hashed; None if it is too long or no text.

    The same characters may be typed as different code points: NFKC, as NIST SP 800-63B §5.1.1.2 advises.
    """
    if len(password) > MAX_PASSWORD_BYTES:
        return None
    text = unicodedata.normalize("NFKC", password)
    # A lone surrogate has no UTF-8; with "surrogatepass" it would, and other programs could never repeat it.
    if any("\ud800" <= character <= "\udfff" for character in text):
        return None
    return text if len(text.encode()) <= MAX_PASSWORD_BYTES else None


def _words(inputs: Iterable[str]) -> list[str]:
    """Return what is known of the user, and the parts of an e-mail address by themselves."""
    given = [text for text in inputs if text]
    return [*given, *(part for text in given for part in text.replace("@", ".").split(".") if part)]


def _scored(text: str, words: list[str]) -> tuple[int, str]:
    # Here, not at the top: its word lists take 0.2 s to load, and only new passwords need them.
    import zxcvbn

    if not text:
        return 0, ""
    with _zxcvbn_lock:
        found = cast("dict[str, Any]", zxcvbn.zxcvbn(text, words))
    # Its advice is made of fixed sentences: it repeats nothing of the password.
    feedback = found["feedback"]
    return int(found["score"]), " ".join(filter(None, [feedback["warning"], *feedback["suggestions"]]))


def _too_long() -> PasswordTooWeakError:
    return PasswordTooWeakError(
        f"A password has at most {MAX_PASSWORD_BYTES} bytes of UTF-8 text: choose a shorter one.",
        most_bytes=MAX_PASSWORD_BYTES,
    )
