"""A table's past: times that only go forward, whatever the clock and the files did."""

from __future__ import annotations

import json
import os
import shutil
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakehouse_platform.errors import (
    InvalidTimestampError,
    TableNotFoundError,
    TimestampOutOfRangeError,
    VersionNotFoundError,
)
from lakehouse_platform.model.times import from_epoch_ms, to_epoch_ms, to_rfc3339
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.store.table import Table

SCHEMA = pa.schema([("id", pa.int64())])
START = 1_700_000_000_000


def with_times(table: Table, times: list[int]) -> None:
    """Rewrite the commits so that version n was made at the n-th time (milliseconds after a start)."""
    for version, moment in enumerate(times):
        file = table.location.path / "_delta_log" / f"{version:020}.json"
        actions = [json.loads(line) for line in file.read_text().splitlines()]
        for action in actions:
            if "commitInfo" in action:
                action["commitInfo"]["timestamp"] = START + moment
        file.write_text("\n".join(map(json.dumps, actions)))


@pytest.fixture
def table(store: DeltaStore) -> Table:
    """Versions 0 to 5; version n has rows 1 to n."""
    made = store.create("t", SCHEMA)
    for number in range(1, 6):
        made.append([{"id": number}])
    return made


@settings(max_examples=20)
@given(times=st.lists(st.integers(0, 50), min_size=6, max_size=6), limit=st.integers(1, 6))
def test_times_ascend_and_name_their_version_whatever_the_clock_did(
    table: Table, times: list[int], limit: int
) -> None:
    with_times(table, times)
    past = table.history()
    moments = [to_epoch_ms(info.timestamp) - START for info in reversed(past)]
    assert all(later > earlier for earlier, later in pairwise(moments))
    assert all(moment >= written for moment, written in zip(moments, times, strict=True))
    assert [table.version_at(info.timestamp) for info in past] == [5, 4, 3, 2, 1, 0]
    assert table.history(limit) == past[:limit]


def test_a_time_between_two_commits_names_the_earlier(table: Table) -> None:
    with_times(table, [0, 10, 20, 30, 40, 50])
    assert table.version_at(from_epoch_ms(START + 29)) == 2
    assert table.version_at(from_epoch_ms(START + 30)) == 3
    assert table.version_at(to_rfc3339(from_epoch_ms(START + 30))) == 3
    assert table.version_at(datetime(9999, 1, 1, tzinfo=UTC)) == 5


def test_microseconds_before_a_commit_are_before_it(table: Table) -> None:
    with_times(table, [0, 10, 20, 30, 40, 50])
    assert table.version_at(from_epoch_ms(START + 30) - timedelta(microseconds=1)) == 2


def test_a_time_before_the_first_version_names_it(table: Table) -> None:
    with_times(table, [0, 10, 20, 30, 40, 50])
    with pytest.raises(TimestampOutOfRangeError, match=r"0 of 2023-11-14T22:13:20\.000Z") as caught:
        table.version_at(from_epoch_ms(START - 1))
    assert caught.value.details["version"] == 0


def test_a_datetime_without_a_zone_is_refused(table: Table) -> None:
    with pytest.raises(InvalidTimestampError, match="no time zone"):
        table.version_at(datetime(2026, 2, 1))  # noqa: DTZ001 - the point of the test


def test_a_copy_with_new_file_times_finds_the_same_versions(
    store: DeltaStore, table: Table, tmp_path: Path
) -> None:
    with_times(table, [0, 10, 20, 30, 40, 50])
    copied = shutil.copytree(table.location.path, tmp_path / "copy", copy_function=shutil.copyfile)
    for number, file in enumerate(sorted((copied / "_delta_log").iterdir(), reverse=True)):
        os.utime(file, (number, number))
    copy = store.at(copied)
    assert [copy.version_at(from_epoch_ms(START + moment)) for moment in (0, 15, 50)] == [0, 1, 5]
    assert copy.history() == table.history()


@pytest.mark.parametrize("limit", [0, -1])
def test_no_commits_are_asked_for_and_none_come(table: Table, limit: int) -> None:
    assert table.history(limit) == []


def _forget(table: Table, up_to: int) -> None:
    """Let the log up to a version look old, and clean it up."""
    for file in (table.location.path / "_delta_log").iterdir():
        if file.name[:20].isdigit() and int(file.name[:20]) <= up_to:
            os.utime(file, (1, 1))
    table.clean_up_log()


def test_after_a_clean_up_the_past_begins_at_the_first_readable_version(table: Table) -> None:
    with_times(table, [0, 10, 20, 30, 40, 50])
    table.checkpoint()
    table.append([{"id": 6}])
    _forget(table, 4)
    assert [info.version for info in table.history()] == [6, 5]
    assert table.version_at(from_epoch_ms(START + 50)) == 5
    with pytest.raises(TimestampOutOfRangeError, match="first readable version is 5"):
        table.version_at(from_epoch_ms(START + 49))
    for version in range(5):
        with pytest.raises(VersionNotFoundError, match="versions 5 to 6"):
            table.scan(version=version)


def test_a_log_of_a_checkpoint_alone_says_that_it_knows_no_times(table: Table) -> None:
    table.checkpoint()
    for file in (table.location.path / "_delta_log").glob("*.json"):
        file.unlink()
    assert table.scan().to_arrow().num_rows == 5
    assert table.history() == []
    with pytest.raises(TimestampOutOfRangeError, match="by version"):
        table.version_at(datetime.now(UTC))


def test_restore_goes_by_version_text_or_time_and_back(table: Table) -> None:
    with_times(table, [0, 10, 20, 30, 40, 50])
    assert table.restore(2) == 6
    assert table.restore(to_rfc3339(from_epoch_ms(START + 40))) == 7
    assert table.restore(from_epoch_ms(START)) == 8
    rows = [table.scan(version=version).to_arrow().num_rows for version in (6, 7, 8)]
    assert rows == [2, 4, 0]
    assert table.restore(8) == 8
    with pytest.raises(VersionNotFoundError):
        table.restore(99)
    with pytest.raises(VersionNotFoundError):
        table.restore(-1)


def test_restore_keeps_the_key(store: DeltaStore) -> None:
    keyed = store.create("k", SCHEMA, primary_key=["id"])
    keyed.append([{"id": 1}])
    keyed.delete("id = 1")
    keyed.restore(1)
    assert keyed.primary_key() == ("id",)
    assert keyed.scan().to_pylist() == [{"id": 1}]


def test_a_table_that_is_missing_was_there_at_no_time(store: DeltaStore) -> None:
    with pytest.raises(TableNotFoundError):
        store.read_timestamp("nothing", "2026-01-01T00:00:00Z")
