"""Operations on tables as requests."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from lakehouse_platform.client import table_calls as calls
from lakehouse_platform.client.requests import Answer, Call, Reading
from lakehouse_platform.errors import InvalidNameError, InvalidTimestampError, UnexpectedAnswerError
from lakehouse_platform.model.schema import Schema

ROWS = [{"id": 1}]


@pytest.mark.parametrize(
    ("call", "asked"),
    [
        (calls.names(), "GET /v1/tables"),
        (calls.describe("t"), "GET /v1/tables/t"),
        (calls.drop("t"), "DELETE /v1/tables/t"),
        (calls.scan("t", None, None, None), "GET /v1/tables/t/rows"),
        (
            calls.scan("t", ["a", "b,c", 'd"'], "a = 1", 0, 3),
            'GET /v1/tables/t/rows columns=a,"b,c","d""" where=a = 1 limit=0 version=3',
        ),
        (calls.history("t", 10), "GET /v1/tables/t/history limit=10"),
        (calls.diff("t", 1, 2), "GET /v1/tables/t/diff before=1 after=2"),
        (calls.change_feed("t", 1, None), "GET /v1/tables/t/changes start=1"),
        (calls.skipping("t", "a = 1"), "GET /v1/tables/t/skipping where=a = 1"),
        (calls.append("t", ROWS, False, "k"), "POST /v1/tables/t/rows"),
        (calls.append("t", ROWS, True, "k"), "POST /v1/tables/t/rows evolve=true"),
        (calls.overwrite("t", ROWS, False, "k"), "PUT /v1/tables/t/rows"),
        (calls.overwrite_where("t", "a = 1", ROWS, "k"), "PUT /v1/tables/t/rows where=a = 1"),
        (calls.merge("t", ROWS, ["a", "b"], "k"), "POST /v1/tables/t/merge on=a,b"),
        (calls.delete("t", "a = 1", "k"), "DELETE /v1/tables/t/rows where=a = 1"),
        (calls.update("t", {"a": "1"}, None, "k"), "PATCH /v1/tables/t/rows"),
        (calls.add_constraint("t", "a/b", "a > 1"), "PUT /v1/tables/t/constraints/a%2Fb"),
        (calls.drop_constraint("t", "c"), "DELETE /v1/tables/t/constraints/c"),
        (calls.set_primary_key("t", ["a"]), "PUT /v1/tables/t/primary-key"),
        (calls.z_order("t", ["a"]), "POST /v1/tables/t/z-order"),
    ],
)
def test_what_is_asked(call: Call[Any], asked: str) -> None:
    request = call.request
    words = [f"{request.method} {request.path}", *(f"{name}={value}" for name, value in request.query)]
    assert " ".join(words) == asked


@pytest.mark.parametrize(
    ("call", "fields"),
    [
        (
            calls.create("t", Schema.parse("id:Int64 not null,`a,b`:List<String>"), ["id"], [], "d"),
            {
                "name": "t", "schema": "id:Int64 not null,`a,b`:List<String>", "primary_key": ["id"],
                "partition_by": [], "description": "d",
            },
        ),
        (calls.update("t", {"a": "1"}, "b = 2", "k"), {"set": {"a": "1"}, "where": "b = 2"}),
        (calls.sql("SELECT 1", None, None), {"query": "SELECT 1"}),
        (calls.sql("SELECT 1", 5, 1.5), {"query": "SELECT 1", "max_rows": 5, "timeout": 1.5}),
        (calls.restore("t", 0), {"version": 0}),
        (calls.restore("t", datetime(2026, 2, 1, tzinfo=UTC)), {"timestamp": "2026-02-01T00:00:00+00:00"}),
        (calls.compact("t", None, None), {}),
        (calls.vacuum("t", 0, True), {"retention_hours": 0, "dry_run": True}),
        (calls.add_columns("t", pa.schema([("a", pa.int32())])), {"schema": "a:Int32"}),
    ],
)  # fmt: skip
def test_what_is_sent(call: Call[Any], fields: dict[str, Any]) -> None:
    assert call.request.fields == fields


@pytest.mark.parametrize("name", ["", "..", "a/b", "t?x=1", "t#", "ä", "t%2f"])
def test_a_name_that_is_none_is_refused_before_anything_is_asked(name: str) -> None:
    for make in (calls.describe, calls.drop, lambda one: calls.append(one, ROWS, False, "k")):
        with pytest.raises(InvalidNameError):
            make(name)


@pytest.mark.parametrize("moment", ["yesterday", "2026-02-01T12:00:00", datetime(2026, 2, 1)])  # noqa: DTZ001 - meant
def test_a_time_without_a_zone_is_refused(moment: Any) -> None:
    with pytest.raises(InvalidTimestampError):
        calls.scan("t", None, None, None, None, moment)


def test_writes_of_rows_have_their_key_and_reads_their_form() -> None:
    assert calls.append("t", ROWS, False, "k").request.key == "k"
    assert calls.scan("t", None, None, None, reading=Reading.STREAM).request.reading is Reading.STREAM
    assert "vnd.apache.arrow.stream" in calls.sql("SELECT 1", None, None).request.accept
    assert calls.names().request.accept.startswith("application/json")


def test_a_query_that_may_take_long_is_waited_for_as_long() -> None:
    assert calls.sql("SELECT 1", None, 600).request.patience > 600


def test_an_answer_without_a_version_is_an_unexpected_one() -> None:
    with pytest.raises(UnexpectedAnswerError):
        calls.restore("t", 1).read(Answer(200, {"content-type": "application/json"}, b'{"version": "1"}'))


@pytest.mark.parametrize(
    "text",
    [
        "id:Int64 not null,name:String",
        "`a,b`:Map<String,List<Int32>>,`c``d`:Decimal(10,2)",
        "s:Struct<x:Int8>",
    ],
)
def test_a_schema_as_text_is_the_same_schema(text: str) -> None:
    assert calls.schema_text(Schema.parse(text)) == text
    assert Schema.parse(calls.schema_text(Schema.parse(text))) == Schema.parse(text)
