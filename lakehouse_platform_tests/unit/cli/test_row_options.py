from __future__ import annotations

from pathlib import Path

import click
import pytest

from lakehouse_platform.cli.row_options import FORMAT_OF_SUFFIX, RowFormat, RowOptions
from lakehouse_platform.cli.rows import chosen_format
from lakehouse_platform.cli.session import Session


def test_rows_in_a_pipe_are_csv() -> None:
    assert chosen_format(Session(), RowOptions()) is RowFormat.CSV


def test_json_rows_are_one_array() -> None:
    assert chosen_format(Session(as_json=True), RowOptions()) is RowFormat.JSON


@pytest.mark.parametrize(("suffix", "row_format"), list(FORMAT_OF_SUFFIX.items()))
def test_a_file_takes_the_form_of_its_extension(suffix: str, row_format: RowFormat) -> None:
    assert chosen_format(Session(), RowOptions(output=Path(f"x{suffix.upper()}"))) is row_format


def test_an_explicit_form_wins_over_the_extension() -> None:
    assert (
        chosen_format(Session(), RowOptions(output=Path("x.csv"), row_format=RowFormat.JSON))
        is RowFormat.JSON
    )


@pytest.mark.parametrize(
    ("session", "wanted", "reason"),
    [
        (Session(as_json=True), RowOptions(row_format=RowFormat.CSV), "contradict"),
        (Session(), RowOptions(output=Path("x.xlsx")), "--format"),
        (Session(), RowOptions(output=Path("x.txt"), row_format=RowFormat.TABLE), "for reading"),
    ],
)
def test_wishes_that_contradict_each_other_are_refused(
    session: Session, wanted: RowOptions, reason: str
) -> None:
    with pytest.raises(click.UsageError, match=reason):
        chosen_format(session, wanted)
