"""Signing in and out: password, session and tokens, in the order that tells an attacker least."""

from __future__ import annotations

import uuid
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from lakehouse_platform.errors import (
    AccountDisabledError,
    AccountPendingError,
    AuthenticationFailedError,
    InvalidCredentialsError,
    RateLimitedError,
    UserNotFoundError,
)
from lakehouse_platform.identity.passwords import Passwords
from lakehouse_platform.identity.sessions import Issued, Opened, SessionRecord, Sessions
from lakehouse_platform.identity.throttle import Throttle
from lakehouse_platform.identity.tokens import Claims, TokenSigner
from lakehouse_platform.identity.users import UserRecord, Users
from lakehouse_platform.model.actors import AccountStatus, Actor
from lakehouse_platform.services.gate import Note
from lakehouse_platform.settings import LakehouseConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """What a sign-in gives; as text it is the access token, so that it can be handed to `verify`.

    Attributes:
        access_token: Shown with each request.
        refresh_token: Good for one renewal.
        expires_at: When the access token ends.
        user_id: Who signed in.
        session_id: The sign-in.
    """

    access_token: str = field(repr=False)
    refresh_token: str | None = field(repr=False)
    expires_at: datetime
    user_id: str
    session_id: str

    def __str__(self) -> str:
        return self.access_token


class SignIns:
    """Sign-ins of a lakehouse's users. Safe to share between threads."""

    def __init__(
        self,
        config: LakehouseConfig,
        users: Users,
        sessions: Sessions,
        passwords: Passwords,
        signer: TokenSigner,
        throttle: Throttle,
    ) -> None:
        self._life = timedelta(hours=config.session_duration_hours)
        self._renewable = timedelta(days=config.refresh_duration_days)
        self._users = users
        self._sessions = sessions
        self._passwords = passwords
        self._signer = signer
        self._throttle = throttle

    def login(self, login: str, password: str, actor: Actor, note: Note, now: datetime) -> Tokens:
        """Check name and password and begin a session.

        Args:
            login: User name or e-mail address.
            password: The password.
            actor: Whence the request comes.
            note: Learns who it is.
            now: The time.

        Raises:
            InvalidCredentialsError: No such user, or another password; which of them is not told.
            LoginThrottledError: Too many failed before.
            RateLimitedError: Too many passwords are being checked.
            AccountPendingError, AccountDisabledError: The password is right, but the account cannot sign in.
        """
        user = self.checked(login, password, actor.ip_address, note, now)
        require_active(user)
        opened = self._sessions.open(
            user.user_id,
            lambda session_id: self._issue(user, session_id, now),
            now,
            ip_address=actor.ip_address,
            user_agent=actor.user_agent,
        )
        self._require_unchanged(user, opened)
        return _tokens(opened, self._life, now)

    def checked(
        self, login: str, password: str, ip_address: str | None, note: Note, now: datetime
    ) -> UserRecord:
        """Return the user whose name and password these are, whether the account can sign in or not.

        Raises:
            InvalidCredentialsError, LoginThrottledError, RateLimitedError: See `login`.
        """
        # Before anything is counted and taken back again: in a flood most end here.
        self._passwords.require_place()
        with self._attempt(login, ip_address, now):
            user = self._users.by_login(login)
            if user is None or user.is_service:
                self._passwords.verify_nobody(password)
                raise _wrong()
            note.user_id = user.user_id
            check = self._passwords.verify(user.password_hash, password)
            if not check.ok:
                raise _wrong()
        self._throttle.succeeded(login, ip_address)
        return self._rehashed(user, password) if check.needs_rehash else user

    def _rehashed(self, user: UserRecord, password: str) -> UserRecord:
        def same_password(found: UserRecord, _: object) -> None:
            if found.password_hash != user.password_hash:
                raise _wrong()

        return self._users.change(
            user.user_id, only_if=same_password, password_hash=self._passwords.hash(password)
        )

    def refresh(self, refresh_token: str, note: Note, now: datetime) -> Tokens:
        """Renew a session; both its tokens are replaced.

        Raises:
            TokenInvalidError, TokenExpiredError, TokenReuseError: See `Sessions.refresh`.
            AuthenticationFailedError, AccountDisabledError: The account is gone or cannot sign in any more.
        """

        def learn(user_id: str) -> None:
            note.user_id = user_id

        def issue(session: SessionRecord) -> Issued:
            return self._issue(self._active(session.user_id), session.session_id, now)

        opened = self._sessions.refresh(refresh_token, issue, now, learn=learn)
        return _tokens(opened, self._life, now)

    def verify(self, token: str, now: datetime) -> Claims:
        """Return what a token says, with the role and tier that the user has now.

        Raises:
            TokenInvalidError, TokenExpiredError: See `TokenSigner.verify`.
            AuthenticationFailedError: Its session has ended, the token was renewed, or the account is gone.
            AccountDisabledError: The account cannot sign in any more.
        """
        claims = self._signer.verify(token, now)
        session = self._sessions.by_token(token, now)
        if session is None or session.session_id != claims.sid:
            raise AuthenticationFailedError("This sign-in has ended: sign in again.")
        user = self._active(claims.sub)
        return replace(claims, role=user.role, tier=user.tier)

    def _active(self, user_id: str) -> UserRecord:
        try:
            user = self._users.by_id(user_id)
        except UserNotFoundError as error:
            raise AuthenticationFailedError("The account of this sign-in is gone: sign in anew.") from error
        require_active(user)
        return user

    def _issue(self, user: UserRecord, session_id: str, now: datetime) -> Issued:
        claims = Claims(
            sub=user.user_id,
            sid=session_id,
            jti=uuid.uuid4().hex,
            role=user.role,
            tier=user.tier,
            issued_at=now,
            expires_at=now + self._life,
        )
        return Issued(
            token=self._signer.issue(claims),
            expires_at=claims.expires_at,
            refresh_expires_at=now + self._renewable,
        )

    @contextmanager
    def _attempt(self, login: str, ip_address: str | None, now: datetime) -> Generator[None]:
        """Count an attempt to guess a password; one that never came to a check is taken back."""
        self._throttle.begin(login, ip_address, now)
        try:
            yield
        except RateLimitedError:
            self._throttle.withdraw(login, ip_address)
            raise

    def _require_unchanged(self, user: UserRecord, opened: Opened) -> None:
        """End the new session if the account was disabled or its password changed while it began."""
        newest = self._users.by_id(user.user_id)
        if newest.is_active and newest.password_hash == user.password_hash:
            return
        self._sessions.revoke(opened.session.session_id)
        require_active(newest)
        raise _wrong()


def require_active(user: UserRecord) -> None:
    """Refuse an account that cannot sign in.

    Raises:
        AccountPendingError: It waits for approval.
        AccountDisabledError: It was rejected or disabled.
    """
    if user.status is AccountStatus.PENDING:
        raise AccountPendingError("This account waits for approval: ask an administrator to approve it.")
    if user.status is not AccountStatus.ACTIVE:
        raise AccountDisabledError(f"This account was {user.status}: ask an administrator.")


def _tokens(opened: Opened, life: timedelta, now: datetime) -> Tokens:
    return Tokens(
        access_token=opened.token,
        refresh_token=opened.refresh_token,
        expires_at=(now + life).replace(microsecond=0),  # tokens tell whole seconds
        user_id=opened.session.user_id,
        session_id=opened.session.session_id,
    )


def _wrong() -> InvalidCredentialsError:
    return InvalidCredentialsError(
        "The user name, e-mail address or password is wrong: check them and try again."
    )
