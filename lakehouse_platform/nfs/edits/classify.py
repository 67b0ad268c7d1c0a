"""What a WRITE outside a draft means: nothing new, rows to append, or a change, and against what. Pure.

A client sends whole pages of what it had cached, so the bytes alone do not tell. What they are compared with:
what the client itself wrote last (its ghost), what it was told last, and what it had cached shortly before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto

from lakehouse_platform.nfs.content import Buffer, Content
from lakehouse_platform.nfs.edits.draft import first_difference, joined


class Role(Enum):
    """How a client knows a content."""

    NEWEST = auto()
    """It is the newest that this client has seen or written: bytes equal to it change nothing."""
    UNCOMMITTED = auto()
    """The client may send it again, to be committed, and has been told something newer by the way."""
    SENT = auto()
    """Only the very same bytes may come again, to be committed: the client has read something newer since."""
    EARLIER = auto()
    """Pages of it may be cached still, and come back with something appended."""
    LATER = auto()
    """The newest of all, which the client may know although nobody noticed: equal bytes change nothing there."""


@dataclass(frozen=True, slots=True)
class Sight:
    """A content that a client may have before its eyes."""

    content: Content
    role: Role


@dataclass(frozen=True, slots=True)
class Opened:
    """The WRITE changes a content.

    Attributes:
        index: Which of the sights it is based on.
        is_append: Whether it only adds to it.
    """

    index: int
    is_append: bool


def classify(offset: int, data: Buffer, sights: Sequence[Sight]) -> Opened | None:
    """Return what a WRITE is based on, or None if it changes nothing.

    Args:
        offset: Where the client writes.
        data: What it writes.
        sights: What it may know, the likeliest first; the first is of the NEWEST role.
    """
    for index, sight in enumerate(sights):
        reach = _reach(offset, data, sight.content)
        if reach is None:
            continue
        if reach == len(data):
            if sight.role is not Role.EARLIER:
                return None
        elif _continues(offset, data, sight, sights[0].content):
            return Opened(index, is_append=True)
    return Opened(0, is_append=False)


def new_part(offset: int, data: memoryview, seen: Content) -> tuple[int, memoryview] | None:
    """Return the part of a WRITE from its first to its last byte that differs from what is there; None if none does."""
    end = min(offset + len(data), seen.size)
    if offset >= end:
        return offset, data
    old = memoryview(joined(seen, offset, end - offset))
    first = first_difference(old, data)
    if first == len(data):
        return None
    if first == len(old) or offset + len(data) > seen.size:
        return offset + first, data[first:]
    last = len(data) - _equal_at_end(old, data)
    return offset + first, data[first:last]


def _reach(offset: int, data: Buffer, content: Content) -> int | None:
    """Return how many bytes of a WRITE equal a content, if those are all that it has there; else None."""
    if offset > content.size:
        return None
    there = min(len(data), content.size - offset)
    if there and joined(content, offset, there) != data[:there]:
        return None
    return there


def _continues(offset: int, data: Buffer, sight: Sight, newest: Content) -> bool:
    if sight.role is Role.NEWEST:
        return True
    if sight.role is Role.LATER:
        # If what it was told begins like the later content, nothing shows that it knows of rows that are gone there.
        known = sight.content.size - offset
        return joined(newest, offset, max(0, min(known, newest.size - offset))) != data[:known]
    return sight.role is not Role.SENT and _is_stale(offset, data, sight.content, newest)


def _is_stale(offset: int, data: Buffer, earlier: Content, newest: Content) -> bool:
    """Tell whether a WRITE that continues an earlier content comes from old pages, not from a change of the newest.

    A page of the newest content with one changed row also begins like the earlier one. But then it holds rows that
    came since.
    """
    if offset + len(data) <= earlier.size:
        return False
    added = bytes(data[earlier.size - offset :])
    since = joined(newest, earlier.size, len(added)) if newest.size > earlier.size else b""
    return not set(since.splitlines()[:-1] or since.splitlines()) & set(added.splitlines())


def _equal_at_end(old: Buffer, new: Buffer) -> int:
    left, right = memoryview(old), memoryview(new)
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        if left[len(left) - middle : len(left) - low] == right[len(right) - middle : len(right) - low]:
            low = middle
        else:
            high = middle - 1
    return low
