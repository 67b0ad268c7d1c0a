"""Tickets with which users mount the lakehouse's tables, and who acts through such a mount."""

from __future__ import annotations

from lakehouse_platform.errors import (
    AuthenticationFailedError,
    AuthError,
    InvalidArgumentError,
    UserNotFoundError,
)
from lakehouse_platform.identity.permissions import Permission
from lakehouse_platform.model.actors import Actor, ActorKind
from lakehouse_platform.services.account_face import AccountFace
from lakehouse_platform.services.account_parts import AccountParts
from lakehouse_platform.services.gate import Note
from lakehouse_platform.services.sign_ins import require_active


class MountAccess(AccountFace):
    """The part of `AuthActor` that is about mounts; see there for the errors of every operation."""

    def mount_ticket(self, actor: Actor) -> str:
        """Return the ticket with which who is signed in mounts tables: the same as long as the sign-in lasts.

        It is void when the sign-in ends, by whatever way, or the account is disabled.

        Args:
            actor: What `authenticate` returned for an access token.

        Raises:
            InvalidArgumentError: It is no sign-in: the owner of the files mounts with the server's own ticket.
            AuthenticationFailedError: The sign-in has ended.
            AccountDisabledError: The account was disabled.
        """

        def act(_: Note) -> str:
            if actor.session_id is None:
                raise InvalidArgumentError("A ticket stands for a sign-in: sign in with a password first.")
            if signed_in(self._parts, actor.session_id).id != actor.id:
                raise _ended()
            return self._parts.mount_tickets.issue(actor.session_id)

        return self._parts.gate.run(actor, Permission.MOUNT, None, act, details="ticket for a mount")

    def admit_ticket(self, ticket: str, *, ip_address: str | None = None) -> Actor:
        """Check the ticket of a mount and return whom it lets in; see `admitted`."""
        return admitted(self._parts, ticket, ip_address)


def admitted(parts: AccountParts, ticket: str, ip_address: str | None) -> Actor:
    """Check the ticket of a mount and return whom it lets in. Checks are counted and audited like those of tokens.

    Args:
        parts: The accounts.
        ticket: The ticket.
        ip_address: Where the request came from.

    Raises:
        TokenInvalidError: The ticket was not made here, or was changed.
        AuthenticationFailedError: The sign-in has ended.
        AccountDisabledError: The account was disabled.
        AuditWriteFailedError: The audit log cannot be written.
    """
    now = parts.clock()
    try:
        actor = signed_in(parts, parts.mount_tickets.session_of(ticket), ip_address)
    except AuthError as error:
        parts.checks.refused(error, ip_address, now)
        raise
    parts.checks.accepted(actor.id, now)
    return actor


def signed_in(parts: AccountParts, session_id: str, ip_address: str | None = None) -> Actor:
    """Return who is signed in with a session, with the role that the user has now.

    Raises:
        AuthenticationFailedError: The sign-in has ended, or its account is gone.
        AccountPendingError, AccountDisabledError: The account cannot sign in.
    """
    session = parts.sessions.by_id(session_id, parts.clock())
    if session is None:
        raise _ended()
    try:
        user = parts.users.by_id(session.user_id)
    except UserNotFoundError as error:
        raise _ended() from error
    require_active(user)
    return Actor(
        id=user.user_id,
        kind=ActorKind.USER,
        role=user.role,
        tier=user.tier,
        session_id=session_id,
        ip_address=ip_address,
    )


def _ended() -> AuthenticationFailedError:
    return AuthenticationFailedError("This sign-in has ended: sign in again, then mount again.")
