"""What is closed in the end, is also closed when something goes wrong."""

from __future__ import annotations

import pytest

from lakehouse_platform.identity.closing import Closing


class Door(Closing):
    """Something that knows how often it was closed."""

    closed = 0

    def close(self) -> None:
        self.closed += 1


def test_leaving_the_block_closes_it() -> None:
    door = Door()
    with door as entered:
        assert (entered, door.closed) == (door, 0)
    assert door.closed == 1


def test_an_error_in_the_block_closes_it_and_goes_on() -> None:
    door = Door()
    with pytest.raises(ValueError, match="inside"), door:
        raise ValueError("inside")
    assert door.closed == 1
