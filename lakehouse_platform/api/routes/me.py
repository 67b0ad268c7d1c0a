"""One's own account: what a user sees and ends without being an administrator."""

from __future__ import annotations

from fastapi import APIRouter

from lakehouse_platform.api.actors import ServerHere, SignedIn
from lakehouse_platform.api.heads import readable
from lakehouse_platform.api.inputs import SessionId
from lakehouse_platform.api.session_ends import end_session
from lakehouse_platform.api.views import GrantsView, MountTicketView, SessionsView, UsageView, UserView

router = APIRouter(prefix="/v1/me", tags=["me"])


@readable(router, "", summary="One's own account")
async def see_me(caller: SignedIn, server: ServerHere) -> UserView:
    """Return the account of who asks."""
    user = await server.lanes.work.run(server.lakehouse.accounts.user, caller.actor.id, actor=caller.actor)
    return UserView.model_validate(user)


@readable(router, "/usage", summary="How much of one's limits is used up")
async def see_my_usage(caller: SignedIn, server: ServerHere) -> UsageView:
    """Return what who asks has used up in this minute and on this UTC day."""
    usage = await server.lanes.work.run(server.lakehouse.accounts.usage, caller.actor.id, actor=caller.actor)
    return UsageView.model_validate(usage)


@readable(router, "/sessions", summary="One's own sign-ins")
async def see_my_sessions(caller: SignedIn, server: ServerHere) -> SessionsView:
    """Return the sign-ins of who asks that have not ended, the newest first."""
    sessions = await server.lanes.work.run(
        server.lakehouse.accounts.sessions, caller.actor.id, actor=caller.actor
    )
    return SessionsView.model_validate({"sessions": sessions})


@router.delete("/sessions/{session_id}", status_code=204, summary="End one of one's own sign-ins")
async def end_my_session(session_id: SessionId, caller: SignedIn, server: ServerHere) -> None:
    """End a sign-in of who asks; one that has ended already stays so."""
    await server.lanes.work.run(
        end_session, server.lakehouse.accounts, caller.actor.id, session_id, caller.actor
    )


@readable(router, "/grants", summary="One's own rights on tables")
async def see_my_grants(caller: SignedIn, server: ServerHere) -> GrantsView:
    """Return which tables who asks may use beyond what the role allows."""
    grants = await server.lanes.work.run(
        server.lakehouse.accounts.grants, caller.actor.id, actor=caller.actor
    )
    return GrantsView.model_validate({"grants": grants})


@router.post("/mount-tickets", status_code=201, summary="Get a ticket for mounting tables as files")
async def issue_mount_ticket(caller: SignedIn, server: ServerHere) -> MountTicketView:
    """Return the ticket with which who asks mounts tables from a server of the mount that runs beside this one.

    It is the same as long as the sign-in lasts, however often it is renewed, and void when that ends. Keep it secret:
    whoever has it acts as this user there. A program's API key gets none.
    """
    ticket = await server.lanes.work.run(server.lakehouse.accounts.mount_ticket, caller.actor)
    return MountTicketView.model_validate({"ticket": ticket, "session_id": caller.actor.session_id})
