"""JSON into records."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from lakehouse_platform.client.decoding import decoded, decoded_list, member, text, whole_number
from lakehouse_platform.client.records import Grant, Tokens, Usage, Verification
from lakehouse_platform.errors import UnexpectedAnswerError
from lakehouse_platform.model.results import ColumnInfo, DeleteResult, TableInfo
from lakehouse_platform.model.rights import Right

GRANT = {
    "user_id": "u", "table": "t", "right": "write", "granted_by": "o", "granted_at": "2026-02-01T12:00:00Z",
}  # fmt: skip


def test_texts_become_times_and_members_of_enumerations() -> None:
    found = decoded(Grant, GRANT)
    assert found.right is Right.WRITE
    assert found.granted_at == datetime(2026, 2, 1, 12, tzinfo=UTC)


def test_a_table_s_facts_come_back_as_they_were() -> None:
    now = datetime(2026, 2, 1, 12, 0, 0, 5000, UTC)
    info = TableInfo(
        name="t", uri="u", version=3, created=None, modified=now, rows=None, files=1, bytes=2, primary_key=("id",),
        partition_columns=(), properties={"a": "b"}, constraints={}, description="", reader_features=(),
        writer_features=(), columns=(ColumnInfo(name="id", type="Int64", nullable=False),),
    )  # fmt: skip
    assert decoded(TableInfo, json.loads(json.dumps(info.to_dict()))) == info


def test_records_within_records_are_records_too() -> None:
    found = decoded(Usage, {"quota": {"per_minute": None, "per_day": 3}, "minute": 1, "day": 2})
    assert found.quota.per_day == 3
    whole = {"version": 1, "entries": 2, "erased": 0, "head_sequence": 2, "head_hash": "ab", "problems": []}
    assert decoded(Verification, whole).is_whole
    broken = whole | {"problems": [{"sequence": 1, "kind": "cut", "message": "m"}]}
    assert decoded(Verification, broken).problems[0].kind == "cut"


def test_what_a_newer_server_tells_beyond_it_is_left_out() -> None:
    assert decoded(DeleteResult, {"version": 1, "rows_deleted": 2, "repeated": True}) == DeleteResult(
        version=1, rows_deleted=2
    )


def test_a_field_with_a_default_may_be_missing() -> None:
    found = decoded(
        Tokens, {"access_token": "a", "expires_at": "2026-02-01T12:00:00Z", "token_type": "Bearer"}
    )
    assert found.refresh_token is None


@pytest.mark.parametrize(
    "wrong",
    [
        None, [], "x", {}, GRANT | {"right": "own"}, GRANT | {"granted_at": "yesterday"}, GRANT | {"granted_at": 5},
        GRANT | {"table": None}, GRANT | {"table": 1},
    ],
)  # fmt: skip
def test_what_is_no_such_record_is_an_unexpected_answer(wrong: object) -> None:
    with pytest.raises(UnexpectedAnswerError, match="Grant"):
        decoded(Grant, wrong)


@pytest.mark.parametrize("wrong", [{"version": True, "rows_deleted": 1}, {"version": "1", "rows_deleted": 1}])
def test_a_number_is_no_text_and_no_truth(wrong: object) -> None:
    with pytest.raises(UnexpectedAnswerError):
        decoded(DeleteResult, wrong)


def test_lists_members_and_numbers_are_checked_too() -> None:
    assert decoded_list(Grant, [GRANT, GRANT]) == [decoded(Grant, GRANT)] * 2
    assert whole_number(member({"ended": 2}, "ended")) == 2
    with pytest.raises(UnexpectedAnswerError):
        decoded_list(Grant, {"grants": []})
    with pytest.raises(UnexpectedAnswerError, match="'ended'"):
        member([], "ended")
    with pytest.raises(UnexpectedAnswerError):
        whole_number(True)


def test_no_secret_is_repeated_in_the_error() -> None:
    with pytest.raises(UnexpectedAnswerError) as caught:
        decoded(Tokens, {"access_token": "hush", "refresh_token": "hush", "expires_at": "hush-no-time"})
    assert "hush" not in str(caught.value.to_dict())


def test_a_text_is_a_text_and_nothing_else() -> None:
    assert text("") == ""
    for wrong in (None, 1, ["x"], {"x": 1}):
        with pytest.raises(UnexpectedAnswerError):
            text(wrong)
