"""A draft reads as a plain file would that saw the same WRITEs and cuts."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from lakehouse_platform.nfs.edits.draft import (
    Bytes,
    Draft,
    Extents,
    equal_until,
    first_difference,
    joined,
    shared_until,
)


@dataclass
class Log:
    data: bytearray = field(default_factory=bytearray)

    def pread(self, place: int, count: int) -> bytes:
        return bytes(self.data[place : place + count])

    def put(self, data: bytes) -> int:
        self.data += data
        return len(self.data) - len(data)


CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.integers(0, 40), st.binary(min_size=1, max_size=12)),
        st.tuples(st.just("cut"), st.integers(0, 40), st.just(b"")),
    ),
    max_size=12,
)


def apply(model: bytearray, kind: str, offset: int, data: bytes) -> None:
    if kind == "cut":
        del model[offset:]
        model += bytes(offset - len(model))
        return
    model += bytes(max(0, offset - len(model)))
    model[offset : offset + len(data)] = data


def drafted(base: bytes, changes: list[tuple[str, int, bytes]]) -> tuple[Draft, bytearray]:
    log, model = Log(), bytearray(base)
    draft = Draft(Bytes(base), log)
    for kind, offset, data in changes:
        apply(model, kind, offset, data)
        if kind == "cut":
            draft.truncate(offset)
        else:
            draft.write(offset, len(data), log.put(data))
    return draft, model


@given(st.binary(max_size=30), CHANGES, st.integers(0, 50), st.integers(0, 50))
def test_a_draft_reads_as_a_file_does(
    base: bytes, changes: list[tuple[str, int, bytes]], start: int, count: int
) -> None:
    draft, model = drafted(base, changes)
    assert draft.size == len(model)
    assert joined(draft.freeze(), 0, draft.size) == model
    assert joined(draft.peek(), start, count) == model[start : start + count]


@given(st.binary(max_size=30), CHANGES, CHANGES)
def test_a_frozen_draft_stays_as_it_is(
    base: bytes, before: list[tuple[str, int, bytes]], after: list[tuple[str, int, bytes]]
) -> None:
    draft, model = drafted(base, before)
    frozen = draft.freeze()
    assert isinstance(draft.log, Log)
    for kind, offset, data in after:
        if kind == "cut":
            draft.truncate(offset)
        else:
            draft.write(offset, len(data), draft.log.put(data))
    assert joined(frozen, 0, frozen.size) == model


@given(st.binary(max_size=30), CHANGES, CHANGES, st.integers(0, 40))
def test_the_first_difference_is_found_and_shared_bytes_are_equal(
    base: bytes, before: list[tuple[str, int, bytes]], after: list[tuple[str, int, bytes]], start: int
) -> None:
    draft, old_model = drafted(base, before)
    old, new_model = draft.freeze(), bytearray(old_model)
    assert isinstance(draft.log, Log)
    for kind, offset, data in after:
        apply(new_model, kind, offset, data)
        if kind == "cut":
            draft.truncate(offset)
        else:
            draft.write(offset, len(data), draft.log.put(data))
    new = draft.freeze()
    stop = min(old.size, new.size)
    found = equal_until(old, new, start, stop)
    assert found == max(
        start, min(stop, start + first_difference(old_model[start:stop], new_model[start:stop]))
    )
    if start < stop:
        shared = shared_until(old, new, start, stop)
        assert old_model[start:shared] == new_model[start:shared]


def test_a_hole_ends_what_is_known() -> None:
    draft, _ = drafted(b"abc", [("write", 5, b"xy")])
    assert draft.peek().known_until(0) == 3
    assert joined(draft.peek(), 0, 9) == b"abc\0\0xy"
    draft.write(3, 2, 0)
    assert draft.peek().known_until(0) == 7


def test_what_was_cut_off_does_not_shine_through_again() -> None:
    draft, _ = drafted(b"abcdef", [("cut", 2, b""), ("write", 4, b"x")])
    assert joined(draft.peek(), 0, 9) == b"ab\0\0x"


def test_ranges_written_one_behind_the_other_stay_few() -> None:
    extents = Extents()
    for number in range(100):
        extents.put(number, number + 1, 0)
    extents.put(0, 100, 500)
    assert len(extents) == 1
