"""What the faces of accounts have in common: their parts, and how they show one's own and other people's accounts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from lakehouse_platform.identity.permissions import Permission
from lakehouse_platform.model.actors import Actor
from lakehouse_platform.services.account_changes import require_may_act_on
from lakehouse_platform.services.account_parts import AccountParts
from lakehouse_platform.services.ownership import own_or_other, upon

_T = TypeVar("_T")


class AccountFace:
    """One face of the accounts of a lakehouse; `AuthActor` is made of all of them."""

    def __init__(self, parts: AccountParts) -> None:
        self._parts = parts

    def _see(self, actor: Actor, user_id: str, what: str, look: Callable[[], _T]) -> _T:
        """Return something of an account to its user, or to who may see those of others."""
        permission = own_or_other(actor, user_id, Permission.SEE_OWN_ACCOUNT, Permission.SEE_USERS)
        return self._parts.gate.run(
            actor, permission, None, lambda _: look(), details=f"{what} of {upon(user_id)}"
        )

    def _require_may_end(self, actor: Actor, user_id: str) -> None:
        """Refuse that an administrator ends the sign-ins of another one."""
        if actor.id != user_id:
            require_may_act_on(actor, self._parts.users.by_id(user_id))
