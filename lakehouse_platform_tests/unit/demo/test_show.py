from __future__ import annotations

import pytest

from lakehouse_platform.demo.show import Show, size


@pytest.mark.parametrize(
    ("bytes_", "text"), [(0, "0 B"), (999, "999 B"), (1_500, "1.5 kB"), (3_047_238, "3.0 MB")]
)
def test_a_size_is_told_as_people_say_it(bytes_: int, text: str) -> None:
    assert size(bytes_) == text


def test_chapters_are_numbered(capsys: pytest.CaptureFixture[str]) -> None:
    show = Show()
    show.chapter("First")
    show.chapter("Second")
    assert "1. First\n--------" in (printed := capsys.readouterr().out)
    assert "2. Second" in printed


def test_numbers_are_grouped_but_ids_are_not(capsys: pytest.CaptureFixture[str]) -> None:
    Show().table(["trip_id", "rows", "km", "note"], [[100001, 44676, 2.345, None]])
    row = capsys.readouterr().out
    assert "100001" in row
    assert "44,676" in row
    assert "2.35" in row or "2.34" in row
    assert "NULL" in row
