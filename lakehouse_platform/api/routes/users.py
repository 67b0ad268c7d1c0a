"""Other people's accounts, for administrators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field, StrictInt

from lakehouse_platform.api.actors import Caller, Server, ServerHere, SignedIn
from lakehouse_platform.api.heads import readable
from lakehouse_platform.api.inputs import Body, GrantedTable, PageSize, Password, SessionId, UserId
from lakehouse_platform.api.session_ends import end_session
from lakehouse_platform.api.views import (
    EndedView,
    GrantsView,
    GrantView,
    SessionsView,
    UsageView,
    UserView,
)
from lakehouse_platform.identity.users import UserRecord
from lakehouse_platform.model.actors import AccountStatus, Role, SubscriptionTier
from lakehouse_platform.model.rights import Right
from lakehouse_platform.services.accounts import AuthActor

router = APIRouter(prefix="/v1/users", tags=["users"])

# What SQLite's column holds.
_Limit = Annotated[StrictInt, Field(ge=0, le=2**63 - 1)]


class UsersPage(BaseModel):
    """Some of the accounts, in the order of their ids."""

    users: list[UserView]
    next: str | None = Field(description="Hand this on as `after` for the next page; null on the last one.")


class RoleChange(Body):
    """The new role."""

    role: Role


class TierChange(Body):
    """The new subscription."""

    tier: SubscriptionTier


class NewPassword(Body):
    """The new password."""

    new_password: Password


class OwnLimits(Body):
    """Limits of the user's own; null for no limit."""

    per_minute: _Limit | None
    per_day: _Limit | None


class RightGiven(Body):
    """The right on the table."""

    right: Right


@readable(router, "", summary="Accounts, page by page")
async def list_users(
    caller: SignedIn,
    server: ServerHere,
    after: Annotated[str, Query(max_length=64, description="`next` of the page before.")] = "",
    limit: PageSize = 100,
    status: Annotated[AccountStatus | None, Query(description="Only accounts that stand there.")] = None,
) -> UsersPage:
    """Return accounts in the order of their ids."""
    page = await server.lanes.work.run(
        server.lakehouse.accounts.users, after=after, limit=limit, status=status, actor=caller.actor
    )
    return UsersPage(users=list(map(UserView.model_validate, page.users)), next=page.next_after)


@readable(router, "/{user_id}", summary="One account")
async def see_user(user_id: UserId, caller: SignedIn, server: ServerHere) -> UserView:
    """Return an account."""
    user = await server.lanes.work.run(server.lakehouse.accounts.user, user_id, actor=caller.actor)
    return UserView.model_validate(user)


@router.put("/{user_id}/role", summary="Give another role")
async def change_role(user_id: UserId, body: RoleChange, caller: SignedIn, server: ServerHere) -> UserView:
    """Give a user another role, from the next request on; only superadmins may."""
    user = await server.lanes.work.run(
        server.lakehouse.accounts.change_role, user_id, body.role, actor=caller.actor
    )
    return UserView.model_validate(user)


@router.put("/{user_id}/tier", summary="Give another subscription")
async def change_tier(user_id: UserId, body: TierChange, caller: SignedIn, server: ServerHere) -> UserView:
    """Give a user another subscription, from the next request on."""
    user = await server.lanes.work.run(
        server.lakehouse.accounts.change_tier, user_id, body.tier, actor=caller.actor
    )
    return UserView.model_validate(user)


@router.put("/{user_id}/password", summary="Give a new password")
async def set_password(user_id: UserId, body: NewPassword, caller: SignedIn, server: ServerHere) -> UserView:
    """Give a user who has forgotten it a new password; all sign-ins of the user end."""
    user = await server.lanes.passwords.run(
        server.lakehouse.accounts.set_password, user_id, body.new_password, actor=caller.actor
    )
    return UserView.model_validate(user)


@readable(router, "/{user_id}/sessions", summary="A user's sign-ins")
async def see_sessions(user_id: UserId, caller: SignedIn, server: ServerHere) -> SessionsView:
    """Return the sign-ins of a user that have not ended, the newest first."""
    sessions = await server.lanes.work.run(server.lakehouse.accounts.sessions, user_id, actor=caller.actor)
    return SessionsView.model_validate({"sessions": sessions})


@router.delete("/{user_id}/sessions", summary="End all sign-ins of a user")
async def end_sessions(user_id: UserId, caller: SignedIn, server: ServerHere) -> EndedView:
    """End all sign-ins of a user."""
    ended = await server.lanes.work.run(
        server.lakehouse.accounts.logout_everywhere, user_id, actor=caller.actor
    )
    return EndedView(ended=ended)


@router.delete("/{user_id}/sessions/{session_id}", status_code=204, summary="End one sign-in of a user")
async def end_one_session(
    user_id: UserId, session_id: SessionId, caller: SignedIn, server: ServerHere
) -> None:
    """End a sign-in of a user; one that has ended already stays so."""
    await server.lanes.work.run(end_session, server.lakehouse.accounts, user_id, session_id, caller.actor)


@readable(router, "/{user_id}/usage", summary="How much of the limits a user has used up")
async def see_usage(user_id: UserId, caller: SignedIn, server: ServerHere) -> UsageView:
    """Return what a user has used up in this minute and on this UTC day."""
    usage = await server.lanes.work.run(server.lakehouse.accounts.usage, user_id, actor=caller.actor)
    return UsageView.model_validate(usage)


@router.delete("/{user_id}/usage", status_code=204, summary="Forget what a user has used up")
async def reset_usage(user_id: UserId, caller: SignedIn, server: ServerHere) -> None:
    """Let a user's limits count from zero again."""
    await server.lanes.work.run(server.lakehouse.accounts.reset_usage, user_id, actor=caller.actor)


@router.put("/{user_id}/limits", status_code=204, summary="Give a user limits of their own")
async def override_limits(user_id: UserId, body: OwnLimits, caller: SignedIn, server: ServerHere) -> None:
    """Give a user limits in place of the subscription's."""
    await server.lanes.work.run(
        server.lakehouse.accounts.override_limits,
        user_id, body.per_minute, body.per_day,
        actor=caller.actor,
    )  # fmt: skip


@router.delete("/{user_id}/limits", status_code=204, summary="Let a user's limits be the subscription's")
async def follow_tier(user_id: UserId, caller: SignedIn, server: ServerHere) -> None:
    """Take limits of the user's own back."""
    await server.lanes.work.run(server.lakehouse.accounts.follow_tier, user_id, actor=caller.actor)


@readable(router, "/{user_id}/grants", summary="A user's rights on tables")
async def see_grants(user_id: UserId, caller: SignedIn, server: ServerHere) -> GrantsView:
    """Return which tables a user may use beyond what the role allows."""
    grants = await server.lanes.work.run(server.lakehouse.accounts.grants, user_id, actor=caller.actor)
    return GrantsView.model_validate({"grants": grants})


@router.put("/{user_id}/grants/{table}", summary="Give a user a right on a table")
async def grant(
    user_id: UserId, table: GrantedTable, body: RightGiven, caller: SignedIn, server: ServerHere
) -> GrantView:
    """Give a user a right on a table, in place of the one the user has there."""
    made = await server.lanes.work.run(
        server.lakehouse.accounts.grant, user_id, table, body.right, actor=caller.actor
    )
    return GrantView.model_validate(made)


@router.delete("/{user_id}/grants/{table}", status_code=204, summary="Take a user's right on a table away")
async def revoke_grant(user_id: UserId, table: GrantedTable, caller: SignedIn, server: ServerHere) -> None:
    """Take a grant back; without one nothing changes."""
    await server.lanes.work.run(server.lakehouse.accounts.revoke_grant, user_id, table, actor=caller.actor)


@router.post("/{user_id}/approve", summary="Approve an account")
async def approve(user_id: UserId, caller: SignedIn, server: ServerHere) -> UserView:
    """Let a user who has registered, or was rejected, sign in."""
    return await _moved(AuthActor.approve, user_id, caller, server)


@router.post("/{user_id}/reject", summary="Reject an account")
async def reject(user_id: UserId, caller: SignedIn, server: ServerHere) -> UserView:
    """Turn a user who has registered away."""
    return await _moved(AuthActor.reject, user_id, caller, server)


@router.post("/{user_id}/disable", summary="Disable an account")
async def disable(user_id: UserId, caller: SignedIn, server: ServerHere) -> UserView:
    """Keep a user out, and end all sign-ins of the user."""
    return await _moved(AuthActor.disable, user_id, caller, server)


@router.post("/{user_id}/enable", summary="Enable an account")
async def enable(user_id: UserId, caller: SignedIn, server: ServerHere) -> UserView:
    """Let a disabled user sign in again."""
    return await _moved(AuthActor.enable, user_id, caller, server)


async def _moved(move: Callable[..., UserRecord], user_id: str, caller: Caller, server: Server) -> UserView:
    user = await server.lanes.work.run(move, server.lakehouse.accounts, user_id, actor=caller.actor)
    return UserView.model_validate(user)
