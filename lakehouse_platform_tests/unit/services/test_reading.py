"""Streams in the audit log: short ones before anything is handed out, long ones at their beginning and at their end."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from lakehouse_platform.errors import (
    AuditWriteFailedError,
    InvalidSqlError,
    PermissionDeniedError,
    QueryLimitError,
)
from lakehouse_platform.identity.permissions import Permission
from lakehouse_platform.model.actors import OWNER
from lakehouse_platform.services.accounts import AuthActor
from lakehouse_platform.services.reading import GatedRows, gated_rows
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.store.scan import Rows
from lakehouse_platform_tests.support.people import entries

SCHEMA = pa.schema([("n", pa.int64())])
LONG = 70_000


def written(auth: AuthActor, store: DeltaStore) -> list[tuple[str, int | None, str | None]]:
    return [(entry["outcome"], entry["row_count"], entry["details"]) for entry in entries(auth, store)]


def rows_of(batches: list[int], error: Exception | None = None) -> Rows:
    def parts() -> Iterator[pa.RecordBatch]:
        for size in batches:
            yield pa.record_batch([pa.array(range(size), pa.int64())], schema=SCHEMA)
        if error is not None:
            raise error

    return Rows(SCHEMA, lambda: pa.RecordBatchReader.from_batches(SCHEMA, parts()), 7)


def reading(auth: AuthActor, rows: Rows, permission: Permission = Permission.READ_TABLE) -> GatedRows:
    def enter() -> Any:
        return auth.gate.enter(OWNER, permission, "rides")

    return gated_rows(enter(), rows, enter)


def test_a_short_stream_is_written_down_with_its_rows_before_it_is_handed_out(
    auth: AuthActor, store: DeltaStore
) -> None:
    rows = reading(auth, rows_of([3, 4]))
    assert written(auth, store) == [("done", 7, None)]
    assert (rows.to_arrow().num_rows, rows.version) == (7, 7)


def test_every_reading_is_written_down(auth: AuthActor, store: DeltaStore) -> None:
    rows = reading(auth, rows_of([3]))
    assert [rows.to_arrow().num_rows for _ in range(3)] == [3, 3, 3]
    assert written(auth, store) == [("done", 3, None)] * 3


def test_a_long_stream_is_written_down_at_its_beginning_and_at_its_end(
    auth: AuthActor, store: DeltaStore
) -> None:
    reader = reading(auth, rows_of([LONG, 5])).reader()
    assert written(auth, store) == [("started", None, None)]
    assert reader.read_all().num_rows == LONG + 5
    assert written(auth, store) == [("started", None, None), ("done", LONG + 5, None)]


def test_a_stream_of_large_rows_is_looked_ahead_at_less_far(auth: AuthActor, store: DeltaStore) -> None:
    schema = pa.schema([("text", pa.string())])
    batch = pa.record_batch([pa.array(["x" * 2**20] * 70)], schema=schema)
    rows = Rows(schema, lambda: pa.RecordBatchReader.from_batches(schema, [batch, batch]))
    assert reading(auth, rows).to_arrow().num_rows == 140
    assert [outcome for outcome, _, _ in written(auth, store)] == ["started", "done"]


def test_a_stream_that_is_given_up_is_written_down_with_what_was_handed_out(
    auth: AuthActor, store: DeltaStore
) -> None:
    with reading(auth, rows_of([LONG, LONG, LONG])) as rows:
        assert rows.reader().read_next_batch().num_rows == LONG
    assert written(auth, store)[1:] == [("done", LONG, "not read to its end")]


def test_a_stream_that_nobody_holds_any_more_is_written_down(auth: AuthActor, store: DeltaStore) -> None:
    reader = reading(auth, rows_of([LONG, LONG])).reader()
    reader.read_next_batch()
    del reader
    gc.collect()
    assert written(auth, store)[1:] == [("done", LONG, "not read to its end")]


def test_rows_that_are_never_read_are_written_down_as_begun_and_given_up(
    auth: AuthActor, store: DeltaStore
) -> None:
    rows = reading(auth, rows_of([LONG]))
    rows.close()
    assert written(auth, store) == [("started", None, None), ("done", 0, "not read to its end")]
    assert rows.reader().read_all().num_rows == 0


def test_a_stream_that_fails_at_once_is_refused_and_written_down(auth: AuthActor, store: DeltaStore) -> None:
    with pytest.raises(InvalidSqlError):
        reading(auth, rows_of([5], InvalidSqlError("7 / 0")))
    assert written(auth, store) == [("failed", None, "invalid_sql")]


def test_a_stream_that_fails_later_is_written_down_with_what_was_handed_out(
    auth: AuthActor, store: DeltaStore
) -> None:
    reader = reading(auth, rows_of([LONG], QueryLimitError("too many"))).reader()
    with pytest.raises(QueryLimitError):
        reader.read_all()
    assert written(auth, store)[1:] == [("failed", LONG, "query_limit")]


@pytest.mark.parametrize("size", [3, LONG])
def test_no_row_is_handed_out_that_cannot_be_written_down(auth: AuthActor, size: int) -> None:
    passage = auth.gate.enter(OWNER, Permission.READ_TABLE, "rides")
    auth.audit.close()
    with pytest.raises(AuditWriteFailedError):
        gated_rows(passage, rows_of([size]), lambda: passage)


def test_a_stream_whose_end_cannot_be_written_down_does_not_end_well(auth: AuthActor) -> None:
    reader = reading(auth, rows_of([LONG])).reader()
    auth.audit.close()
    with pytest.raises(AuditWriteFailedError):
        reader.read_all()


def test_a_further_reading_asks_the_gate_again(auth: AuthActor, store: DeltaStore) -> None:
    def refuse() -> Any:
        raise PermissionDeniedError("not any more")

    rows = gated_rows(auth.gate.enter(OWNER, Permission.READ_TABLE, "rides"), rows_of([3]), refuse)
    assert rows.to_arrow().num_rows == 3
    with pytest.raises(PermissionDeniedError):
        rows.reader()


def test_what_is_sensitive_is_written_down_before_it_is_looked_at(auth: AuthActor, store: DeltaStore) -> None:
    reading(auth, rows_of([3]), Permission.EXPORT_TABLE)
    assert written(auth, store) == [("started", None, None), ("done", 3, None)]
