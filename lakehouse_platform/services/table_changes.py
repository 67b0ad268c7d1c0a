"""Writing rows through the gate, and once only where the caller wants that."""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from lakehouse_platform.identity.permissions import Permission
from lakehouse_platform.model.results import DeleteResult, MergeResult, UpdateResult, Written
from lakehouse_platform.private_files import state_directory
from lakehouse_platform.services.gate import Note
from lakehouse_platform.services.idempotency import Request, Served
from lakehouse_platform.services.request_rows import RequestRows
from lakehouse_platform.services.sent_rows import SentRows
from lakehouse_platform.services.table_scope import TableScope
from lakehouse_platform.store.rows import RowsIn
from lakehouse_platform.store.table import Table

_T = TypeVar("_T")

# Below the state directory of the lakehouse: streams that are kept until they are digested.
_DIRECTORY = "requests"


class TableChanges(TableScope):
    """Writes rows for an actor; see `TableAccess`.

    With an idempotency key, a request that is sent again changes nothing and has the first one's result. All raise
    `IdempotencyKeyReusedError` if the key was used for another request on the table, and `InvalidArgumentError` if it
    is not 1 to 255 visible ASCII characters. Columns are changed along (`evolve`) by those who may alter the table.
    """

    def check_may_write(self, name: str) -> None:
        """Refuse an actor who may not write to a table before any rows are received; nothing is written down of others.

        Raises:
            PermissionDeniedError: The actor may not, whether or not there is such a table.
        """
        if not self._gate.may(self.actor, Permission.WRITE_TABLE, name):
            self._run(Permission.WRITE_TABLE, name, lambda _: None, details="rows that were not received")

    def append(
        self, name: str, data: RowsIn | SentRows, *, evolve: bool = False, idempotency_key: str | None = None
    ) -> Written:
        """Add rows to a table; see `writes.append`."""
        with RequestRows(data) as rows:
            return self._written(
                name,
                rows,
                lambda table: table.append(rows.into(table, evolve=evolve), evolve=evolve),
                {"append": evolve},
                idempotency_key,
                evolve=evolve,
            )

    def overwrite(
        self, name: str, data: RowsIn | SentRows, *, evolve: bool = False, idempotency_key: str | None = None
    ) -> Written:
        """Replace a table's rows; see `writes.overwrite`."""
        with RequestRows(data) as rows:
            return self._written(
                name,
                rows,
                lambda table: table.overwrite(rows.into(table, evolve=evolve), evolve=evolve),
                {"overwrite": evolve},
                idempotency_key,
                evolve=evolve,
            )

    def overwrite_where(
        self, name: str, predicate: str, data: RowsIn | SentRows, *, idempotency_key: str | None = None
    ) -> Written:
        """Replace the rows that fulfil a predicate; see `writes.overwrite_where`."""
        with RequestRows(data) as rows:
            return self._written(
                name,
                rows,
                lambda table: table.overwrite_where(predicate, rows.into(table)),
                {"overwrite_where": predicate},
                idempotency_key,
            )

    def delete(self, name: str, predicate: str, *, idempotency_key: str | None = None) -> DeleteResult:
        """Delete the rows that fulfil a predicate; see `writes.delete`."""

        def again(served: Served) -> DeleteResult:
            return DeleteResult(version=served.version, rows_deleted=served.count("num_deleted_rows"))

        result, _ = self._change(
            name,
            lambda table: table.delete(predicate),
            again,
            lambda result: result.rows_deleted,
            {"delete": predicate},
            idempotency_key,
        )
        return result

    def update(
        self,
        name: str,
        assignments: Mapping[str, str],
        predicate: str | None = None,
        *,
        idempotency_key: str | None = None,
    ) -> UpdateResult:
        """Set columns to expressions; see `writes.update`."""

        def again(served: Served) -> UpdateResult:
            return UpdateResult(version=served.version, rows_updated=served.count("num_updated_rows"))

        result, _ = self._change(
            name,
            lambda table: table.update(assignments, predicate),
            again,
            lambda result: result.rows_updated,
            {"update": dict(assignments), "where": predicate},
            idempotency_key,
        )
        return result

    def merge(
        self,
        name: str,
        data: RowsIn | SentRows,
        on: Sequence[str] | None = None,
        *,
        evolve: bool = False,
        idempotency_key: str | None = None,
    ) -> MergeResult:
        """Insert, update and delete by key; see `merge.merge`."""

        def again(served: Served) -> MergeResult:
            return MergeResult(
                version=served.version,
                rows_inserted=served.count("num_target_rows_inserted"),
                rows_updated=served.count("num_target_rows_updated"),
                rows_deleted=served.count("num_target_rows_deleted"),
            )

        with RequestRows(data) as rows:
            result, _ = self._change(
                name,
                lambda table: table.merge(rows.to_merge(table), on, evolve=evolve),
                again,
                lambda result: result.rows_inserted + result.rows_updated + result.rows_deleted,
                {"merge": evolve, "on": None if on is None else list(on)},
                idempotency_key,
                rows,
                evolve=evolve,
            )
            return result

    def _written(
        self,
        name: str,
        rows: RequestRows,
        write: Callable[[Table], int],
        asked: Mapping[str, object],
        key: str | None,
        *,
        evolve: bool = False,
    ) -> Written:
        def act(table: Table) -> Written:
            return Written(version=write(table), rows=rows.count)

        def again(served: Served) -> Written:
            added = served.metrics.get("num_added_rows")
            return Written(version=served.version, rows=None if added is None else int(added), repeated=True)

        result, _ = self._change(
            name, act, again, lambda result: result.rows, asked, key, rows, evolve=evolve
        )
        return result

    def _change(
        self,
        name: str,
        act: Callable[[Table], _T],
        again: Callable[[Served], _T],
        count: Callable[[_T], int | None],
        asked: Mapping[str, object],
        key: str | None,
        rows: RequestRows | None = None,
        *,
        evolve: bool = False,
    ) -> tuple[_T, bool]:
        """Make one change.

        Args:
            name: The table.
            act: Makes the change.
            again: Returns the result of a change that was made before.
            count: Returns how many rows a result concerns.
            asked: What the change is asked to do, beside the rows.
            key: The idempotency key.
            rows: The rows.
            evolve: Whether it may change the columns, which is more than writing rows.
        """

        def digest(digest: hmac.HMAC) -> None:
            digest.update(json.dumps(asked).encode())
            if rows is not None:
                rows.digest_into(
                    digest, state_directory(config.state_path, self._store.base.uri) / _DIRECTORY
                )

        def change(note: Note) -> tuple[_T, bool]:
            if evolve:
                self._gate.require(self.actor, Permission.ALTER_TABLE, name, note)
            table = self._table(name)
            if key is None:
                result, repeated = act(table), False
            else:
                request = Request.of(key, self.actor.id, name, digest)
                result, repeated = request.run(table, act, again)
            note.row_count = 0 if repeated else count(result)
            note.details = "repeated request, nothing written" if repeated else note.details
            return result, repeated

        config = self._store.config
        return self._run(Permission.WRITE_TABLE, name, change, details=next(iter(asked)))
