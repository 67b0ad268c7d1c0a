"""Where the rows of CSV bytes begin and end, without looking at their fields.

In our dialect a quote opens a field at its start, closes it at its end, or is doubled inside it. So a line end ends a
row exactly if the quotes before it are even in number. `first_fault` finds the first byte that breaks this.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Offsets = npt.NDArray[np.int64]
_Bytes = npt.NDArray[np.uint8]
_QUOTE, _COMMA, _LINE_FEED, _RETURN = b'",\n\r'


@dataclass(frozen=True, slots=True)
class Fault:
    """A byte that no row of the dialect may hold at its place."""

    position: int
    reason: str


def row_starts(data: bytes) -> Offsets:
    """Return where the rows of whole rows begin, and the length of the data as the last item.

    A last row may lack its line end.
    """
    values = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(values == _LINE_FEED).astype(np.int64, copy=False) + 1
    if b'"' in data:
        quotes = np.flatnonzero(values == _QUOTE)
        ends = ends[np.searchsorted(quotes, ends) % 2 == 0]
    size = len(data)
    rest = [size] if size and (not len(ends) or ends[-1] != size) else []
    return np.concatenate((np.zeros(1, np.int64), ends, np.array(rest, np.int64)))


def last_row_end(data: bytes, stop: int | None = None, *, in_quotes: bool = False) -> int:
    """Return where the last whole row before `stop` ends, 0 if none does.

    Args:
        data: Bytes that begin at a row's start, or anywhere if `in_quotes` says what came before.
        stop: Bytes from here on do not count.
        in_quotes: Whether the data begin inside a quoted field.
    """
    stop = len(data) if stop is None else stop
    inside = bool(data.count(b'"', 0, stop) % 2) ^ in_quotes
    while True:
        quote = data.rfind(b'"', 0, stop)
        if not inside and (end := data.rfind(b"\n", quote + 1, stop) + 1):
            return end
        if quote < 0:
            return 0
        stop, inside = quote, not inside


def first_fault(data: bytes, *, whole: bool = True) -> Fault | None:
    """Return the first byte that cannot stand where it stands, or None.

    Args:
        data: Bytes that begin at a row's start.
        whole: Whether they end with a row; if not, a quoted field may be open at their end.
    """
    faults: list[Fault] = []
    if (nul := data.find(b"\0")) >= 0:
        faults.append(Fault(nul, "the text holds a NUL byte"))
    quotes = _positions(data, b'"')
    if b"\r" in data:
        faults += _bare_returns(data, quotes, whole)
    if len(quotes):
        faults += _wrong_quotes(np.frombuffer(data, np.uint8), quotes, whole)
    return min(faults, key=lambda fault: fault.position, default=None)


def row_at(data: bytes, position: int) -> int:
    """Return where the row begins that holds a byte; all before that byte must be sound."""
    return last_row_end(data, position)


def _positions(data: bytes, byte: bytes) -> Offsets:
    if byte not in data:
        return np.empty(0, np.int64)
    found = np.flatnonzero(np.frombuffer(data, np.uint8) == byte[0])
    return found.astype(np.int64, copy=False)


def _bare_returns(data: bytes, quotes: Offsets, whole: bool) -> list[Fault]:
    returns = _positions(data, b"\r")
    if not whole and returns[-1] == len(data) - 1:
        returns = returns[:-1]
    bare = returns[(_next_bytes(np.frombuffer(data, np.uint8), returns) != _LINE_FEED)]
    bare = bare[np.searchsorted(quotes, bare) % 2 == 0]
    reason = "a carriage return stands alone: end lines with LF or CRLF, or quote the field"
    return [Fault(int(bare[0]), reason)] if len(bare) else []


def _wrong_quotes(values: _Bytes, quotes: Offsets, whole: bool) -> list[Fault]:
    opening, closing = quotes[0::2], quotes[1::2]
    before = np.where(opening > 0, values[opening - 1], _LINE_FEED)
    inside = opening[~np.isin(before, (_COMMA, _LINE_FEED, _QUOTE))]
    after = _next_bytes(values, closing)
    trailed = closing[~np.isin(after, (_COMMA, _LINE_FEED, _QUOTE, _RETURN))]
    faults: list[Fault] = []
    if len(inside):
        reason = 'a quote stands inside an unquoted field: quote the whole field and write the quote as ""'
        faults.append(Fault(int(inside[0]), reason))
    if len(trailed):
        reason = 'text follows a closing quote: write a quote inside a field as ""'
        faults.append(Fault(int(trailed[0]), reason))
    if whole and len(opening) > len(closing):
        reason = (
            'a quoted field is never closed: add the closing quote, or write a quote inside a field as ""'
        )
        faults.append(Fault(int(opening[-1]), reason))
    return faults


def _next_bytes(values: _Bytes, positions: Offsets) -> _Bytes:
    """Return the bytes after some positions; after the end comes a line end."""
    following = np.minimum(positions + 1, len(values) - 1)
    return np.where(positions + 1 < len(values), values[following], _LINE_FEED).astype(np.uint8, copy=False)
