"""Cache files are mapped, and do not stay in memory for that."""

from __future__ import annotations

import os
from array import array
from pathlib import Path

import pytest

from lakehouse_platform.nfs.tree.sizes import Measured, Sizes
from lakehouse_platform.nfs.tree.units import Units
from lakehouse_platform_tests.support.process_memory import status_mb

_PIECE = 1 << 20


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells what a process holds")
def test_what_was_read_is_given_back_and_can_be_read_again(tmp_path: Path) -> None:
    pieces = [os.urandom(_PIECE) for _ in range(48)]
    units = Units(tmp_path / "segments", Sizes(tmp_path / "images.sqlite"), 1 << 30, resident_bytes=4 << 20)
    with units.new_file() as (file, placements):
        file.writelines(pieces)
    unit = placements[0].unit
    kept = units.view(unit, 0, _PIECE)
    before = status_mb(os.getpid(), "RssFile")
    for number, piece in enumerate(pieces):
        assert units.view(unit, number * _PIECE, _PIECE) == piece
    assert status_mb(os.getpid(), "RssFile") - before < 16
    assert kept == pieces[0]


def test_a_place_in_a_file_that_was_evicted_before_it_was_recorded_is_not_found_in_a_later_file(
    tmp_path: Path,
) -> None:
    measured, key = Measured(5, 1, 0, array("q")), b"k" * 16
    sizes = Sizes(tmp_path / "images.sqlite")
    units = Units(tmp_path / "segments", sizes, 8)
    place = units.append("pack", b"first")
    units.append("another pack", b"second")  # evicts the first
    sizes.record(b"owner", [(key, measured, place)])
    assert not units.has(place.unit)
    units.close()
    sizes.drop_unit(place.unit)
    sizes.drop_unit(place.unit + 1)
    sizes.record(b"owner", [(key, measured, place)])
    sizes.close()

    sizes = Sizes(tmp_path / "images.sqlite")
    units = Units(tmp_path / "segments", sizes, 1 << 20)
    assert units.append("pack", b"other").unit <= place.unit
    assert sizes.known([key]) == {key: (measured, None)}
    units.close()
    sizes.close()
