"""The pictures are well-formed SVG whatever the numbers are, and small enough to be shown in place."""

import base64
from datetime import UTC, datetime, timedelta
from xml.etree import ElementTree as ET

import pytest

from lakehouse_platform.defs.plots import growth_plot

START = datetime(2026, 1, 1, tzinfo=UTC)
SVG = "{http://www.w3.org/2000/svg}"


def markdown(*values: int) -> str:
    return growth_plot([(START + timedelta(hours=hour), value) for hour, value in enumerate(values)])


def svg(*values: int) -> ET.Element:
    return ET.fromstring(base64.b64decode(markdown(*values).partition("base64,")[2].rstrip(")")))


def texts(image: ET.Element) -> list[str]:
    return [element.text or "" for element in image.iter(f"{SVG}text")]


def path(image: ET.Element) -> str:
    return next(image.iter(f"{SVG}path")).get("d") or ""


@pytest.mark.parametrize(
    "values",
    [
        (),
        (0,),
        (5,),
        (0, 0),
        (1, 2, 3),
        (10**12, 0),
        tuple(range(100)),
        tuple(number * 7919 % 1000 for number in range(1000)),
        tuple(2**63 - 1 - number * 7919 % 1000 * 10**15 for number in range(1000)),
    ],
)
def test_any_series_is_a_picture_that_the_ui_shows_in_place(values: tuple[int, ...]) -> None:
    svg(*values)

    # Dagster's page puts Markdown of 1000 characters and more behind a link.
    assert len(markdown(*values)) < 1000


def test_a_value_holds_until_the_next_commit() -> None:
    assert path(svg(0, 10, 5)) == "M0 100V100H200V20H400V60H400V100Z"


def test_a_single_commit_is_a_level_line() -> None:
    assert path(svg(5)) == "M0 100V20H400V100Z"


def test_the_highest_and_the_newest_number_and_the_times_are_written() -> None:
    assert texts(svg(0, 4000, 1000)) == [
        "up to 4,000 rows, now 1,000",
        "2026-01-01 00:00",
        "2026-01-01 02:00 UTC",
    ]


def test_without_values_the_picture_says_so() -> None:
    assert texts(svg()) == ["nothing recorded yet"]
