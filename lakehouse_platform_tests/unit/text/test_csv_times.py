"""Times put together from pieces are what formatting makes of them."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse_platform.text.csv_times import time_texts

_YEAR_0, _YEAR_9999_END = -62_167_219_200_000_000, 253_402_300_799_999_999
_NEAR = st.integers(0, 3 * 86_400_000_000)  # days that lie near each other are put together from pieces
_MOMENTS = st.one_of(
    st.none(),
    _NEAR,
    _NEAR.map(lambda moment: moment // 1_000 * 1_000),
    _NEAR.map(lambda moment: moment // 1_000_000 * 1_000_000),
)


_MANY = 1_000  # beyond, texts are put together from pieces


def _column(moments: list[int | None], zone: str) -> pl.Series:
    return pl.Series(moments, dtype=pl.Int64).cast(pl.Datetime("us", "UTC" if zone else None))


@given(st.lists(_MOMENTS), st.integers(_YEAR_0, _YEAR_9999_END), st.sampled_from(["", "Z"]))
def test_pieces_make_the_same_text_as_formatting(moments: list[int | None], start: int, zone: str) -> None:
    column = _column([None if moment is None else start + moment for moment in moments], zone)
    column = pl.concat([column, _column([start] * _MANY, zone)])
    assert time_texts(column, zone).to_list() == column.dt.to_string(f"%Y-%m-%dT%H:%M:%S%.f{zone}").to_list()


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (0, "1970-01-01T00:00:00"),
        (-1, "1969-12-31T23:59:59.999999"),
        (1_000, "1970-01-01T00:00:00.001"),
        (500_000, "1970-01-01T00:00:00.500"),
        (86_399_000_010, "1970-01-01T23:59:59.000010"),
        (_YEAR_0, "0000-01-01T00:00:00"),
        (_YEAR_9999_END, "9999-12-31T23:59:59.999999"),
    ],
)
def test_a_moment_has_one_text(moment: int, text: str) -> None:
    for times in (1, _MANY):
        assert time_texts(_column([moment, None] * times, "Z"), "Z").to_list() == [f"{text}Z", None] * times


def test_moments_far_apart_and_no_moments_at_all_have_texts_too() -> None:
    for times in (1, _MANY):
        assert (
            time_texts(_column([0, _YEAR_9999_END - 999_999] * times, ""), "").to_list()
            == [
                "1970-01-01T00:00:00",
                "9999-12-31T23:59:59",
            ]
            * times
        )
        assert time_texts(_column([None] * times, ""), "").to_list() == [None] * times
    assert time_texts(_column([], ""), "").to_list() == []
