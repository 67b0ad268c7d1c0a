"""One of several processes that work on a store at the same time; started by `support.processes`.

Only typed errors are answers. Anything else ends the process and so fails the test.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa

from lakehouse_platform.audit.entries import AuditEntry
from lakehouse_platform.audit.log import AuditLog
from lakehouse_platform.errors import (
    CommitConflictError,
    DataFilesMissingError,
    DuplicateKeyError,
    LakehouseError,
    TableExistsError,
)
from lakehouse_platform.model.actions import ActionType
from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.store.tables import TableSpec
from lakehouse_platform_tests.support.processes import Outcome
from lakehouse_platform_tests.support.tables import PEOPLE, people

_ANSWERS = (CommitConflictError, DataFilesMissingError, DuplicateKeyError, TableExistsError)


def append(store: DeltaStore, name: str, keys: Sequence[int]) -> Iterator[Outcome]:
    """Append one row per key, each in its own commit."""
    for key in keys:
        yield _attempt(key, lambda key=key: store.append(name, people(key)))


def append_shuffled(store: DeltaStore, name: str, keys: Sequence[int]) -> Iterator[Outcome]:
    """Append the same keys as others do, in an order of our own."""
    return append(store, name, random.sample(keys, len(keys)))


def delete(store: DeltaStore, name: str, keys: Sequence[int]) -> Iterator[Outcome]:
    """Delete one row per key."""
    for key in keys:
        yield _attempt(key, lambda key=key: store.delete(name, f"id = {key}").version)


def merge(store: DeltaStore, name: str, keys: Sequence[int]) -> Iterator[Outcome]:
    """Set the age of the row with each key to the key; insert it if it is not there."""
    for key in keys:
        yield _attempt(key, lambda key=key: store.merge(name, people(key, age=key), on=["id"]).version)


def increment(store: DeltaStore, name: str, times: int) -> Iterator[Outcome]:
    """Make everybody one year older, several times."""
    for turn in range(times):
        yield _attempt(turn, lambda: store.update(name, {"age": "age + 1"}, None).version)


def compact(store: DeltaStore, name: str, times: int) -> Iterator[Outcome]:
    """Compact several times."""
    for turn in range(times):
        yield _attempt(turn, lambda: store.compact(name).version)


def compact_and_vacuum(store: DeltaStore, name: str, times: int) -> Iterator[Outcome]:
    """Compact and then delete every file that the newest version does not need."""
    for turn in range(times):
        yield _attempt(turn, lambda: _compact_and_vacuum(store, name))


def count(store: DeltaStore, name: str, times: int) -> Iterator[Outcome]:
    """Read the whole table several times and tell how many rows there were."""
    for turn in range(times):
        try:
            yield Outcome(turn, value=store.scan(name, columns=["id"]).to_arrow().num_rows)
        except DataFilesMissingError as error:
            yield Outcome(turn, error=error.code)


def create(store: DeltaStore, name: str, column: str) -> Iterator[Outcome]:
    """Create the table with a column of our own."""
    yield _attempt(0, lambda: store.create(name, pa.schema([(column, pa.int64())])).version())


def ensure(store: DeltaStore, name: str) -> Iterator[Outcome]:
    """Create the table unless it is there."""
    yield _attempt(
        0,
        lambda: store.ensure(
            TableSpec(name=name, description="", schema=PEOPLE, primary_key=("id",))
        ).version(),
    )


def record(store: DeltaStore, state: str, keys: Sequence[int]) -> Iterator[Outcome]:
    """Record one audit entry per key, each moved to the table at once."""
    with AuditLog(store, Path(state), interval_s=0) as log:
        for key in keys:
            log.record(AuditEntry(action=ActionType.DATA_READ, user_id="u", row_count=key))
            log.flush()
            yield Outcome(key)


def _compact_and_vacuum(store: DeltaStore, name: str) -> int:
    version = store.compact(name).version
    store.vacuum(name, retention_hours=0)
    return version


def _attempt(key: int, act: Callable[[], int]) -> Outcome:
    try:
        return Outcome(key, version=act())
    except _ANSWERS as error:
        return _failed(key, error)


def _failed(key: int, error: LakehouseError) -> Outcome:
    return Outcome(key, error=error.code)


_TASKS: dict[str, Callable[..., Iterator[Outcome]]] = {
    task.__name__: task
    for task in (
        append,
        append_shuffled,
        delete,
        merge,
        increment,
        compact,
        compact_and_vacuum,
        count,
        create,
        ensure,
        record,
    )
}


def main() -> None:
    store = DeltaStore(LakehouseConfig(**json.loads(sys.stdin.readline())))
    job: dict[str, Any] = json.loads(sys.stdin.readline())
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    for outcome in _TASKS[job["task"]](store, **job["arguments"]):
        sys.stdout.write(json.dumps(asdict(outcome)) + "\n")


if __name__ == "__main__":
    main()
