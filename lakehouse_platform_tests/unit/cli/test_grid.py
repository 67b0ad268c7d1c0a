from __future__ import annotations

import pytest

from lakehouse_platform.cli.grid import print_grid, visible


def test_a_table_in_a_pipe_is_plain_ascii_and_complete(capsys: pytest.CaptureFixture[str]) -> None:
    print_grid(["id", "name"], [["1", "Alice"], ["2", None]], right={0})
    assert capsys.readouterr().out.splitlines() == [
        "+----+-------+",
        "| id | name  |",
        "+----+-------+",
        "|  1 | Alice |",
        "|  2 | NULL  |",
        "+----+-------+",
    ]


def test_control_characters_cannot_reach_the_terminal() -> None:
    assert visible("\x1b[31mred\r\n\x07") == "\\x1b[31mred\\r\\n\\x07"


def test_markup_in_the_data_is_shown_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    print_grid(["[b]"], [["[red]x[/red] :smile:"]])
    assert "[red]x[/red] :smile:" in capsys.readouterr().out


def test_a_long_cell_ends_in_an_ellipsis() -> None:
    assert visible("x" * 100) == "x" * 59 + "…"
