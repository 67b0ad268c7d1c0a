"""Who acts in a request: from its token or API key, checked anew each time."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Annotated

from fastapi import Depends, Request, Security
from fastapi.security import HTTPBearer

from lakehouse_platform.api.addresses import Proxies
from lakehouse_platform.api.lanes import Lanes
from lakehouse_platform.api.metrics import Metrics
from lakehouse_platform.api.readiness import Readiness
from lakehouse_platform.api.requests import request_id_of
from lakehouse_platform.errors import AuthenticationFailedError
from lakehouse_platform.model.actors import ANONYMOUS, Actor, ActorKind
from lakehouse_platform.model.origin import Door, Origin
from lakehouse_platform.services.lakehouse import Lakehouse

# What the audit log and the sessions keep of it at most.
_LONGEST_AGENT = 256

bearer = HTTPBearer(
    auto_error=False,
    scheme_name="bearer",
    bearerFormat="JWT or API key",
    description="An access token from `/v1/auth/login`, or an API key of a service account (`lhk_…`).",
)


@dataclass(frozen=True, slots=True)
class Server:
    """What the routes of one server share.

    Attributes:
        lakehouse: What is served.
        lanes: The threads that it is served in.
        proxies: Who is believed about addresses.
        readiness: Whether it can be served now.
        metrics: Its numbers.
    """

    lakehouse: Lakehouse
    lanes: Lanes
    proxies: Proxies
    readiness: Readiness
    metrics: Metrics


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sent a request.

    Attributes:
        actor: As whom operations are done.
        origin: What commits say of it.
        token: The token or key that was sent, if one was.
    """

    actor: Actor
    origin: Origin
    token: str | None = field(default=None, repr=False)


# FastAPI sends each dependency that is not `async` to a thread and back.
async def server_of(request: Request) -> Server:
    """Return what the routes share."""
    server: Server = request.app.state.server
    return server


ServerHere = Annotated[Server, Depends(server_of)]


async def nobody(request: Request, server: ServerHere) -> Caller:
    """Return the caller of a route that needs no sign-in; a token is not even looked at."""
    return _unknown(request, server)


def _unknown(request: Request, server: Server) -> Caller:
    actor = replace(
        ANONYMOUS,
        ip_address=server.proxies.client_of(request.scope),
        user_agent=_agent(request),
        request_id=request_id_of(request.scope),
    )
    return _caller(request, actor)


async def sender(
    request: Request, server: ServerHere, _: Annotated[object, Security(bearer)] = None
) -> Caller:
    """Return who sent a request with the token that was sent, which is not looked at yet.

    Raises:
        AuthenticationFailedError: What was sent is no token.
    """
    return replace(_unknown(request, server), token=_token(request))


async def caller(unknown: Annotated[Caller, Depends(sender)], request: Request, server: ServerHere) -> Caller:
    """Return who sent a request; without a token nobody known did, who may do what is public.

    Raises:
        AuthenticationFailedError, TokenInvalidError, TokenExpiredError, AccountDisabledError: The token is refused.
    """
    token = unknown.token
    if token is None:
        return unknown
    actor = await server.lanes.checks.run(
        server.lakehouse.accounts.authenticate,
        token,
        ip_address=unknown.actor.ip_address,
        user_agent=unknown.actor.user_agent,
    )
    return _caller(request, replace(actor, request_id=unknown.actor.request_id), token)


Anyone = Annotated[Caller, Depends(nobody)]
"""The caller of a route that needs no sign-in."""
Sender = Annotated[Caller, Depends(sender)]
"""The caller of a route that looks at the token by itself."""
SignedIn = Annotated[Caller, Depends(caller)]
"""The caller of every other route; the gate decides what a caller without a token may."""


def _caller(request: Request, actor: Actor, token: str | None = None) -> Caller:
    # Problems say 401 or 403 by this.
    request.state.is_signed_in = actor.kind is not ActorKind.ANONYMOUS
    return Caller(actor, Origin(actor=actor.id, door=Door.HTTP, run_id=actor.request_id), token)


def _token(request: Request) -> str | None:
    given = request.headers.getlist("authorization")
    if not given:
        return None
    scheme, _, token = given[0].partition(" ")
    if len(given) > 1 or scheme.lower() != "bearer" or not token.strip():
        raise AuthenticationFailedError(
            "The header Authorization is not understood: send one, as `Bearer` and an access token or API key."
        )
    return token.strip()


def _agent(request: Request) -> str | None:
    agent = request.headers.get("user-agent")
    return agent[:_LONGEST_AGENT] if agent else None
