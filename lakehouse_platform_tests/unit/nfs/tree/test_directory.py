from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lakehouse_platform.nfs.tree.directory import Child, Entries, Stamps, after, fixed, named, versioned
from lakehouse_platform.nfs.tree.handles import Handle, Kind
from lakehouse_platform.nfs.tree.nodes import LAYOUT
from lakehouse_platform.nfs.tree.scratch import FIRST_COOKIE

HANDLE = Handle(Kind.DATA, b"mnt1")
NAMES = st.lists(st.binary(min_size=1, max_size=20), unique=True, max_size=20)


@given(NAMES, NAMES)
def test_an_entry_keeps_its_place_while_others_come_and_go(stay: list[bytes], come: list[bytes]) -> None:
    before = [named(name, HANDLE) for name in stay]
    order = [child.name for child in after(0, before)]
    both = after(0, [*before, *(named(name, HANDLE) for name in come if name not in stay)])
    assert [child.name for child in both if child.name in stay] == order


@given(NAMES, st.integers(1, 5))
def test_pages_together_are_the_whole_directory(names: list[bytes], page: int) -> None:
    children = [named(name, HANDLE) for name in names]
    seen: list[Child] = []
    while rest := after(seen[-1].cookie if seen else 2, children):
        seen += rest[:page]
    assert sorted(child.name for child in seen) == sorted(names)


def test_kinds_of_entries_do_not_share_cookies() -> None:
    longest = max(len(names) for names in LAYOUT.values())
    last_fixed = fixed(longest, b"x", HANDLE).cookie
    assert 2 < fixed(0, b"x", HANDLE).cookie < last_fixed < versioned(0, HANDLE).cookie
    assert last_fixed < FIRST_COOKIE
    assert FIRST_COOKIE + 2**60 < named(b"x", HANDLE).cookie < 2**63


def test_a_directory_changes_whenever_its_entries_do_even_if_clocks_run_backwards() -> None:
    stamps = Stamps()
    first = stamps.changed_ns(b"d", Entries(10, 20, 0), 50)
    assert first == stamps.changed_ns(b"d", Entries(10, 20, 0), 60) == 20
    second = stamps.changed_ns(b"d", Entries(11, 20, 0), 70)
    assert second == stamps.changed_ns(b"d", Entries(11, 20, 0), 80) == 70
    assert stamps.changed_ns(b"d", Entries(11, 20, 0, others=True), 5) == 71
    assert stamps.changed_ns(b"other", Entries(1, 2, 3), 90) == 3
