"""Refused edits are kept with their reasons, and not without end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lakehouse_platform.nfs.edits.rejected import Refusal, Rejected

WHY = Refusal("Line 3, column 'age': it is no number", "invalid_row", 3, "age")
NOW = 1_700_000_000_000_000_000


def test_bytes_reason_and_facts_are_kept_and_outlive_the_server(tmp_path: Path) -> None:
    name = Rejected(tmp_path).keep(b"view", [b"a,b\n", memoryview(b"c")], WHY, NOW)
    again = Rejected(tmp_path)
    kept = {file.name: file.path.read_bytes() for file in again.files(b"view")}
    assert kept[name] == b"a,b\nc"
    assert b"Line 3" in kept[f"{name}.why"]
    (facts,) = (json.loads(file.path.read_bytes()) for file in again.errors(b"view"))
    assert (facts["line"], facts["column"], facts["rejected"]) == (3, "age", name)
    assert again.last_error(b"view")[0] == kept[f"{name}.why"]
    assert again.files(b"other") == []
    assert again.last_error(b"other")[0] == b"No edit was refused.\n"


def test_two_refusals_at_one_time_have_two_names(tmp_path: Path) -> None:
    rejected = Rejected(tmp_path)
    assert rejected.keep(b"v", [b"1"], WHY, NOW) != rejected.keep(b"v", [b"2"], WHY, NOW)


def test_the_oldest_go_and_that_is_said(tmp_path: Path) -> None:
    rejected = Rejected(tmp_path, most_edits=3, most_bytes=25)
    for number in range(5):
        rejected.keep(b"v", [bytes([65 + number]) * 10], WHY, NOW + number * 10**9)
    edits = [file for file in rejected.files(b"v") if file.name.endswith("-data.csv")]
    assert [file.path.read_bytes()[:1] for file in edits] == [b"D", b"E"]
    assert "DROPPED" in {file.name for file in rejected.files(b"v")}
    assert len(rejected.errors(b"v")) == 2


def test_the_rest_of_a_refused_edit_is_added(tmp_path: Path) -> None:
    rejected = Rejected(tmp_path)
    name = rejected.keep(b"v", [b"first"], WHY, NOW)
    rejected.add(b"v", name, b" second")
    assert rejected.files(b"v")[0].path.read_bytes() == b"first second"


def test_a_text_without_bytes_is_the_last_error_only(tmp_path: Path) -> None:
    rejected = Rejected(tmp_path)
    rejected.say(b"v", "emptied", NOW)
    assert rejected.last_error(b"v")[0] == b"emptied\n"
    assert rejected.files(b"v") == []


def test_a_kept_file_can_be_removed(tmp_path: Path) -> None:
    rejected = Rejected(tmp_path)
    name = rejected.keep(b"v", [b"1"], WHY, NOW)
    rejected.remove(b"v", name)
    assert name not in {file.name for file in rejected.files(b"v")}
    with pytest.raises(FileNotFoundError):
        rejected.remove(b"v", name)
