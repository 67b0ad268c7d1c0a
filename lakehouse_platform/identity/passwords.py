"""Passwords: the policy for new ones, and Argon2id in a small pool of threads of its own.

Hashing is meant to be slow. In a pool with a bounded queue a flood of sign-ins slows other sign-ins down and is turned
away in the end, but never holds up a check of a token, a query or the mount.
"""

from __future__ import annotations

import os
import secrets
import sys
import threading
import unicodedata
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
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
# One hash takes 50 to 250 ms of a core (measured on two cores), so more threads than cores gain nothing; and each
# one in progress takes 64 MiB (Argon2id's second recommended option, RFC 9106 §4, argon2-cffi's default).
_MOST_THREADS = 4
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
    """Hashes and checks passwords. Safe to share between threads; `close` ends its threads."""

    def __init__(
        self, pool_size: int | None = None, queue: int = _QUEUE, *, hasher: PasswordHasher | None = None
    ) -> None:
        """Start without any thread: they come with the first passwords.

        Args:
            pool_size: Passwords that are hashed at the same time; None for one per core, at most 4.
            queue: Passwords that may wait for a thread; further ones are refused.
            hasher: The parameters of Argon2id; None for the library's defaults.
        """
        size = pool_size or min(_MOST_THREADS, os.cpu_count() or 1)
        self._hasher = hasher or PasswordHasher()
        self._pool = ThreadPoolExecutor(size, thread_name_prefix="passwords", initializer=_step_back)
        self._places = threading.BoundedSemaphore(size + queue)
        self._nobody_lock = threading.Lock()
        self._nobody: Future[str] | None = None

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
                self._nobody = self._pool.submit(self._hasher.hash, secrets.token_hex(32))
            made = self._nobody
        return made.result()

    def _run(self, act: Callable[[], _T]) -> _T:
        if not self._places.acquire(blocking=False):
            raise RateLimitedError(
                "Too many sign-ins are in progress: try again in a moment.", retry_after=_RETRY_AFTER_S
            )
        try:
            return self._pool.submit(act).result()
        finally:
            self._places.release()


def _step_back() -> None:
    """Let every other thread of this process go first: where all cores hash, checks of tokens would wait for them."""
    # Only Linux gives each thread a niceness of its own, which the threads of Argon2 take over (setpriority(2)).
    if sys.platform == "linux":
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
