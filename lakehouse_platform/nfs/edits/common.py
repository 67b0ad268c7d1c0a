"""What two contents have in common at their beginnings and ends, by comparing memory, cut at rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lakehouse_platform.nfs.edits.side import Side
from lakehouse_platform.text.csv_lines import last_row_end

# Bytes compared at a time, from the first difference on: few where differences are near, many where they are far.
_SMALLEST, _LARGEST = 1 << 15, 1 << 22


def skip_common(base: Side, new: Side, at: int, there: int, stop: int, stop_there: int) -> int:
    """Return how many bytes of whole equal rows stand at two rows' starts."""
    block, done = _SMALLEST, 0
    while size := min(block, stop - at - done, stop_there - there - done):
        left = base.read(at + done, at + done + size)
        equal = _equal_bytes(left, new.read(there + done, there + done + size))
        whole = last_row_end(left, equal)
        done += whole
        if equal < size or size < block:
            break
        block = min(block * 4, _LARGEST) if whole else block * 4
    return done


def skip_common_end(base: Side, new: Side, at: int, there: int, stop: int, stop_there: int) -> int:
    """Return how many bytes of whole equal rows stand at two ends, and not before two rows' starts."""
    block, done, found = _SMALLEST, 0, 0
    in_quotes = False
    while size := min(block, stop - at - done, stop_there - there - done):
        left = base.read(stop - done - size, stop - done)
        right = new.read(stop_there - done - size, stop_there - done)
        equal = _equal_bytes_back(left, right)
        shared = left[size - equal :]
        start = _first_row_start(shared, in_quotes)
        found = done + equal - start if start >= 0 else found
        if equal < size:
            break
        in_quotes ^= bool(shared.count(b'"') % 2)
        done += size
        block = min(block * 4, _LARGEST)
    return found


def _equal_bytes(left: bytes, right: bytes) -> int:
    if pa.py_buffer(left).equals(pa.py_buffer(right)):
        return len(left)
    return int(np.argmax(np.frombuffer(left, np.uint8) != np.frombuffer(right, np.uint8)))


def _equal_bytes_back(left: bytes, right: bytes) -> int:
    if pa.py_buffer(left).equals(pa.py_buffer(right)):
        return len(left)
    return int(np.argmax(np.frombuffer(left, np.uint8)[::-1] != np.frombuffer(right, np.uint8)[::-1]))


def _first_row_start(data: bytes, in_quotes: bool) -> int:
    """Return the first place behind a row's end, -1 if there is none.

    Args:
        data: Bytes that end at a row's end, or inside of a row.
        in_quotes: Whether they end inside a quoted field.
    """
    inside, position = bool(data.count(b'"') % 2) ^ in_quotes, 0
    while True:
        quote = data.find(b'"', position)
        stop = len(data) if quote < 0 else quote
        if not inside and (end := data.find(b"\n", position, stop) + 1):
            return end
        if quote < 0:
            return -1
        position, inside = quote + 1, not inside
