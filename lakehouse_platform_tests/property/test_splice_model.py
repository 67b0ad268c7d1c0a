"""Splices against a model of plain lists, one for each data file."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.store.splice import Cut, FileSplices
from lakehouse_platform.store.table import Table
from lakehouse_platform_tests.support.layout import Rows, layout, typed

SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.string()), ("v", pa.float64()), ("l", pa.list_(pa.int32()))])
PARTITIONS = ["a", "x y", "ü/%=:", None]


def row(number: int, p: str | None, v: float | None = 1.0) -> dict[str, Any]:
    return {"id": number, "p": p, "v": v, "l": [number, None]}


_ROWS = st.lists(
    st.builds(
        row,
        st.integers(100, 999),
        st.sampled_from(PARTITIONS),
        st.sampled_from([None, -0.0, math.nan, math.inf]),
    ),
    max_size=3,
)
# Where cuts begin and end, as shares of whatever number of rows a file then has.
_CUTS = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1), _ROWS), max_size=3)
_STEPS = st.lists(st.tuples(st.lists(_CUTS, min_size=4, max_size=8), _ROWS), min_size=1, max_size=4)


def cuts_of(size: int, shares: list[tuple[float, float, Rows]]) -> list[tuple[int, int, Rows]]:
    """Return sorted cuts that do not overlap."""
    edges = sorted(round(share * size) for low, high, _ in shares for share in (low, high))
    return [(edges[2 * n], edges[2 * n + 1], new) for n, (_, _, new) in enumerate(shares)]


@pytest.fixture
def fresh(store: DeltaStore) -> Callable[[bool], Table]:
    def create(partitioned: bool) -> Table:
        name = f"t{len(store.tables())}"
        table = store.create(name, SCHEMA, partition_by=["p"] if partitioned else ())
        for first in (0, 5):
            table.append([row(number, PARTITIONS[number % 2]) for number in range(first, first + 5)])
        return table

    return create


@settings(max_examples=25)
@given(steps=_STEPS, partitioned=st.booleans())
def test_any_sequence_of_splices_does_what_it_would_do_to_lists(
    fresh: Callable[[bool], Table], steps: list[Any], partitioned: bool
) -> None:
    table = fresh(partitioned)
    for shares, appended in steps:
        before = layout(table)
        version = table.version()
        files: list[FileSplices] = []
        stay: list[Rows] = []
        moved: Rows = []
        for (path, rows), some in zip(before.items(), [*shares, *([[]] * len(before))], strict=False):
            spans = cuts_of(len(rows), some)
            files.append(FileSplices(path, tuple(Cut(a, b, typed(table, new)) for a, b, new in spans)))
            stay.append(_applied(rows, spans, moved, rows[0]["p"] if partitioned else ...))
        changed = bool(appended) or any(a < b or new for file in files for a, b, new in _spans(file))
        done = DeltaStore(table.config).table(table.name).splice(version, files, typed(table, appended))
        assert done.version == version + changed
        after = list(layout(table).values())
        _check(after, [rows for rows in stay if rows], [*moved, *appended], partitioned=partitioned)
        assert sorted(map(repr, table.scan().to_pylist())) == sorted(repr(r) for rows in after for r in rows)
    everything = sorted(repr(r) for rows in layout(table).values() for r in rows)
    table.vacuum(retention_hours=0)
    assert sorted(map(repr, table.scan().to_pylist())) == everything


def _applied(rows: Rows, spans: list[tuple[int, int, Rows]], moved: Rows, partition: Any) -> Rows:
    """Return a file's rows after its cuts; rows of another partition are moved."""
    result = list(rows)
    for start, stop, new in reversed(spans):
        result[start:stop] = [found for found in new if partition is ... or found["p"] == partition]
    moved += [
        found for _, _, new in spans for found in new if partition is not ... and found["p"] != partition
    ]
    return result


def _spans(file: FileSplices) -> list[tuple[int, int, int]]:
    return [(cut.start, cut.stop, cut.rows.num_rows) for cut in file.cuts]


def _check(after: list[Rows], stay: list[Rows], new: Rows, *, partitioned: bool) -> None:
    """Old files come first, each in its order; then the new rows, in order within their partition."""
    assert repr(after[: len(stay)]) == repr(stay)
    added = [found for rows in after[len(stay) :] for found in rows]
    if not partitioned:
        assert repr(added) == repr(new)
        return
    for partition in PARTITIONS:
        mine = [found for found in added if found["p"] == partition]
        assert repr(mine) == repr([found for found in new if found["p"] == partition])
    assert len(added) == len(new)
