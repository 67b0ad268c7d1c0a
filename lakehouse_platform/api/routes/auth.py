"""Registering, signing in and out, and one's own password."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter
from pydantic import Field, StringConstraints

from lakehouse_platform.api.actors import Anyone, Caller, Sender, ServerHere, SignedIn
from lakehouse_platform.api.heads import readable
from lakehouse_platform.api.inputs import Body, Password, Text
from lakehouse_platform.api.views import ClaimsView, EndedView, TokensView, UserView
from lakehouse_platform.errors import AuthenticationFailedError
from lakehouse_platform.model.actors import SubscriptionTier

router = APIRouter(prefix="/v1/auth", tags=["auth"])

# Ours have 43 characters.
_Token = Annotated[str, StringConstraints(max_length=4096), Field(json_schema_extra={"writeOnly": True})]


class Registration(Body):
    """Who wants an account."""

    username: Text
    email: Text
    password: Password
    tier: SubscriptionTier = Field(
        default=SubscriptionTier.FREE,
        description="The subscription wished for; whoever approves may change it.",
    )


class Login(Body):
    """Who signs in."""

    login: Text = Field(description="User name or e-mail address.")
    password: Password


class Renewal(Body):
    """What renews a sign-in."""

    refresh_token: _Token


class PasswordChange(Body):
    """The old password and the new one."""

    current_password: Password
    new_password: Password


@router.post("/register", status_code=201, summary="Register an account")
async def register(body: Registration, caller: Anyone, server: ServerHere) -> UserView:
    """Make an account, which waits for approval unless the server approves by itself (`auto_approve`)."""
    user = await server.lanes.passwords.run(
        server.lakehouse.accounts.register,
        body.username, body.email, body.password, body.tier,
        actor=caller.actor,
    )  # fmt: skip
    return UserView.model_validate(user)


@router.post("/login", summary="Sign in")
async def login(body: Login, caller: Anyone, server: ServerHere) -> TokensView:
    """Sign in by user name or e-mail address, and get an access token and a refresh token."""
    tokens = await server.lanes.passwords.run(
        server.lakehouse.accounts.login, body.login, body.password, actor=caller.actor
    )
    return TokensView.model_validate(tokens)


@router.post("/refresh", summary="Renew a sign-in")
async def refresh(body: Renewal, caller: Anyone, server: ServerHere) -> TokensView:
    """Get new tokens for a refresh token; both old ones are void at once. One that is used twice ends the sign-in."""
    tokens = await server.lanes.work.run(
        server.lakehouse.accounts.refresh, body.refresh_token, actor=caller.actor
    )
    return TokensView.model_validate(tokens)


@readable(router, "/verify", summary="What the access token says")
async def verify(caller: Sender, server: ServerHere) -> ClaimsView:
    """Check the access token of this request and return what it says."""
    claims = await server.lanes.checks.run(
        server.lakehouse.accounts.verify, _token(caller), ip_address=caller.actor.ip_address
    )
    return ClaimsView.model_validate(claims)


@router.post("/logout", status_code=204, summary="End this sign-in")
async def logout(caller: SignedIn, server: ServerHere) -> None:
    """End the sign-in that the access token of this request belongs to."""
    await server.lanes.work.run(server.lakehouse.accounts.logout, _token(caller), actor=caller.actor)


@router.post("/logout-everywhere", summary="End all one's sign-ins")
async def logout_everywhere(caller: SignedIn, server: ServerHere) -> EndedView:
    """End all sign-ins of who asks, this one too."""
    ended = await server.lanes.work.run(
        server.lakehouse.accounts.logout_everywhere, caller.actor.id, actor=caller.actor
    )
    return EndedView(ended=ended)


@router.post("/password", summary="Change one's own password")
async def change_password(body: PasswordChange, caller: SignedIn, server: ServerHere) -> UserView:
    """Change the password of who asks; all other sign-ins end."""
    user = await server.lanes.passwords.run(
        server.lakehouse.accounts.change_password,
        caller.actor.id, body.current_password, body.new_password,
        actor=caller.actor,
    )  # fmt: skip
    return UserView.model_validate(user)


def _token(caller: Caller) -> str:
    if caller.token is None:
        raise AuthenticationFailedError("Nobody is signed in: send an access token from /v1/auth/login.")
    return caller.token
