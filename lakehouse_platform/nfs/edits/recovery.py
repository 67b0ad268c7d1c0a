"""What an earlier server left in the spool, made edits again: nothing that was acknowledged is lost or done twice."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from lakehouse_platform.errors import InfrastructureError, LakehouseError
from lakehouse_platform.nfs.content import Buffer
from lakehouse_platform.nfs.edits.edit import Edit
from lakehouse_platform.nfs.edits.gaps import Gap
from lakehouse_platform.nfs.edits.landing import landed_sequence
from lakehouse_platform.nfs.edits.rejected import Refusal, Rejected
from lakehouse_platform.nfs.edits.session import Hole, Shape
from lakehouse_platform.nfs.edits.spool import Record, RecordKind, Spool, SpoolLog
from lakehouse_platform.nfs.edits.view import View
from lakehouse_platform.nfs.tree.handles import owned

_LOG = logging.getLogger(__name__)
# A client that wrote nothing for so long, although its server was there, has been told a newer image or is gone.
_GHOST_NS = 600 * 10**9
_WRITES = frozenset({RecordKind.WRITE, RecordKind.UNSTABLE})


@dataclass(frozen=True, slots=True)
class Found:
    """An edit that was found.

    Attributes:
        mount: Whose it is.
        view: Of which table.
        edit: The edit.
        shape: What its draft looks like; None if all of it is published.
        is_removed: Whether the view is being removed.
        is_gone: Whether it was removed, with all rows.
    """

    mount: bytes
    view: View
    edit: Edit
    shape: Shape | None
    is_removed: bool = False
    is_gone: bool = False

    def is_over(self, age_ns: int) -> bool:
        """Tell whether nothing of it is left to do, and its client will not go on from it."""
        if self.edit.version is None or self.shape is not None or self.is_removed:
            return False
        return self.is_gone or age_ns > _GHOST_NS

    def gap(self, view: View, now: float) -> Gap:
        """Return the removal, to be finished in its client's view."""
        return Gap(view, Hole(self.mount, is_removed=True, since=now), self.edit.image, self.edit)


@dataclass(frozen=True, slots=True)
class Refused:
    """An edit that was found and cannot be one any more, or never could; its client may send the rest of it.

    Attributes:
        mount: Whose it is.
        view: Of which table.
        why: What is wrong.
        name: Where its bytes are kept.
    """

    mount: bytes
    view: View
    why: str
    name: str


@dataclass(slots=True)
class Recovery:
    """Goes through the logs of an earlier server.

    Attributes:
        spool: The logs.
        find_view: Returns a table's view by its key.
        rejected: Keeps what cannot be understood any more.
        now_ns: Nanoseconds since 1970.
        waiting: Logs of tables whose storage does not answer: to be tried again.
        removals: The calls that the logs say have removed a view; their clients may send them again.
        refused: Edits that were refused.
    """

    spool: Spool
    find_view: Callable[[bytes], Awaitable[View | None]]
    rejected: Rejected
    now_ns: Callable[[], int]
    waiting: list[SpoolLog] = field(default_factory=list[SpoolLog])
    removals: set[bytes] = field(default_factory=set[bytes])
    refused: list[Refused] = field(default_factory=list[Refused])

    async def begin(self) -> list[Found]:
        """Return the edits in the spool, oldest first."""
        self.waiting = await asyncio.to_thread(self.spool.existing)
        return await self.go_on()

    async def go_on(self) -> list[Found]:
        """Return the edits of waiting logs."""
        logs, self.waiting = self.waiting, []
        found = [await self._found(log) for log in logs]
        return [edit for edit in found if edit is not None]

    async def _found(self, log: SpoolLog) -> Found | None:
        records = await asyncio.to_thread(_records, log)
        if not records:
            log.discard()
            return None
        removed = [log.facts(record) for record in records if record.kind is RecordKind.REMOVED]
        self.removals.update(bytes.fromhex(facts["call"]) for facts in removed)
        key = bytes.fromhex(log.facts(records[0])["view"])
        try:
            view = await self.find_view(key)
            edit = await asyncio.to_thread(_replayed, log, records, view, self.spool.quota_bytes)
        except InfrastructureError as error:
            _LOG.warning("an edit of before the restart waits for its table: %s", error)
            self.waiting.append(log)
            return None
        if isinstance(edit, str):
            mount = _mount(log, records)
            shelf = owned(mount, key)
            name = await asyncio.to_thread(_give_up, log, records, self.rejected, shelf, edit, self.now_ns())
            if view is not None and name:
                self.refused.append(Refused(mount, view, edit, name))
            return None
        if edit.is_over(log.age_ns(self.now_ns())):
            await asyncio.to_thread(edit.edit.drop)
            return None
        return edit


def _records(log: SpoolLog) -> list[Record]:
    """Return the records of an edit, beginning with OPEN."""
    records = [record for record in log.records() if record.kind is not RecordKind.FREE]
    return records if records and records[0].kind is RecordKind.OPEN else []


def _replayed(log: SpoolLog, records: Sequence[Record], view: View | None, quota: int) -> Found | str:
    """Return the edit of a log, or why there cannot be one."""
    facts = log.facts(records[0])
    if view is None:
        return "the table is not there any more"
    try:
        image = view.images.at(facts["version"])
        if image.size != facts["size"]:
            return "the version that was edited is not shown in the same way any more"
        edit = Edit(log, image, view, quota)
        newest = view.images.refresh().version
        landed = landed_sequence(view, edit.app_id)
        was_removed = _replay(edit, records, log)
        is_gone = was_removed and landed > edit.sequence
        if landed > edit.sequence:
            edit.apply_published(_landed_size(edit, records, log, landed), landed, newest)
        is_removed = was_removed and not is_gone
        shape = None if edit.is_clean or is_removed else edit.look()
    except InfrastructureError:
        raise
    except LakehouseError as error:
        return error.message
    return Found(_mount(log, records), view, edit, shape, is_removed, is_gone)


def _replay(edit: Edit, records: Sequence[Record], log: SpoolLog) -> bool:
    """Repeat the records; return whether the view was removed at their end."""
    was_removed = False
    for record in records:
        if record.kind in _WRITES:
            stable = record.kind is RecordKind.WRITE
            edit.apply_write(record.offset, record.length, record.place, stable=stable)
        elif record.kind is RecordKind.COMMITTED:
            edit.apply_committed()
        elif record.kind is RecordKind.TRUNCATE:
            edit.apply_truncate(record.offset)
        elif record.kind is RecordKind.PUBLISHED:
            facts = log.facts(record)
            edit.apply_published(record.offset, facts["sequence"], facts["version"])
        elif record.kind is RecordKind.REVERTED:
            edit.apply_reverted()
        elif record.kind in {RecordKind.REMOVED, RecordKind.CREATED}:
            was_removed = record.kind is RecordKind.REMOVED
    return was_removed


def _landed_size(edit: Edit, records: Sequence[Record], log: SpoolLog, landed: int) -> int:
    """Return up to where the draft is in the table, if a commit landed that the log does not mention."""
    intents = [record for record in records if record.kind is RecordKind.INTENT]
    if intents and log.facts(intents[-1])["sequence"] == landed:
        return intents[-1].offset
    return edit.draft.size


def _mount(log: SpoolLog, records: Sequence[Record]) -> bytes:
    created = [record for record in records if record.kind is RecordKind.CREATED]
    return bytes.fromhex(log.facts((created or records)[-1 if created else 0])["mount"])


def _give_up(
    log: SpoolLog, records: Sequence[Record], rejected: Rejected, key: bytes, why: str, now_ns: int
) -> str:
    """Keep what is not published aside; return the name under which, empty if there is nothing."""
    published = [number for number, record in enumerate(records) if record.kind is RecordKind.PUBLISHED]
    rest = records[published[-1] + 1 if published else 0 :]
    parts: list[Buffer] = [
        log.pread(record.place, record.length) for record in rest if record.kind in _WRITES
    ]
    name = ""
    if parts:
        _LOG.warning("an edit of before the restart is kept in .rejected: %s", why)
        name = rejected.keep(
            key, parts, Refusal(f"After a restart of the server: {why}", "not_recovered"), now_ns
        )
    # How many commits were made under its name cannot be told.
    log.discard()
    return name
