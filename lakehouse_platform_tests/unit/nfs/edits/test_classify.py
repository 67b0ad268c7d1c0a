"""What a WRITE means, by the pages that clients send."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lakehouse_platform.nfs.edits.classify import Opened, Role, Sight, classify, new_part
from lakehouse_platform.nfs.edits.draft import Bytes

OLD = b"id,name\n1,a\n2,b\n"


def sights(newest: bytes, *earlier: bytes, later: bytes | None = None) -> list[Sight]:
    found = [Sight(Bytes(newest), Role.NEWEST), *(Sight(Bytes(data), Role.EARLIER) for data in earlier)]
    return found if later is None else [*found, Sight(Bytes(later), Role.LATER)]


def test_bytes_that_the_client_was_shown_are_no_change() -> None:
    assert classify(0, OLD, sights(OLD)) is None
    assert classify(8, b"1,a", sights(OLD)) is None


def test_a_changed_row_is_no_append_to_a_later_content_that_lost_it() -> None:
    told = b"id,name\n1,a\n2,b\n3,c\n"
    change = b"id,name\n1,a\n2,b\n3,x\n"
    assert classify(0, change, sights(told, later=b"id,name\n1,a\n")) == Opened(0, is_append=False)
    later = b"id,name\n1,a\n2,z\n"
    assert classify(0, later + b"3,x\n", sights(told, later=later)) == Opened(1, is_append=True)


def test_a_page_with_old_bytes_and_a_new_row_is_an_append() -> None:
    assert classify(0, OLD + b"3,c\n", sights(OLD)) == Opened(0, is_append=True)
    assert classify(len(OLD), b"3,c\n", sights(OLD)) == Opened(0, is_append=True)


def test_a_page_with_another_row_is_a_change_of_what_was_told() -> None:
    assert classify(0, OLD.replace(b"a", b"x"), sights(OLD)) == Opened(0, is_append=False)


def test_a_page_beyond_the_end_is_a_change_of_what_was_told() -> None:
    assert classify(len(OLD) + 5, b"3,c\n", sights(OLD)) == Opened(0, is_append=False)


def test_an_old_page_with_a_new_row_appends_to_the_old_although_others_have_appended_since() -> None:
    told = OLD + b"9,z\n"
    assert classify(0, OLD + b"3,c\n", sights(told, OLD)) == Opened(1, is_append=True)


def test_a_changed_row_behind_an_old_end_is_no_append_to_the_old() -> None:
    told = OLD + b"9,z\n8,y\n"
    assert classify(0, OLD + b"9,z\n8,q\n", sights(told, OLD)) == Opened(0, is_append=False)


def test_old_bytes_written_back_are_a_change() -> None:
    assert classify(0, OLD, sights(OLD.replace(b"a", b"x"), OLD)) == Opened(0, is_append=False)


def test_bytes_of_the_newest_version_of_all_change_nothing() -> None:
    newest = OLD.replace(b"a", b"x")
    assert classify(0, newest, sights(OLD, later=newest)) is None


@given(st.binary(max_size=40), st.integers(0, 40), st.binary(min_size=1, max_size=40))
def test_the_new_part_has_the_same_effect_and_no_more_than_needed(
    seen: bytes, offset: int, data: bytes
) -> None:
    def written(at: int, what: bytes) -> bytes:
        return seen[:at].ljust(at, b"\0") + what + seen[at + len(what) :]

    part = new_part(offset, memoryview(data), Bytes(seen))
    if part is None:
        assert written(offset, data) == seen
        return
    start, new = part
    assert written(start, bytes(new)) == written(offset, data)
    if start < len(seen):
        assert new[0] != seen[start]
    if start + len(new) <= len(seen):
        assert new[-1] != seen[start + len(new) - 1]
