"""Writing rows through the gate: counted, stamped with who wrote them, and once only where that is wanted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pytest

from lakehouse_platform.errors import (
    CommitConflictError,
    IdempotencyKeyReusedError,
    InvalidArgumentError,
    InvalidPredicateError,
    InvalidRowsError,
    PermissionDeniedError,
)
from lakehouse_platform.identity.grants import Grants
from lakehouse_platform.model.origin import Door, Origin
from lakehouse_platform.model.results import Written
from lakehouse_platform.model.rights import EVERY_TABLE, Right
from lakehouse_platform.services.accounts import AuthActor
from lakehouse_platform.services.tables import TableAccess
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform_tests.support.people import entries
from lakehouse_platform_tests.unit.services.conftest import RIDES, person

CHUR = {"id": 3, "town": "Chur"}
Write = Callable[[TableAccess, str | None], Any]
WRITES: dict[str, tuple[Write, int]] = {
    "append": (lambda t, key: t.append("rides", [CHUR, CHUR], idempotency_key=key), 2),
    "overwrite": (lambda t, key: t.overwrite("rides", [CHUR], idempotency_key=key), 1),
    "overwrite_where": (lambda t, key: t.overwrite_where("rides", "id = 3", [CHUR], idempotency_key=key), 1),
    "delete": (lambda t, key: t.delete("rides", "id = 1", idempotency_key=key), 1),
    "update": (lambda t, key: t.update("rides", {"id": "id + 1"}, idempotency_key=key), 2),
    "merge": (lambda t, key: t.merge("rides", [CHUR, {"id": 1, "_op": "DELETE"}], ["id"],
                                     idempotency_key=key), 2),
}  # fmt: skip


@pytest.fixture
def writer(store: DeltaStore, tables: TableAccess) -> TableAccess:
    Grants(store).grant("writer", EVERY_TABLE, Right.WRITE, by="owner")
    return tables.acting_as(person("writer"), Origin(door=Door.HTTP, run_id="request-9"))


@pytest.mark.parametrize("name", WRITES)
def test_a_write_is_audited_with_its_rows_and_stamped_with_its_origin(
    auth: AuthActor, store: DeltaStore, writer: TableAccess, name: str
) -> None:
    write, rows = WRITES[name]
    assert write(writer, None).version == 3
    (entry,) = entries(auth, store)
    assert (entry["action"], entry["outcome"], entry["row_count"]) == ("data_write", "done", rows)
    assert (entry["user_id"], entry["resource"], entry["details"]) == ("writer", "rides", name)
    info = store.table("rides").commit_info(3)
    assert info is not None
    assert {info[f"lakehouse.{key}"] for key in ("actor", "door", "runId")} == {"writer", "http", "request-9"}


@pytest.mark.parametrize("name", WRITES)
def test_a_write_with_a_key_is_made_once_and_has_the_same_result_again(
    auth: AuthActor, store: DeltaStore, writer: TableAccess, name: str
) -> None:
    write, rows = WRITES[name]
    first = write(writer, "key-1")
    before = store.scan("rides").to_arrow().num_rows
    store.append("rides", [CHUR])
    again = write(writer, "key-1")
    if isinstance(first, Written):
        assert (first.rows, first.repeated, again.repeated) == (rows, False, True)
        assert (again.version, again.rows) == (first.version, rows)
    else:
        assert again == first
    assert store.table("rides").version() == 4
    assert store.scan("rides").to_arrow().num_rows == before + 1
    done = [(entry["row_count"], entry["details"]) for entry in entries(auth, store)]
    assert done == [(rows, name), (0, "repeated request, nothing written")]


@pytest.mark.parametrize("name", WRITES)
def test_a_key_is_not_used_for_another_write(store: DeltaStore, writer: TableAccess, name: str) -> None:
    writer.append("rides", [{"id": 9, "town": "Genf"}], idempotency_key="key-1")
    with pytest.raises(IdempotencyKeyReusedError):
        WRITES[name][0](writer, "key-1")
    assert store.table("rides").version() == 3


def test_what_is_asked_counts_beside_the_rows(writer: TableAccess) -> None:
    writer.overwrite_where("rides", "id = 3", [CHUR], idempotency_key="key-1")
    with pytest.raises(IdempotencyKeyReusedError):
        writer.overwrite_where("rides", "id = 3 OR id = 1", [CHUR], idempotency_key="key-1")
    writer.update("rides", {"town": "'Thun'"}, "id = 1", idempotency_key="key-2")
    for assignments, predicate in (({"town": "'Thun'"}, "id = 2"), ({"town": "'Chur'"}, "id = 1")):
        with pytest.raises(IdempotencyKeyReusedError):
            writer.update("rides", assignments, predicate, idempotency_key="key-2")


def test_a_key_of_one_actor_or_table_is_none_of_another(store: DeltaStore, writer: TableAccess) -> None:
    Grants(store).grant("other", EVERY_TABLE, Right.WRITE, by="owner")
    row = pa.table({"town": ["Chur"]})
    assert not writer.append("rides", row, idempotency_key="key").repeated
    assert not writer.append("towns", row, idempotency_key="key").repeated
    assert not writer.acting_as(person("other")).append("rides", row, idempotency_key="key").repeated
    assert writer.append("rides", row, idempotency_key="key").repeated


def test_a_stream_is_counted_and_can_have_a_key(store: DeltaStore, writer: TableAccess) -> None:
    table = pa.table({"id": range(70_000), "town": ["Chur"] * 70_000}, schema=RIDES)

    def rows(size: int) -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(RIDES, table.to_batches(max_chunksize=size))

    assert writer.append("rides", rows(9_000)) == Written(version=3, rows=70_000)
    assert writer.append("rides", rows(9_000), idempotency_key="k") == Written(version=4, rows=70_000)
    again = writer.append("rides", rows(1_000), idempotency_key="k")
    assert again == Written(version=4, rows=70_000, repeated=True)
    assert store.scan("rides").to_arrow().num_rows == 140_002


def test_a_write_that_fails_changes_nothing_and_is_audited(
    auth: AuthActor, store: DeltaStore, writer: TableAccess
) -> None:
    with pytest.raises(InvalidRowsError):
        writer.append("rides", [{"id": 1, "city": "x"}], idempotency_key="key")
    with pytest.raises(InvalidPredicateError):
        writer.delete("rides", "id IN (SELECT id FROM towns)")
    with pytest.raises(InvalidArgumentError):
        writer.append("rides", [CHUR], idempotency_key="two words")
    assert store.table("rides").version() == 2
    assert [(entry["outcome"], entry["details"].split("; ")[1]) for entry in entries(auth, store)] == [
        ("failed", "invalid_rows"),
        ("failed", "invalid_predicate"),
        ("failed", "invalid_argument"),
    ]
    # The key was not used up.
    assert not writer.append("rides", [CHUR], idempotency_key="key").repeated


def test_a_key_is_not_used_up_by_a_conflict(store: DeltaStore, writer: TableAccess) -> None:
    store.table("rides").set_primary_key(["id"])
    rows = pa.table({"id": [3], "town": ["Chur"]}, schema=RIDES)

    def overtaken() -> Iterator[pa.RecordBatch]:
        yield from rows.to_batches()
        # The engine reads the stream on a thread of its own, where it cannot be called again.
        with ThreadPoolExecutor(1) as elsewhere:
            elsewhere.submit(store.delete, "rides", "id = 1").result()

    with pytest.raises(CommitConflictError):
        writer.append("rides", pa.RecordBatchReader.from_batches(RIDES, overtaken()))
    stream = pa.RecordBatchReader.from_batches(RIDES, rows.to_batches())
    assert writer.append("rides", stream, idempotency_key="key") == Written(version=5, rows=1)


def test_columns_are_changed_along_by_those_only_who_may_alter_the_table(
    auth: AuthActor, store: DeltaStore, tables: TableAccess, writer: TableAccess
) -> None:
    rows = pa.table({"id": [3], "town": ["Chur"], "km": [1.5]})
    for write in (writer.append, writer.overwrite, writer.merge):
        with pytest.raises(PermissionDeniedError, match="change columns"):
            write("rides", rows, evolve=True)
    denied = entries(auth, store)[-1]
    assert (denied["action"], denied["outcome"], denied["resource"]) == (
        "permission_denied",
        "denied",
        "rides",
    )
    assert store.table("rides").version() == 2
    assert tables.append("rides", rows, evolve=True).version == 3
    assert store.table("rides").arrow_schema().names == ["id", "town", "km"]
