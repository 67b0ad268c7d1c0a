"""The audit log as a stream of rows, through the gate: written down when it begins and when it ends."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, fields
from typing import Any

import pyarrow as pa

from lakehouse_platform.audit.reports import AuditRecord
from lakehouse_platform.identity.permissions import Permission
from lakehouse_platform.model.actions import ActionType
from lakehouse_platform.model.actors import Actor
from lakehouse_platform.services.auditing import AuditActor
from lakehouse_platform.services.gate import Gate, Passage

# The most that a search gives at once.
_PAGE = 10_000
_NUMBERS = frozenset({"sequence", "row_count"})
_NAMES = [field.name for field in fields(AuditRecord)]
SCHEMA: pa.Schema = pa.schema([(name, pa.int64() if name in _NUMBERS else pa.string()) for name in _NAMES])


class AuditExport:
    """Entries of the audit log that can be read as often as is asked for; each reading goes through the gate.

    Attributes:
        schema: The columns.
        version: None: it is read page by page, each at the newest version.
    """

    schema: pa.Schema = SCHEMA
    version: int | None = None

    def __init__(self, audit: AuditActor, gate: Gate, actor: Actor, conditions: Mapping[str, Any]) -> None:
        """Name the entries.

        Args:
            audit: The audit log.
            gate: What each reading goes through.
            actor: Who reads.
            conditions: Which entries; see `AuditActor.search`.
        """
        self._audit = audit
        self._gate = gate
        self._actor = actor
        self._conditions = dict(conditions)

    def reader(self) -> pa.RecordBatchReader:
        """Return the entries as a stream, in the order in which they were chained.

        Raises:
            PermissionDeniedError, RateLimitedError, AuditWriteFailedError: As the gate does.
            InvalidTimestampError, InvalidArgumentError: A condition is none.
        """
        passage = self._gate.enter(
            self._actor, Permission.READ_AUDIT, None, details="export", action=ActionType.DATA_EXPORT
        )
        passage.note.resource = "audit_log"
        passage.started()
        batches = self._batches(passage)
        return pa.RecordBatchReader.from_batches(SCHEMA, batches)

    def close(self) -> None:
        """Do nothing: a reading that is given up is written down a little after its stream is dropped."""

    def _batches(self, passage: Passage) -> Iterator[pa.RecordBatch]:
        rows = 0
        try:
            for page in self._pages():
                # Before they are handed out: who stops reading here has them.
                rows += len(page)
                passage.note.row_count = rows
                yield _batch(page)
        except GeneratorExit:
            # Streams are dropped in the middle of anything, also where nothing may wait for a lock or a disk.
            threading.Thread(target=passage.done, name="audit-export-end").start()
            raise
        except BaseException as error:
            passage.failed(error)
            raise
        passage.done()

    def _pages(self) -> Iterator[list[AuditRecord]]:
        after = 0
        while page := self._audit.search(**self._conditions, limit=_PAGE, after=after):
            yield page
            after = page[-1].sequence
            if len(page) < _PAGE:
                return


def _batch(page: Sequence[AuditRecord]) -> pa.RecordBatch:
    columns = zip(*(astuple(record) for record in page), strict=True)
    return pa.RecordBatch.from_arrays(
        [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)], schema=SCHEMA
    )
