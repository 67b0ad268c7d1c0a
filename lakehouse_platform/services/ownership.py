"""Whose account an operation concerns, and how the audit log says so."""

from __future__ import annotations

from lakehouse_platform.identity.permissions import Permission
from lakehouse_platform.model.actors import Actor, ActorKind

# Ids have 36 characters; what else is sent in their place may be of any length.
_LONGEST_ID = 64


def own_or_other(actor: Actor, user_id: str, own: Permission, other: Permission) -> Permission:
    """Return which permission is needed: that for one's own account, or that for other people's."""
    is_own = actor.kind in {ActorKind.USER, ActorKind.SERVICE} and actor.id == user_id
    return own if is_own else other


def upon(user_id: str) -> str:
    """Return how the audit log names the user that an operation concerns; an erasure finds it there."""
    return f"user {user_id[:_LONGEST_ID]}"
