"""Accounts: registering, signing in and out, seeing one's own account; every call goes through the gate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

from lakehouse_platform.errors import AuthError, InvalidCredentialsError
from lakehouse_platform.identity.closing import Closing
from lakehouse_platform.identity.grants import Grant
from lakehouse_platform.identity.limits import Usage
from lakehouse_platform.identity.passwords import Passwords
from lakehouse_platform.identity.permissions import Permission, allows
from lakehouse_platform.identity.sessions import SessionRecord
from lakehouse_platform.identity.tokens import Claims
from lakehouse_platform.identity.users import UserRecord
from lakehouse_platform.model.actions import ActionType
from lakehouse_platform.model.actors import OWNER, AccountStatus, Actor, ActorKind, Role, SubscriptionTier
from lakehouse_platform.services.account_changes import require_no_superadmin
from lakehouse_platform.services.account_parts import AccountParts
from lakehouse_platform.services.administration import Administration
from lakehouse_platform.services.auditing import AuditActor
from lakehouse_platform.services.gate import Gate, Note
from lakehouse_platform.services.mount_access import MountAccess
from lakehouse_platform.services.ownership import own_or_other, upon
from lakehouse_platform.services.service_accounts import ServiceAccounts, is_api_key
from lakehouse_platform.services.sign_ins import Tokens
from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform.store.delta_store import DeltaStore


class AuthActor(Administration, ServiceAccounts, MountAccess, Closing):
    """The accounts of one lakehouse. Safe to share between threads; a context manager that closes it.

    Every operation takes the `actor` who asks. Without one the local owner of the files does, who may do everything:
    whoever serves others says for whom, with what `authenticate` returns, or with `ANONYMOUS`.

    Besides what is listed with each operation, all but `verify`, `authenticate` and `authenticate_key` raise
    `PermissionDeniedError` if the actor may not, `RateLimitedError` if the actor's limit is reached, and
    `AuditWriteFailedError` if the audit log cannot be written.
    """

    def __init__(
        self,
        store: DeltaStore,
        config: LakehouseConfig | None = None,
        *,
        audit: AuditActor | None = None,
        passwords: Passwords | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Open the accounts; system tables that are missing are made.

        Args:
            store: The lakehouse.
            config: Its settings; None for the store's.
            audit: The audit log to write to, which stays open; None for one of its own.
            passwords: What hashes passwords, which stays open; None for one of its own.
            clock: The time.

        Raises:
            ConfigError: The signing key is too short.
            StoragePermissionError, StorageIoError: The lakehouse or its state directory cannot be used.
        """
        super().__init__(AccountParts(store, config or store.config, audit, passwords, clock))

    @property
    def audit(self) -> AuditActor:
        """The audit log that it writes to, with its reports."""
        return self._parts.audit

    @property
    def gate(self) -> Gate:
        """What every operation goes through; operations on tables can go through it too."""
        return self._parts.gate

    # ── Signing in and out ────────────────────────────────────────────────────────────────────────

    def register(
        self,
        username: str,
        email: str,
        password: str,
        tier: SubscriptionTier = SubscriptionTier.FREE,
        *,
        ip_address: str | None = None,
        actor: Actor = OWNER,
    ) -> UserRecord:
        """Make an account, which waits for approval unless the setting `auto_approve` says otherwise.

        Args:
            username: 3 to 64 letters, digits, `.`, `_` and `-`.
            email: The e-mail address.
            password: The password, which is not easy to guess.
            tier: The subscription that is wished for; whoever approves may change it.
            ip_address: Where the request came from.
            actor: Who asks.

        Raises:
            UserExistsError: The user name or e-mail address is taken.
            InvalidNameError, PasswordTooWeakError: The message says what is allowed.
            RateLimitedError: Too many accounts were asked for from this address; administrators may go on.
        """
        status = AccountStatus.ACTIVE if self._parts.auto_approve else AccountStatus.PENDING

        caller = _from(actor, ip_address)

        def act(note: Note) -> UserRecord:
            now = self._parts.clock()
            # The owner asks for others where there is an address.
            if actor.kind is ActorKind.OWNER or not allows(actor, Permission.APPROVE_USER):
                self._parts.throttle.registration(caller.ip_address, now)
            user = self._parts.changes.register(username, email, password, now=now, tier=tier, status=status)
            note.user_id = user.user_id
            return user

        return self._parts.gate.run(caller, Permission.REGISTER, None, act)

    def bootstrap(self, username: str, email: str, password: str, *, actor: Actor = OWNER) -> UserRecord:
        """Make the first superadmin, at once active; only the owner of the files can, and only while there is none.

        Raises:
            InvalidArgumentError: There is a superadmin.
            UserExistsError, InvalidNameError, PasswordTooWeakError: See `register`.
        """

        def act(note: Note) -> UserRecord:
            user = self._parts.changes.register(
                username,
                email,
                password,
                now=self._parts.clock(),
                tier=SubscriptionTier.ENTERPRISE,
                role=Role.SUPERADMIN,
                status=AccountStatus.ACTIVE,
                only_if=require_no_superadmin,
            )
            note.details = f"first superadmin {user.user_id}"
            return user

        return self._parts.gate.run(actor, Permission.BOOTSTRAP, None, act)

    def login(
        self,
        login: str,
        password: str,
        *,
        ip_address: str | None = None,
        user_agent: str | None = None,
        actor: Actor = OWNER,
    ) -> Tokens:
        """Sign in by user name or e-mail address.

        Raises:
            InvalidCredentialsError, LoginThrottledError, AccountPendingError, AccountDisabledError: See
                `SignIns.login`.
        """
        caller = _from(actor, ip_address, user_agent)
        return self._parts.gate.run(
            caller,
            Permission.LOGIN,
            None,
            lambda note: self._parts.sign_ins.login(login, password, caller, note, self._parts.clock()),
        )

    def refresh(self, refresh_token: str, *, ip_address: str | None = None, actor: Actor = OWNER) -> Tokens:
        """Renew a sign-in: both tokens are replaced, the old ones are void at once.

        Raises:
            TokenInvalidError, TokenExpiredError: It cannot be renewed.
            TokenReuseError: The refresh token was used before; the sign-in has been ended.
            AuthenticationFailedError, AccountDisabledError: The account is gone or disabled.
        """
        return self._parts.gate.run(
            _from(actor, ip_address),
            Permission.REFRESH,
            None,
            lambda note: self._parts.sign_ins.refresh(refresh_token, note, self._parts.clock()),
        )

    def verify(self, token: str | Tokens, *, ip_address: str | None = None) -> Claims:
        """Check an access token, as is done with each request, and return what it says.

        Role and tier are those that the user has now. Checks are counted, and audited as counts.

        Raises:
            TokenExpiredError, TokenInvalidError: The token is not valid, or not any more.
            AuthenticationFailedError: The sign-in has ended.
            AccountDisabledError: The account was disabled.
            AuditWriteFailedError: The audit log cannot be written.
        """
        now = self._parts.clock()
        try:
            claims = self._parts.sign_ins.verify(str(token), now)
        except AuthError as error:
            self._parts.checks.refused(error, ip_address, now)
            raise
        self._parts.checks.accepted(claims.sub, now)
        return claims

    def authenticate(
        self, token: str | Tokens, *, ip_address: str | None = None, user_agent: str | None = None
    ) -> Actor:
        """Check an access token or an API key and return the actor that the other operations are done as.

        Raises:
            TokenExpiredError, TokenInvalidError, AuthenticationFailedError, AccountDisabledError: See `verify` and
                `authenticate_key`.
            AuditWriteFailedError: The audit log cannot be written.
        """
        if is_api_key(text := str(token)):
            return self.authenticate_key(text, ip_address=ip_address, user_agent=user_agent)
        claims = self.verify(text, ip_address=ip_address)
        return Actor(
            id=claims.sub,
            kind=ActorKind.USER,
            role=claims.role,
            tier=claims.tier,
            session_id=claims.sid,
            ip_address=ip_address,
            user_agent=user_agent,
        )

    def logout(self, token: str | Tokens, *, actor: Actor = OWNER) -> None:
        """End the sign-in that an access token belongs to.

        Raises:
            TokenExpiredError, TokenInvalidError, AuthenticationFailedError: It belongs to none.
        """

        def act(note: Note) -> None:
            claims = self._parts.sign_ins.verify(str(token), self._parts.clock())
            note.user_id = claims.sub
            self._parts.sessions.revoke(claims.sid)

        self._parts.gate.run(actor, Permission.LOGOUT, None, act)

    def logout_everywhere(self, user_id: str, *, actor: Actor = OWNER) -> int:
        """End all sign-ins of a user and return how many there were."""

        def act(_: Note) -> int:
            self._require_may_end(actor, user_id)
            return len(self._parts.sessions.revoke_all(user_id))

        permission = own_or_other(actor, user_id, Permission.LOGOUT, Permission.MANAGE_SESSIONS)
        return self._parts.gate.run(
            actor, permission, None, act, details=upon(user_id), action=ActionType.LOGOUT_EVERYWHERE
        )

    def change_password(
        self, user_id: str, old_password: str, new_password: str, *, actor: Actor = OWNER
    ) -> UserRecord:
        """Change a password that is known, and end all other sign-ins of the user.

        Raises:
            InvalidCredentialsError, LoginThrottledError: The old password is wrong.
            PasswordTooWeakError: The new one is too easy to guess.
            UserNotFoundError: There is no such user.
        """

        def act(_: Note) -> UserRecord:
            name = self._parts.users.by_id(user_id).username
            # A note of its own: who acts is the actor, not whose password it is.
            user = self._parts.sign_ins.checked(
                name, old_password, actor.ip_address, Note(), self._parts.clock()
            )

            def only_if(found: UserRecord, _: object) -> None:
                if found.password_hash != user.password_hash:
                    raise InvalidCredentialsError(
                        "The password was changed meanwhile: sign in with the new one."
                    )

            return self._parts.changes.set_password(
                user, new_password, keep=actor.session_id, only_if=only_if
            )

        permission = own_or_other(actor, user_id, Permission.CHANGE_OWN_PASSWORD, Permission.SET_PASSWORD)
        return self._parts.gate.run(actor, permission, None, act, details=upon(user_id))

    # ── One's account ─────────────────────────────────────────────────────────────────────────────

    def user(self, user_id: str, *, actor: Actor = OWNER) -> UserRecord:
        """Return an account.

        Raises:
            UserNotFoundError: There is none.
        """
        parts = self._parts
        return self._see(
            actor, user_id, "account", lambda: parts.with_last_sign_in(parts.users.by_id(user_id))
        )

    def sessions(self, user_id: str, *, actor: Actor = OWNER) -> list[SessionRecord]:
        """Return a user's sign-ins that have not ended, the newest first."""
        return self._see(
            actor, user_id, "sign-ins", lambda: self._parts.sessions.list(user_id, self._parts.clock())
        )

    def usage(self, user_id: str, *, actor: Actor = OWNER) -> Usage:
        """Return how much of the limits a user has used up.

        Raises:
            UserNotFoundError: There is no such user.
        """

        def look() -> Usage:
            return self._parts.limits.usage(
                user_id, self._parts.users.by_id(user_id).tier, self._parts.clock()
            )

        return self._see(actor, user_id, "usage", look)

    def grants(self, user_id: str, *, actor: Actor = OWNER) -> list[Grant]:
        """Return which tables a user may use beyond what the role allows."""
        return self._see(actor, user_id, "grants", lambda: self._parts.grants.of(user_id))

    def revoke_session(self, session_id: str, *, actor: Actor = OWNER) -> bool:
        """End one sign-in, and tell whether it had not ended before."""
        session = self._parts.sessions.by_id(session_id, self._parts.clock())
        owner = session.user_id if session else ""

        def act(_: Note) -> bool:
            if session is not None:
                self._require_may_end(actor, owner)
            return self._parts.sessions.revoke(session_id) is not None

        permission = own_or_other(actor, owner, Permission.LOGOUT, Permission.MANAGE_SESSIONS)
        details = upon(owner) if owner else None
        return self._parts.gate.run(
            actor, permission, None, act, details=details, action=ActionType.SESSION_REVOKED
        )

    # ── Life ──────────────────────────────────────────────────────────────────────────────────────

    def close(self) -> None:
        """Write what is counted, and close what this object has opened."""
        self._parts.close()


def _from(actor: Actor, ip_address: str | None, user_agent: str | None = None) -> Actor:
    return replace(
        actor, ip_address=ip_address or actor.ip_address, user_agent=user_agent or actor.user_agent
    )
