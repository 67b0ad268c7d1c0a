"""Accounts of programs and their API keys, for administrators."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import BaseModel, Field, StrictInt

from lakehouse_platform.api.actors import ServerHere, SignedIn
from lakehouse_platform.api.heads import readable
from lakehouse_platform.api.inputs import Body, Text, UserId
from lakehouse_platform.api.views import ApiKeyView, UserView
from lakehouse_platform.model.actors import Role, SubscriptionTier
from lakehouse_platform.model.rights import READ_EVERY_TABLE
from lakehouse_platform.services.service_accounts import DEFAULT_LIFE

router = APIRouter(prefix="/v1/service-accounts", tags=["service accounts"])

_KeyId = Annotated[str, Path(max_length=64, description="Id of the key: its part between the underscores.")]


class NewServiceAccount(Body):
    """A program that is to have an account."""

    name: Text = Field(description="Its user name, which no other account has.")
    role: Role = Role.USER
    tier: SubscriptionTier = SubscriptionTier.FREE


class NewKey(Body):
    """A key that is to be made."""

    label: Text = Field(description="What it is for: 1 to 100 printable characters.")
    scopes: list[Text] = Field(
        default_factory=READ_EVERY_TABLE.texts,
        max_length=100,
        description="`read:TABLE`, `write:TABLE`, `maintain:TABLE`, with `*` for every table; `admin` for what only "
        "administrators may. Always within what the account itself may.",
    )
    # The most that `identity/api_keys.py` allows.
    expires_in_days: Annotated[StrictInt, Field(ge=1, le=3650)] | None = Field(
        default=DEFAULT_LIFE.days, description="How long it counts; null for without end."
    )


class ServiceAccounts(BaseModel):
    """Accounts of programs, by name."""

    service_accounts: list[UserView]


class MadeKey(ApiKeyView):
    """A new key: its text is shown this once and kept nowhere."""

    key: str


class ApiKeys(BaseModel):
    """Keys, the newest first."""

    keys: list[ApiKeyView]


@router.post("", status_code=201, summary="Make an account for a program")
async def create_service_account(body: NewServiceAccount, caller: SignedIn, server: ServerHere) -> UserView:
    """Make an account that is active at once, and has API keys in place of a password."""
    made = await server.lanes.work.run(
        server.lakehouse.accounts.create_service_account,
        body.name, role=body.role, tier=body.tier, actor=caller.actor,
    )  # fmt: skip
    return UserView.model_validate(made)


@readable(router, "", summary="Accounts of programs")
async def list_service_accounts(caller: SignedIn, server: ServerHere) -> ServiceAccounts:
    """Return the accounts of programs, by name."""
    found = await server.lanes.work.run(server.lakehouse.accounts.service_accounts, actor=caller.actor)
    return ServiceAccounts(service_accounts=list(map(UserView.model_validate, found)))


@router.post("/{user_id}/keys", status_code=201, summary="Make an API key")
async def create_api_key(user_id: UserId, body: NewKey, caller: SignedIn, server: ServerHere) -> MadeKey:
    """Make a key; this answer is the only place that ever shows it."""
    life = timedelta(days=body.expires_in_days) if body.expires_in_days is not None else None
    made = await server.lanes.work.run(
        server.lakehouse.accounts.create_api_key,
        user_id, body.label, body.scopes, life,
        actor=caller.actor,
    )  # fmt: skip
    return MadeKey(**ApiKeyView.of(made.record).model_dump(), key=made.key)


@readable(router, "/{user_id}/keys", summary="The API keys of an account")
async def list_api_keys(user_id: UserId, caller: SignedIn, server: ServerHere) -> ApiKeys:
    """Return the keys, the newest first, also those that do not count any more."""
    found = await server.lanes.work.run(server.lakehouse.accounts.list_api_keys, user_id, actor=caller.actor)
    return ApiKeys(keys=list(map(ApiKeyView.of, found)))


@router.delete("/{user_id}/keys/{key_id}", status_code=204, summary="Revoke an API key")
async def revoke_api_key(user_id: UserId, key_id: _KeyId, caller: SignedIn, server: ServerHere) -> None:
    """Make a key void at once; one that is void already stays so."""
    await server.lanes.work.run(server.lakehouse.accounts.revoke_api_key, user_id, key_id, actor=caller.actor)
