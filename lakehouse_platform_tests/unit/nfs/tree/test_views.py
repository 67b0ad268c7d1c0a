from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from lakehouse_platform.model.results import VersionInfo
from lakehouse_platform.nfs.tree.views import Text, changed_ns, history_text, null_counts


@given(st.text(), st.text())
def test_a_line_of_the_history_is_one_line_with_five_fields(operation: str, actor: str) -> None:
    info = VersionInfo(
        version=3,
        timestamp=datetime(2026, 1, 2, tzinfo=UTC),
        operation=operation,
        metrics={"a": 1},
        actor=actor,
    )
    lines = history_text([info]).decode().splitlines()
    assert len(lines) == 1
    assert lines[0].split("\t")[:2] == ["3", "2026-01-02T00:00:00.000Z"]
    assert len(lines[0].split("\t")) == 5


def test_versions_of_the_same_millisecond_change_at_different_times() -> None:
    assert changed_ns(1, 1000) < changed_ns(2, 1000) < changed_ns(3, 1001)


def test_nulls_are_known_where_every_file_tells_them() -> None:
    actions = pa.table({"null_count.a": [1, 2], "null_count.b": [1, None], "num_records": [3, 3]})
    assert null_counts(actions) == {"a": 3}
    assert null_counts(actions.slice(0, 0)) == {}


@given(st.binary(), st.integers(0, 100), st.integers(0, 100))
def test_a_text_is_read_in_pieces(data: bytes, offset: int, count: int) -> None:
    text = Text(data, 0)
    assert b"".join(map(bytes, text.read(offset, count))) == data[offset : offset + count]
    assert text.size == len(data)
