"""What a user is billed for."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from lakehouse_platform.api.actors import ServerHere, SignedIn
from lakehouse_platform.api.heads import readable
from lakehouse_platform.api.inputs import UserId
from lakehouse_platform.api.views import View

router = APIRouter(prefix="/v1/billing", tags=["billing"])

_Day = Annotated[
    str,
    # Told only: the service refuses other texts, and days that there are not, with one error.
    Query(
        max_length=64,
        json_schema_extra={"pattern": r"^\d{4}-\d\d-\d\d$"},
        description="A UTC day, which belongs to the period.",
    ),
]


class Bill(View):
    """What a user is billed for in a period of UTC days."""

    user_id: str
    period_start: str
    period_end: str
    total_actions: int
    total_rows: int
    actions_by_type: dict[str, int]


@readable(router, "/{user_id}", summary="What a user is billed for")
async def bill(user_id: UserId, start: _Day, end: _Day, caller: SignedIn, server: ServerHere) -> Bill:
    """Return how many billable actions and rows there were from one day to another, one's own or for administrators."""
    summary = await server.lanes.work.run(
        server.lakehouse.audit.billing_summary, user_id, start, end, actor=caller.actor
    )
    return Bill.model_validate(summary)
