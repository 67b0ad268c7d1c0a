"""Read-only SQL for one table's directory: the table as `data`, its neighbours under their names, nothing else."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from lakehouse_platform.errors import InvalidSqlError, QueryLimitError, TableNotFoundError
from lakehouse_platform.store.engine import open_table
from lakehouse_platform.store.limits import sql_limits
from lakehouse_platform.store.sql import SqlResult, run_sql
from lakehouse_platform.store.table import Table
from lakehouse_platform.text.csv_write import csv_header, csv_rows
from lakehouse_platform.text.distinct import require_distinct
from lakehouse_platform.text.json_write import table_to_json

# What a query makes is held in memory and on the client's side in its page cache.
MOST_RESULT_BYTES = 256 << 20

# A server that is told to stop waits for its queries, and clients wait for the file: longer ones have other doors.
MOST_QUERY_SECONDS = 30.0
TABLE_ALIAS = "data"


@dataclass(frozen=True, slots=True)
class SqlDoor:
    """Runs queries for one table. Blocking: call it in a thread.

    Attributes:
        table: The table of the directory.
        neighbours: Names the tables that may be read beside it.
        locate: Returns a neighbour by name.
        seconds: How long a query may take, if the configuration does not say less.
        require: Raises for a table that may not be read, whether or not it exists; None if all may be.
        count: Takes how many rows a result has, each time it is read; None if nobody asks.
    """

    table: Table
    neighbours: Callable[[], Sequence[str]]
    locate: Callable[[str], Table]
    seconds: float = MOST_QUERY_SECONDS
    require: Callable[[str], None] | None = None
    count: Callable[[int], None] | None = None

    def narrowed(
        self, may: Callable[[str], bool], require: Callable[[str], None], count: Callable[[int], None]
    ) -> SqlDoor:
        """Return the door for somebody who may not read everything.

        Args:
            may: Tells whether a table may be read.
            require: Raises for one that may not.
            count: Takes how many rows a result has.
        """
        everything = self.neighbours

        def neighbours() -> Sequence[str]:
            return [name for name in everything() if may(name)]

        return replace(self, neighbours=neighbours, require=require, count=count)

    def run(self, text: bytes) -> SqlResult:
        """Run one query.

        Raises:
            InvalidSqlError, SqlNotAllowedError, TableNotFoundError, QueryLimitError: See `run_sql`.
        """
        try:
            query = text.decode()
        except UnicodeDecodeError as error:
            raise InvalidSqlError("The query is not UTF-8 text.") from error
        result = run_sql(
            query, self._open, sql_limits(self.table.config, timeout=self.seconds), names=self._names
        )
        return result if self.count is None else _counted(result, self.count)

    def _names(self) -> list[str]:
        return sorted({TABLE_ALIAS, self.table.name, *self.neighbours()})

    def _open(self, name: str) -> Any:
        if name in {TABLE_ALIAS, self.table.name}:
            return open_table(self.table.location)
        if self.require is not None:
            self.require(name)
        if name not in self.neighbours():
            raise TableNotFoundError(
                f"There is no table {name!r} here; there is {', '.join(self._names())}.", table=name
            )
        return open_table(self.locate(name).location)


def _counted(result: SqlResult, count: Callable[[int], None]) -> SqlResult:
    """Return the same rows, of which it is told how many they were once they are read."""

    def batches() -> Iterator[pa.RecordBatch]:
        rows = 0
        for batch in result.reader():
            rows += batch.num_rows
            yield batch
        count(rows)

    return SqlResult(result.schema, lambda: pa.RecordBatchReader.from_batches(result.schema, batches()))


def result_csv(result: SqlResult, most: int = MOST_RESULT_BYTES) -> bytes:
    """Return a result as CSV with a header line.

    Raises:
        QueryLimitError: It is too big for a file of the mount.
    """
    out = io.BytesIO()
    out.write(csv_header(result.schema))
    for batch in result.reader():
        _check_size(batch.nbytes, most)  # one huge value takes minutes to be rendered
        out.write(csv_rows(batch))
        _check_size(out.tell(), most)
    return out.getvalue()


def result_json(result: SqlResult) -> bytes:
    """Return a result as one JSON array.

    Raises:
        QueryLimitError: It is too big for a file of the mount.
        InvalidSqlError: Columns have one name.
    """
    require_distinct(result.schema)
    batches: list[pa.RecordBatch] = []
    size = 0
    for batch in result.reader():
        batches.append(batch)
        size += batch.nbytes
        _check_size(size, MOST_RESULT_BYTES)
    return table_to_json(batches).encode()


def _check_size(size: int, most: int) -> None:
    if size > most:
        raise QueryLimitError(
            f"The result is larger than {most >> 20} MiB: add a LIMIT, or use `lakehouse query`."
        )
