"""What clients were told outlives the server."""

from __future__ import annotations

from pathlib import Path

from lakehouse_platform.nfs.edits.told import ToldStore

DAY_NS = 24 * 3600 * 10**9


def test_the_newest_version_is_known_to_the_next_server_even_if_the_first_was_killed(tmp_path: Path) -> None:
    first = ToldStore(tmp_path)
    first.put(b"m", b"v", 3, 0)
    first.put(b"m", b"v", 4, 1)
    first.put_read(b"m", b"v", 2, 1)
    second = ToldStore(tmp_path)
    assert (second.get(b"m", b"v"), second.get_read(b"m", b"v")) == (4, 2)
    assert (second.get(b"m", b"w"), second.get_read(b"m", b"w")) == (None, None)
    first.close()
    second.close()


def test_clients_that_stay_away_are_forgotten(tmp_path: Path) -> None:
    told = ToldStore(tmp_path)
    told.put(b"away", b"v", 1, 0)
    told.put(b"here", b"v", 1, 8 * DAY_NS)
    told.put_read(b"away", b"v", 1, 0)
    told.put_read(b"here", b"v", 1, 8 * DAY_NS)
    told.forget_old(8 * DAY_NS)
    assert [told.get(mount, b"v") for mount in (b"away", b"here")] == [None, 1]
    assert [told.get_read(mount, b"v") for mount in (b"away", b"here")] == [None, 1]
    told.close()
