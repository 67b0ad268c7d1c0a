from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lakehouse_platform.cli.output import JsonOutput, TextOutput, counted

MOMENT = datetime(2026, 2, 1, 12, tzinfo=UTC)


def test_json_prints_facts_and_no_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    JsonOutput().say("Done.", {"version": 3, "at": MOMENT, "file": Path("x"), "key": ("a", "b")})
    assert json.loads(capsys.readouterr().out) == {
        "version": 3, "at": "2026-02-01T12:00:00.000Z", "file": "x", "key": ["a", "b"],
    }  # fmt: skip


def test_json_lists_as_an_array_with_everything(capsys: pytest.CaptureFixture[str]) -> None:
    JsonOutput().listing([{"name": "a", "hidden": 1}], ["name"])
    assert json.loads(capsys.readouterr().out) == [{"name": "a", "hidden": 1}]


def test_text_prints_the_sentence_only(capsys: pytest.CaptureFixture[str]) -> None:
    TextOutput().say("Done.", {"version": 3})
    assert capsys.readouterr().out == "Done.\n"


def test_a_listing_in_a_pipe_is_csv_with_a_header(capsys: pytest.CaptureFixture[str]) -> None:
    TextOutput().listing([{"name": "a,b", "rows": None, "ok": True}], ["name", "rows", "ok"])
    assert capsys.readouterr().out == 'name,rows,ok\n"a,b",,true\n'


def test_a_record_in_a_pipe_is_one_line_per_fact_with_nested_names(
    capsys: pytest.CaptureFixture[str],
) -> None:
    TextOutput().record(
        {"name": "t", "key": ("a", "b"), "properties": {"x": "1"}, "created": None, "none": {}}
    )
    assert capsys.readouterr().out.splitlines() == [
        "name: t",
        "key: a, b",
        "properties.x: 1",
        "created:",
        "none:",
    ]


def test_numbers_agree_with_their_nouns() -> None:
    assert [counted(number, "row") for number in (0, 1, 2, None)] == ["0 rows", "1 row", "2 rows", "? rows"]


def test_things_with_names_are_one_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    TextOutput().record({"columns": [{"name": "id", "type": "Int32", "nullable": False}]})
    assert capsys.readouterr().out == "columns.id: type=Int32, nullable=false\n"


def test_things_that_come_one_by_one_are_csv_with_one_header(capsys: pytest.CaptureFixture[str]) -> None:
    show = TextOutput().lines(["name", "rows"])
    show([{"name": "a", "rows": 1}])
    show([])
    show([{"name": "b,c", "rows": None}])
    assert capsys.readouterr().out == 'name,rows\na,1\n"b,c",\n'


def test_things_that_come_one_by_one_are_one_json_document_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    show = JsonOutput().lines(["name"])
    show([{"name": "a", "at": MOMENT}, {"name": "b"}])
    lines = capsys.readouterr().out.splitlines()
    assert [json.loads(line) for line in lines] == [
        {"name": "a", "at": "2026-02-01T12:00:00.000Z"}, {"name": "b"},
    ]  # fmt: skip


def test_a_hint_is_for_people_and_not_in_the_way(capsys: pytest.CaptureFixture[str]) -> None:
    TextOutput().hint("Go on.")
    JsonOutput().hint("Go on.")
    assert capsys.readouterr() == ("", "Go on.\n")
