"""Whether the server lives, whether it can do its work, and its numbers."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import Response
from pydantic import BaseModel

from lakehouse_platform.api.actors import ServerHere, SignedIn
from lakehouse_platform.api.heads import readable
from lakehouse_platform.api.metrics import CONTENT_TYPE
from lakehouse_platform.api.problems import Refusal, refused
from lakehouse_platform.identity.permissions import Permission, allows
from lakehouse_platform.model.actors import Actor
from lakehouse_platform.services.accounts import AuthActor

router = APIRouter(tags=["health"])


class Health(BaseModel):
    """How the server is."""

    status: str


class NumbersAnswer(Response):
    """Numbers in Prometheus' text format."""

    media_type = "text/plain"


@readable(router, "/healthz", summary="Whether the server answers")
async def healthz() -> Health:
    """Tell that the process lives; nothing is tried."""
    return Health(status="ok")


@readable(router, "/readyz", summary="Whether the server can do its work")
async def readyz(server: ServerHere) -> Health:
    """Ask the store and try the audit journal, at most once a second; what fails is named in the server's log."""
    failing = await server.readiness.failing()
    if failing:
        raise refused(
            Refusal.NOT_READY, f"These do not work now: {', '.join(failing)}. The server's log says why."
        )
    return Health(status="ready")


@readable(router, "/metrics", summary="The server's numbers, for Prometheus", response_class=NumbersAnswer)
async def metrics(caller: SignedIn, server: ServerHere) -> Response:
    """Return counts and durations; for administrators, because they tell how the server is used."""
    await server.lanes.checks.run(_require_administrator, server.lakehouse.accounts, caller.actor)
    return Response(server.metrics.text(), headers={"content-type": CONTENT_TYPE})


def _require_administrator(accounts: AuthActor, actor: Actor) -> None:
    """Refuse who is none; that is written down, but not each of the visits that come every few seconds."""
    if not allows(actor, Permission.SEE_USERS):
        accounts.gate.enter(actor, Permission.SEE_USERS, None, details="metrics")
