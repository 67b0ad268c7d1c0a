"""Compare and swap: what was checked still holds when it is committed, or it is checked again."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lakehouse_platform.errors import CommitConflictError, InvalidArgumentError
from lakehouse_platform.identity.mirror import Mirror, Row, Seen
from lakehouse_platform.identity.swapping import swapped
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.store.table import Table


@pytest.fixture
def table(store: DeltaStore) -> Table:
    return store.create("t", pa.schema([pa.field("id", pa.string(), nullable=False)]), primary_key=["id"])


def test_an_attempt_that_is_overtaken_runs_again_on_what_is_there_now(table: Table) -> None:
    mirror: Mirror[Row] = Mirror(table, "id", dict)
    seen_ids: list[set[str]] = []
    pauses: list[float] = []

    def attempt(seen: Seen[Row]) -> int:
        seen_ids.append(set(seen.records))
        if len(seen_ids) <= 2:
            table.append([{"id": f"other{len(seen_ids)}"}])
        return table.append([{"id": "mine"}], expected_version=seen.version)

    version = swapped(mirror, attempt, tries=5, pause=pauses.append, spread=lambda _, most: most)
    assert version == table.version() == 3
    assert seen_ids == [set(), {"other1"}, {"other1", "other2"}]
    assert pauses == [0.01, 0.02]


def test_it_gives_up_after_the_tries_it_has_and_has_written_nothing(table: Table) -> None:
    mirror: Mirror[Row] = Mirror(table, "id", dict)
    turns: list[int] = []

    def attempt(seen: Seen[Row]) -> int:
        turns.append(table.append([{"id": f"other{len(turns)}"}]))
        return table.append([{"id": "mine"}], expected_version=seen.version)

    with pytest.raises(CommitConflictError, match="at version 3, not at 2"):
        swapped(mirror, attempt, tries=3, pause=lambda _: None)
    assert turns == [1, 2, 3]
    assert "mine" not in mirror.current()


def test_another_error_ends_it_at_once(table: Table) -> None:
    turns: list[int] = []

    def attempt(seen: Seen[Row]) -> None:
        turns.append(seen.version)
        raise InvalidArgumentError("no")

    with pytest.raises(InvalidArgumentError):
        swapped(Mirror(table, "id", dict), attempt, tries=3)
    assert turns == [0]
