"""Ending one sign-in of one user, whichever route asks for it."""

from __future__ import annotations

from lakehouse_platform.model.actors import Actor
from lakehouse_platform.services.accounts import AuthActor


def end_session(accounts: AuthActor, user_id: str, session_id: str, actor: Actor) -> None:
    """End a sign-in, but only if it is this user's: the address names both.

    Raises:
        PermissionDeniedError: The actor may not see or end it.
    """
    if any(session.session_id == session_id for session in accounts.sessions(user_id, actor=actor)):
        accounts.revoke_session(session_id, actor=actor)
