"""Sign-ins: one row each, only hashes of their tokens, and a refresh token that is good for one use.

A refresh token is the session's id and 32 random bytes. Renewing a session gives it a new one. Whoever shows an old one
has kept it, or has stolen it: the session ends (RFC 9700 §4.14.2).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Self, TypeAlias

from lakehouse_platform.errors import TokenExpiredError, TokenInvalidError, TokenReuseError
from lakehouse_platform.identity.mirror import Mirror, Row, Seen, readable
from lakehouse_platform.identity.swapping import swapped
from lakehouse_platform.model.times import parse_rfc3339, to_rfc3339
from lakehouse_platform.store.delta_store import DeltaStore

TABLE = "sessions"
_BY_TOKEN, _BY_USER = "token", "user"
_ID_BYTES = 16
_SECRET_BYTES = 32
# A client may say anything of itself.
_MOST_ADDRESS = 64
_MOST_AGENT = 512

_Records: TypeAlias = list["SessionRecord"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRecord:
    """One sign-in.

    Attributes:
        session_id: Its id (UUID text).
        user_id: Whose it is.
        token_hash: SHA-256 of the access token that counts; earlier ones are void.
        expires_at: When neither token counts any more.
        created_at: When the user signed in.
        ip_address: Client address.
        user_agent: Client program.
        refresh_hash: SHA-256 of the refresh token that counts; None if it cannot be renewed.
        refresh_expires_at: Until when it can be renewed.
        refreshed_at: When it was last renewed.
    """

    session_id: str
    user_id: str
    token_hash: str = field(repr=False)
    expires_at: datetime
    created_at: datetime
    ip_address: str | None = None
    user_agent: str | None = None
    refresh_hash: str | None = field(default=None, repr=False)
    refresh_expires_at: datetime | None = None
    refreshed_at: datetime | None = None

    @classmethod
    def from_row(cls, row: Row) -> Self:
        """Return the session that a row of the table holds.

        Raises:
            InvalidRowsError: The row holds none.
        """
        with readable(TABLE, row["session_id"]):
            return cls(
                session_id=row["session_id"],
                user_id=row["user_id"],
                token_hash=row["token_hash"],
                expires_at=parse_rfc3339(row["expires_at"]),
                created_at=parse_rfc3339(row["created_at"]),
                ip_address=row["ip_address"],
                user_agent=row["user_agent"],
                refresh_hash=row.get("refresh_hash"),
                refresh_expires_at=_time(row.get("refresh_expires_at")),
                refreshed_at=_time(row.get("refreshed_at")),
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Issued:
    """An access token that was made for a session.

    Attributes:
        token: The token.
        expires_at: When it ends.
        refresh_expires_at: Until when the session can be renewed; None for never.
    """

    token: str = field(repr=False)
    expires_at: datetime
    refresh_expires_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Opened:
    """A session with the refresh token that exists nowhere else.

    Attributes:
        session: The session.
        token: Its access token.
        refresh_token: Good for one renewal; None if it cannot be renewed.
    """

    session: SessionRecord
    token: str = field(repr=False)
    refresh_token: str | None = field(repr=False)


class Sessions:
    """The sign-ins of a lakehouse. Safe to share between threads."""

    def __init__(
        self, store: DeltaStore, *, ending: Callable[[Mapping[str, datetime]], None] = lambda times: None
    ) -> None:
        """Open nothing yet.

        Args:
            store: The lakehouse.
            ending: Called before sessions are deleted, with when those users signed in by their ids.
        """
        self._ending = ending
        self._table = store.table(TABLE)
        self._tries = store.config.commit_retries + 1
        self._mirror: Mirror[SessionRecord] = Mirror(
            self._table,
            "session_id",
            SessionRecord.from_row,
            indexes={_BY_TOKEN: lambda one: one.token_hash, _BY_USER: lambda one: one.user_id},
        )

    def open(
        self,
        user_id: str,
        issue: Callable[[str], Issued],
        now: datetime,
        *,
        ip_address: str | None = None,
        user_agent: str | None = None,
    ) -> Opened:
        """Begin a session in one commit.

        Args:
            user_id: Who signs in.
            issue: Makes the access token for the new session's id.
            now: The time that counts.
            ip_address: Client address.
            user_agent: Client program; very long names are cut.
        """
        session_id = str(uuid.uuid4())
        issued = issue(session_id)
        refresh = _refresh_token(session_id) if issued.refresh_expires_at else None
        row = {
            "session_id": session_id,
            "user_id": user_id,
            "created_at": to_rfc3339(now),
            "ip_address": _cut(ip_address, _MOST_ADDRESS),
            "user_agent": _cut(user_agent, _MOST_AGENT),
            "refreshed_at": None,
            **_token_columns(issued, refresh),
        }
        self._table.append([row])
        return Opened(SessionRecord.from_row(row), issued.token, refresh)

    def by_id(self, session_id: str, now: datetime) -> SessionRecord | None:
        """Return a session that has not ended; None if there is none."""
        return _live(self._mirror.current().get(session_id), now)

    def by_token(self, token: str, now: datetime) -> SessionRecord | None:
        """Return the session whose access token this is; None if it has ended or the token was renewed."""
        found = self._mirror.look().find(_BY_TOKEN, _digest(token))
        return _live(found[0], now) if found else None

    def list(self, user_id: str, now: datetime) -> _Records:
        """Return a user's sessions that have not ended, the newest first."""
        found = self._mirror.look().find(_BY_USER, user_id)
        return sorted((one for one in found if _live(one, now)), key=lambda one: one.created_at, reverse=True)

    def refresh(
        self,
        refresh_token: str,
        issue: Callable[[SessionRecord], Issued],
        now: datetime,
        *,
        learn: Callable[[str], None] = lambda user_id: None,
    ) -> Opened:
        """Renew a session in one commit: both tokens are replaced, the old ones are void.

        Args:
            refresh_token: The refresh token that counts.
            issue: Makes the new access token; what it raises ends the renewal.
            now: The time that counts.
            learn: Is told the id of the user whose session it is, also if it is not renewed: the audit log must know,
                and who shows an old token must not.

        Raises:
            TokenInvalidError: It is no refresh token, or its session has ended.
            TokenExpiredError: The session cannot be renewed any more.
            TokenReuseError: It was used before: the session has been ended.
            CommitConflictError: Other processes were faster again and again; nothing was changed.
        """
        session_id = _session_of(refresh_token)

        def attempt(seen: Seen[SessionRecord]) -> Opened:
            session = seen.records.get(session_id)
            if session is None or session.refresh_hash is None:
                raise _ended()
            learn(session.user_id)
            if not hmac.compare_digest(session.refresh_hash, _digest(refresh_token)):
                # Not bound to what was seen: sign-ins at the same time must not hold this up.
                if self._delete([session]) == 0:
                    raise _ended()
                raise TokenReuseError(
                    "This refresh token was used before and may be stolen: its session was ended. Sign in again.",
                    session_id=session_id,
                )
            if session.refresh_expires_at is None or now >= session.refresh_expires_at:
                raise TokenExpiredError("The session is past its time: sign in again.")
            return self._renew(session, issue(session), now, seen.version)

        return swapped(self._mirror, attempt, tries=self._tries)

    def revoke(self, session_id: str) -> SessionRecord | None:
        """End a session in one commit and return it; None, and no commit, if there is none."""
        session = self._mirror.newest().records.get(session_id)
        if session is not None:
            self._delete([session])
        return session

    def revoke_all(self, user_id: str, *, keep: str | None = None) -> _Records:
        """End all sessions of a user in one commit and return them.

        Args:
            user_id: Whose.
            keep: Id of a session that goes on, such as the one in which the user changes the password.
        """

        def attempt(seen: Seen[SessionRecord]) -> _Records:
            ended = [one for one in seen.find(_BY_USER, user_id) if one.session_id != keep]
            if ended:
                # Right behind what was seen: no session that began meanwhile escapes.
                self._delete(ended, expected_version=seen.version)
            return ended

        return swapped(self._mirror, attempt, tries=self._tries)

    def clean_up(self, now: datetime) -> int:
        """Delete the sessions that have ended by time, in one commit, and return how many they were."""
        ended = [one for one in self._mirror.newest().records.values() if _live(one, now) is None]
        return self._delete(ended) if ended else 0

    def _renew(self, session: SessionRecord, issued: Issued, now: datetime, version: int) -> Opened:
        refresh = _refresh_token(session.session_id) if issued.refresh_expires_at else None
        columns = {"refreshed_at": to_rfc3339(now), **_token_columns(issued, refresh)}
        self._table.merge(
            [{"session_id": session.session_id, **columns, "_op": "UPDATE"}], expected_version=version
        )
        return Opened(SessionRecord.from_row(_row(session) | columns), issued.token, refresh)

    def _delete(self, ended: _Records, *, expected_version: int | None = None) -> int:
        times: dict[str, datetime] = {}
        for one in ended:
            times[one.user_id] = max(one.created_at, times.get(one.user_id, one.created_at))
        self._ending(times)
        # A merge, not a delete: the log keeps the text of a delete's predicate, and ids are personal data.
        rows = [{"session_id": one.session_id, "_op": "DELETE"} for one in ended]
        return self._table.merge(rows, expected_version=expected_version).rows_deleted


def _token_columns(issued: Issued, refresh_token: str | None) -> dict[str, Any]:
    ends = max(filter(None, [issued.expires_at, issued.refresh_expires_at]))
    return {
        "token_hash": _digest(issued.token),
        "expires_at": to_rfc3339(ends),
        "refresh_hash": _digest(refresh_token) if refresh_token else None,
        "refresh_expires_at": to_rfc3339(issued.refresh_expires_at) if issued.refresh_expires_at else None,
    }


def _row(session: SessionRecord) -> dict[str, Any]:
    return {
        "session_id": session.session_id,
        "user_id": session.user_id,
        "created_at": to_rfc3339(session.created_at),
        "ip_address": session.ip_address,
        "user_agent": session.user_agent,
    }


def _refresh_token(session_id: str) -> str:
    return base64.urlsafe_b64encode(uuid.UUID(session_id).bytes + secrets.token_bytes(_SECRET_BYTES)).decode(
        "ascii"
    )


def _session_of(refresh_token: str) -> str:
    """Return the id of the session that a refresh token belongs to.

    Raises:
        TokenInvalidError: It is no refresh token.
    """
    try:
        raw = base64.b64decode(refresh_token.encode("ascii"), altchars=b"-_", validate=True)
    except (UnicodeEncodeError, binascii.Error) as error:
        raise _no_refresh_token() from error
    # The decoder takes "+" for "-" as well.
    if (
        len(raw) != _ID_BYTES + _SECRET_BYTES
        or base64.urlsafe_b64encode(raw).decode("ascii") != refresh_token
    ):
        raise _no_refresh_token()
    return str(uuid.UUID(bytes=raw[:_ID_BYTES]))


def _ended() -> TokenInvalidError:
    return TokenInvalidError("This session has ended: sign in again.")


def _no_refresh_token() -> TokenInvalidError:
    return TokenInvalidError("That is no refresh token: use the one that the sign-in gave, or sign in again.")


def _live(session: SessionRecord | None, now: datetime) -> SessionRecord | None:
    return session if session is not None and now < session.expires_at else None


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


def _cut(text: str | None, most: int) -> str | None:
    return None if text is None else text[:most]


def _time(text: str | None) -> datetime | None:
    return None if text is None else parse_rfc3339(text)
