"""Columns of every type are edited through the kernel, in tables with and without a key."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from lakehouse_platform.model.schema import Field, Schema
from lakehouse_platform.store.properties import ALLOW_MISSING_COLUMNS
from lakehouse_platform_tests.support.mounted_lake import ROWS, MountedTable, settled_versions

# A column of each type: its values in three rows, and how each is written in a file.
COLUMNS: dict[str, tuple[str, list[Any], list[str]]] = {
    "id": ("Int64", [1, 2, 3], ["1", "2", "3"]),
    "part": ("String", ["a", "b", "c d"], ["a", "b", "c d"]),
    "i8": ("Int8", [-128, None, 127], ["-128", "", "127"]),
    "i16": ("Int16", [-32768, None, 32767], ["-32768", "", "32767"]),
    "i32": ("Int32", [-(2**31), None, 2**31 - 1], ["-2147483648", "", "2147483647"]),
    "i64": ("Int64", [-(2**63), None, 2**63 - 1], ["-9223372036854775808", "", "9223372036854775807"]),
    "f32": ("Float32", [1.5, None, -0.25], ["1.5", "", "-0.25"]),
    "f64": ("Float64", [0.1, None, 1e300], ["0.1", "", "1e+300"]),
    "flag": ("Boolean", [True, None, False], ["true", "", "false"]),
    "text": ("String", ['say "hi", twice', None, ""], ['"say ""hi"", twice"', "", '""']),
    "lines": ("String", ["one\ntwo\n", None, "ö €"], ['"one\ntwo\n"', "", "ö €"]),
    "day": ("Date32", [date(2026, 2, 3), None, date(1, 1, 1)], ["2026-02-03", "", "0001-01-01"]),
    "at": (
        "Timestamp",
        [datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC), None, datetime(1969, 1, 1, 0, 0, 0, 5, tzinfo=UTC)],
        ["2026-02-03T04:05:06Z", "", "1969-01-01T00:00:00.000005Z"],
    ),
    "local": (
        "TimestampNtz",
        [datetime(2026, 2, 3, 4, 5, 6), None, datetime(1969, 1, 1)],  # noqa: DTZ001 - it has no zone
        ["2026-02-03T04:05:06", "", "1969-01-01T00:00:00"],
    ),
    "raw": ("Binary", [b"\x00\xff", None, b""], ["AP8=", "", '""']),
    "price": ("Decimal(10,2)", [Decimal("1.50"), None, Decimal("-99999999.99")], ["1.50", "", "-99999999.99"]),
    "many": ("List<Int32>", [[1, None], None, []], ['"[1,null]"', "", "[]"]),
    "pair": (
        "Struct<x:Int32,y:String>",
        [{"x": 1, "y": "a\nb"}, None, {"x": None, "y": ""}],
        ['"{""x"":1,""y"":""a\\nb""}"', "", '"{""x"":null,""y"":""""}"'],
    ),
    "lookup": ("Map<String,Int32>", [[("k", 1)], None, []], ['"{""k"":1}"', "", "{}"]),
}  # fmt: skip
WIDE = Schema([Field(name, kind) for name, (kind, _, _) in COLUMNS.items()])
FULL, EMPTY, LAST = ({name: values[row] for name, (_, values, _) in COLUMNS.items()} for row in range(3))
KEYS = {"one column": ("id",), "two columns": ("id", "part"), "a text": ("part",), "none": ()}


def fields(row: int, **changed: str) -> list[str]:
    """Return the fields of a row as a file has them, some of them changed."""
    return [changed.get(name, texts[row]) for name, (_, _, texts) in COLUMNS.items()]


def csv(*lines: Iterable[str]) -> bytes:
    """Return lines of fields as bytes of a file."""
    return "".join(",".join(line) + "\n" for line in lines).encode()


def made(path: str, data: bytes) -> str:
    """Return a command that writes bytes to a file of the guest."""
    return f"echo {base64.b64encode(data).decode()} | busybox base64 -d > {path}"


@pytest.fixture
def wides(mounted: Callable[..., MountedTable]) -> list[MountedTable]:
    """Tables with each key: a full row, twice where there is no key, and one that is NULL but for its key."""
    return [
        mounted(schema=WIDE, primary_key=key, rows=[FULL, *([] if key else [FULL]), EMPTY])
        for key in KEYS.values()
    ]


def stored(table: MountedTable) -> list[dict[str, Any]]:
    """Return the table's rows, as they come."""
    return sorted(table.table.scan().to_arrow().to_pylist(), key=repr)


@dataclass(frozen=True)
class Change:
    """A command, and what the table and the file hold after it."""

    table: MountedTable
    command: str
    rows: list[dict[str, Any]]
    shown: bytes


def expect(*changes: Change) -> None:
    """Run the command of each change in its table: each is one version, and table and file hold what they should."""
    before = [(change.table, change.table.table.version()) for change in changes]
    results = [change.table.run(f"{change.command} && cat data.csv") for change in changes]
    versions = settled_versions(before)
    for change, (table, above), (status, output), version in zip(
        changes, before, results, versions, strict=True
    ):
        assert version == above + 1, (table.table.primary_key(), output)
        assert (status, stored(table)) == (0, sorted(change.rows, key=repr)), output
        assert output == change.shown.decode()


def full_rows(wide: MountedTable) -> int:
    """Return how often the full row is in the table."""
    return stored(wide).count(FULL)


def test_a_row_is_appended(wides: list[MountedTable]) -> None:
    line = csv(fields(2)).decode().removesuffix("\n")
    expect(
        *(
            Change(
                wide,
                f"echo '{line}' >> data.csv",
                [FULL] * times + [EMPTY, LAST],
                csv(COLUMNS, *[fields(0)] * times, fields(1), fields(2)),
            )
            for wide, times in zip(wides, map(full_rows, wides), strict=True)
        )
    )


def test_one_row_is_changed_in_place(wides: list[MountedTable]) -> None:
    keys = {"id": "2", "part": "b"}
    line = csv(fields(2, **keys)).decode().removesuffix("\n").replace("&", r"\&")
    expect(
        *(
            Change(
                wide,
                f"sed -i 's|^2,b,.*|{line}|' data.csv",
                [FULL] * times + [{**LAST, "id": 2, "part": "b"}],
                csv(COLUMNS, *[fields(0)] * times, fields(2, **keys)),
            )
            for wide, times in zip(wides, map(full_rows, wides), strict=True)
        )
    )


def test_one_of_two_equal_rows_is_changed(mounted: Callable[..., MountedTable]) -> None:
    table = mounted(schema=WIDE, rows=[FULL, FULL, EMPTY])
    change = Change(
        table,
        "awk '/^1,a,/ && n++ {sub(/^1,a,-128,/, \"1,a,-1,\")} {print}' data.csv > t && mv t data.csv",
        [FULL, {**FULL, "i8": -1}, EMPTY],
        csv(COLUMNS, fields(0), fields(0, i8="-1"), fields(1)),
    )
    expect(change)


def test_the_whole_file_is_replaced(wides: list[MountedTable]) -> None:
    lines = [COLUMNS, fields(0, i8="5", text='""'), fields(2)]
    command = f"{made('/tmp/new.csv', csv(*lines))}; cp /tmp/new.csv data.csv"
    expect(*(Change(wide, command, [{**FULL, "i8": 5, "text": ""}, LAST], csv(*lines)) for wide in wides))


def test_columns_come_in_any_order(wides: list[MountedTable]) -> None:
    expect(*(_turned(wide, full_rows(wide)) for wide in wides))


def _turned(wide: MountedTable, times: int) -> Change:
    rows = [*[fields(0)] * times, fields(1, i8="7"), fields(2)]
    turned = csv(*(list(line)[::-1] for line in [list(COLUMNS), *rows]))
    return Change(
        wide,
        f"{made('/tmp/new.csv', turned)}; cp /tmp/new.csv data.csv",
        [FULL] * times + [{**EMPTY, "i8": 7}, LAST],
        csv(COLUMNS, *rows),
    )


@pytest.mark.parametrize("allowed", [False, True])
def test_a_column_is_left_out_only_if_the_table_allows_it(
    mounted: Callable[..., MountedTable], allowed: bool
) -> None:
    table = mounted(properties={ALLOW_MISSING_COLUMNS: "true"} if allowed else {})
    before = table.table.version()
    status, output = table.run("cut -d, -f1-3 data.csv > t && mv t data.csv")
    assert (status == 0) is allowed, output + table.run("cat ../.last_error")[1]
    assert table.settled_version(before, 8 if allowed else 0.7) == before + allowed
    assert table.rows() == [{**row, "city": None} if allowed else row for row in ROWS]
    assert ("city" in table.run("cat ../.last_error")[1]) is not allowed


def test_a_column_that_may_not_be_null_is_never_left_out(mounted: Callable[..., MountedTable]) -> None:
    schema = Schema([Field("id", "Int64"), Field("name", "String", nullable=False)])
    rows = [{"id": 1, "name": "Alice"}]
    table = mounted(schema=schema, rows=rows, properties={ALLOW_MISSING_COLUMNS: "true"})
    before = table.table.version()
    assert table.run("cut -d, -f1 data.csv > t && mv t data.csv")[0] != 0
    assert table.settled_version(before, 0.7) == before
    assert table.rows() == rows


def test_null_and_the_empty_text_are_told_apart(mounted: Callable[..., MountedTable]) -> None:
    table = mounted(schema=Schema([Field("id", "Int64"), Field("name", "String")]), rows=[])
    null, empty = {"id": 1, "name": None}, {"id": 2, "name": ""}
    expect(Change(table, r"printf '1,\n2,\"\"\n' >> data.csv", [null, empty], b'id,name\n1,\n2,""\n'))
    turned = [{"id": 1, "name": ""}, {"id": 2, "name": None}]
    swap = "sed -i -e 's/^1,$/1,\"\"/' -e 's/^2,\"\"$/2,/' data.csv"
    expect(Change(table, swap, turned, b'id,name\n1,""\n2,\n'))


def test_rows_of_several_lines_are_edited(mounted: Callable[..., MountedTable]) -> None:
    table = mounted(schema=Schema([Field("id", "Int64"), Field("text", "String")]), rows=[])
    first, second = {"id": 1, "text": "a\n2,b\n"}, {"id": 2, "text": '"\n"'}
    lines = b'1,"a\n2,b\n"\n2,"""\n"""\n'
    append = f"{made('/tmp/more', lines)}; cat /tmp/more >> data.csv"
    expect(Change(table, append, [first, second], b"id,text\n" + lines))
    change = Change(
        table,
        "sed -i 's/^2,b$/2,c/' data.csv",
        [{"id": 1, "text": "a\n2,c\n"}, second],
        b"id,text\n" + lines.replace(b"2,b", b"2,c"),
    )
    expect(change)
