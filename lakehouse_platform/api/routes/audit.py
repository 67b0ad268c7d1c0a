"""The audit log: searching, verifying, exporting and adding to it."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Response
from pydantic import BaseModel, Field, StrictInt, StringConstraints

from lakehouse_platform.api.actors import ServerHere, SignedIn
from lakehouse_platform.api.described import rows_out
from lakehouse_platform.api.heads import readable
from lakehouse_platform.api.inputs import Body, Text, UserId
from lakehouse_platform.api.reading import AskedRows
from lakehouse_platform.api.views import AuditRecordView, View
from lakehouse_platform.audit.entries import AuditEntry
from lakehouse_platform.model.actions import ActionType, Outcome
from lakehouse_platform.model.origin import Door

router = APIRouter(prefix="/v1/audit", tags=["audit"])

_Moment = Annotated[
    str | None, Query(max_length=64, description="A UTC day, or an RFC 3339 time; it belongs to the period.")
]
# The most that `audit/reports.py` gives at once.
_Limit = Annotated[int, Query(ge=1, le=10_000, description="Entries in the answer.")]
_Sequence = Annotated[int, Query(ge=0, le=2**63 - 1, description="`next` of the page before.")]


async def _conditions(
    action: Annotated[ActionType | None, Query(description="Only this kind of action.")] = None,
    user_id: Annotated[Text | None, Query(description="Only of this user.")] = None,
    outcome: Annotated[Outcome | None, Query(description="Only those that ended so.")] = None,
    resource: Annotated[Text | None, Query(description="Only on this table.")] = None,
    since: _Moment = None,
    until: _Moment = None,
) -> dict[str, Any]:
    """Return the conditions as `AuditAccess` takes them."""
    given = {"action": action, "user_id": user_id, "outcome": outcome, "resource": resource}
    return given | {"since": since, "until": until}


_Wanted = Annotated[dict[str, Any], Depends(_conditions)]


class EntriesPage(BaseModel):
    """Some entries, in the order in which they were chained."""

    entries: list[AuditRecordView]
    next: int | None = Field(description="Hand this on as `after` for the next page; null on the last one.")


class ActivityPage(BaseModel):
    """What a user did, newest first."""

    entries: list[AuditRecordView]
    next: str | None = Field(description="Hand this on as `page` for the next page; null on the last one.")


class NewEntry(Body):
    """An entry that is added by hand."""

    action: ActionType
    user_id: Annotated[str, StringConstraints(min_length=1, max_length=128)] | None = Field(
        default=None, description="Who did it; null for who sends this."
    )
    details: Annotated[str, StringConstraints(max_length=4096)] | None = None
    resource: Annotated[str, StringConstraints(max_length=512)] | None = None
    row_count: Annotated[StrictInt, Field(ge=0, le=2**63 - 1)] | None = None


class MadeEntry(BaseModel):
    """The entry is durable."""

    audit_id: str


class ProblemView(View):
    """One thing that is wrong with the log."""

    sequence: int
    kind: str
    message: str


class VerificationView(BaseModel):
    """What a verification found."""

    is_whole: bool
    version: int
    entries: int
    erased: int
    head_sequence: int
    head_hash: str
    problems: list[ProblemView]


@readable(router, "", summary="Search the audit log")
async def search(
    conditions: _Wanted, caller: SignedIn, server: ServerHere, limit: _Limit = 100, after: _Sequence = 0
) -> EntriesPage:
    """Return the entries that fit, in the order in which they were chained."""
    found = await server.lanes.work.run(
        server.lakehouse.audit.search, actor=caller.actor, limit=limit, after=after, **conditions
    )
    entries = list(map(AuditRecordView.model_validate, found))
    return EntriesPage(entries=entries, next=entries[-1].sequence if len(entries) == limit else None)


# Not for HEAD: nobody is asked for permission before the entries are read.
@router.get("/export", summary="Export the audit log", response_class=Response, responses=rows_out())
async def export(conditions: _Wanted, asked: AskedRows, caller: SignedIn, server: ServerHere) -> Response:
    """Stream the entries that fit in the form that Accept asks for: JSON, NDJSON, CSV or Arrow."""
    entries = server.lakehouse.audit.export(actor=caller.actor, **conditions)
    return await asked.answer(lambda: entries)


@readable(router, "/activity/{user_id}", summary="What a user did")
async def activity(
    user_id: UserId,
    caller: SignedIn,
    server: ServerHere,
    since: _Moment = None,
    until: _Moment = None,
    limit: _Limit = 100,
    page: Annotated[str | None, Query(max_length=64, description="`next` of the page before.")] = None,
) -> ActivityPage:
    """Return what a user did, newest first: oneself, or anybody for administrators."""
    found = await server.lanes.work.run(
        server.lakehouse.audit.activity, user_id, since, until, limit, page, actor=caller.actor
    )
    entries = list(map(AuditRecordView.model_validate, found.entries))
    return ActivityPage(entries=entries, next=found.next_page)


@router.post("/entries", status_code=201, summary="Add an entry by hand")
async def add_entry(body: NewEntry, caller: SignedIn, server: ServerHere) -> MadeEntry:
    """Record something that happened elsewhere; the answer comes when it is durable."""
    actor = caller.actor

    def add() -> str:
        entry = AuditEntry(
            action=body.action,
            user_id=body.user_id or actor.id,
            details=body.details,
            resource=body.resource,
            row_count=body.row_count,
            ip_address=actor.ip_address,
            door=Door.HTTP,
            request_id=actor.request_id,
        )
        return server.lakehouse.audit.log(entry, actor=actor)

    return MadeEntry(audit_id=await server.lanes.work.run(add))


@router.post("/verify", summary="Verify the whole audit log")
async def verify(caller: SignedIn, server: ServerHere) -> VerificationView:
    """Read the whole log and return what is wrong with it."""
    found = await server.lanes.work.run(server.lakehouse.audit.verify, actor=caller.actor)
    return VerificationView(
        is_whole=found.is_whole,
        version=found.version,
        entries=found.entries,
        erased=found.erased,
        head_sequence=found.head_sequence,
        head_hash=found.head_hash.hex(),
        problems=list(map(ProblemView.model_validate, found.problems)),
    )
