"""Who is signed in at a place: the tokens, in a file that only this user can read."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import datetime
from hashlib import blake2s
from pathlib import Path
from typing import Any, Self

from lakehouse_platform.errors import (
    AuthError,
    InvalidTimestampError,
    StorageIoError,
    StoragePermissionError,
    TokenExpiredError,
)
from lakehouse_platform.model.times import parse_rfc3339, to_rfc3339
from lakehouse_platform.private_files import locked, private_directory, replace_private, reported


@dataclass(frozen=True, slots=True, kw_only=True)
class SignIn:
    """A sign-in as a command keeps it for the next one.

    Attributes:
        place: Where it counts: the location of a lakehouse, or the address of a server.
        user_id: Who signed in.
        session_id: The sign-in's id, if it is known.
        access_token: Shown with each request.
        refresh_token: Good for one renewal; None if it cannot be renewed.
        expires_at: When the access token ends.
    """

    place: str
    user_id: str
    session_id: str | None
    access_token: str = field(repr=False)
    refresh_token: str | None = field(repr=False)
    expires_at: datetime

    def to_bytes(self) -> bytes:
        """Return what the file holds."""
        return json.dumps({**asdict(self), "expires_at": to_rfc3339(self.expires_at)}).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Return the sign-in that a file holds.

        Raises:
            ValueError, TypeError, KeyError, InvalidTimestampError: It holds none.
        """
        facts: dict[str, Any] = json.loads(data)
        if not all(isinstance(facts[name], str) for name in ("access_token", "user_id", "expires_at")):
            raise TypeError("a field is no text")
        expires_at = parse_rfc3339(facts.pop("expires_at"))
        return cls(**facts, expires_at=expires_at)


class SignInFile:
    """The file with the sign-in at one place. Commands that run at once may share it."""

    def __init__(self, directory: Path, place: str) -> None:
        """Choose the file; nothing is made or read yet.

        Args:
            directory: A directory for this user alone.
            place: Where the sign-in counts; each place has a file of its own.
        """
        self.place = place
        self._directory = directory
        digest = blake2s(place.encode(), digest_size=8).hexdigest()
        self._path = directory / f"sign_in_{digest}.json"
        self._lock = directory / f"sign_in_{digest}.lock"

    def read(self) -> SignIn | None:
        """Return the sign-in; None if nobody is signed in.

        Raises:
            StoragePermissionError: Others can read the file, or this user cannot.
            StorageIoError: The file is damaged.
        """
        with reported(self._path, "The sign-in"):
            if not self._path.exists():
                return None
            if self._path.stat().st_mode & 0o077:
                raise StoragePermissionError(
                    f"Others can read the sign-in in {self._path}: run `lakehouse logout` and sign in again.",
                    path=str(self._path),
                )
            data = self._path.read_bytes()
        try:
            return SignIn.from_bytes(data)
        except (ValueError, TypeError, KeyError, InvalidTimestampError) as error:
            raise StorageIoError(
                f"The sign-in in {self._path} is damaged: run `lakehouse logout` and sign in again.",
                path=str(self._path),
            ) from error

    def keep(self, sign_in: SignIn) -> None:
        """Keep a sign-in in place of the one before."""
        with self._locked():
            replace_private(self._path, sign_in.to_bytes())

    def forget(self) -> bool:
        """Remove the file; tell whether there was one."""
        with reported(self._path, "The sign-in"):
            if not self._path.exists():
                return False
        with self._locked(), reported(self._path, "The sign-in"):
            self._path.unlink(missing_ok=True)
        return True

    def make_private(self) -> None:
        """Take the file away from others who could read it, so that what it holds can be ended."""
        with reported(self._path, "The sign-in"):
            if self._path.exists():
                self._path.chmod(0o600)

    def current(
        self, renew: Callable[[str], SignIn], now: datetime, *, refused: SignIn | None = None
    ) -> SignIn | None:
        """Return the sign-in, renewed if its access token is past its time; None if nobody is signed in.

        A refresh token is good for one use, and a second use ends the session: so one command renews, and the others
        wait for it and take what it got.

        Args:
            renew: Makes a new sign-in from a refresh token.
            now: The time.
            refused: A sign-in whose access token was refused as past its time, whatever the clock here says.

        Raises:
            TokenExpiredError: Its time is over and it cannot be renewed.
        """
        kept = self.read()
        if kept is None or not _is_over(kept, now, refused):
            return kept
        with self._locked():
            kept = self.read()
            if kept is None or not _is_over(kept, now, refused):
                return kept
            if kept.refresh_token is None:
                raise TokenExpiredError(
                    "Your sign-in is past its time: sign in again with `lakehouse login`."
                )
            renewed = renew(kept.refresh_token)
            replace_private(self._path, renewed.to_bytes())
            return renewed

    def after_refusal(
        self, kept: SignIn | None, error: AuthError, renew: Callable[[str], SignIn], now: datetime
    ) -> SignIn | None:
        """Return the sign-in to try once more with, when one was refused; None if there is no other.

        Another command may have renewed it meanwhile, or the server's clock may be ahead of the one here.
        """
        if kept is None:
            return None
        if isinstance(error, TokenExpiredError):
            return self.current(renew, now, refused=kept)
        found = self.read()
        return found if found and found.access_token != kept.access_token else None

    @contextmanager
    def _locked(self) -> Generator[None]:
        private_directory(self._directory)
        with locked(self._lock):
            yield


def _is_over(kept: SignIn, now: datetime, refused: SignIn | None) -> bool:
    if refused is not None and kept.access_token == refused.access_token:
        return True
    return now >= kept.expires_at
