"""Record marking: where one message ends and the next begins on a TCP connection (RFC 5531 §11)."""

from __future__ import annotations

from collections.abc import Iterator

from lakehouse_platform.nfs.wire.xdr import U32

LAST_FRAGMENT = 1 << 31
_MARK_SIZE = 4


class RecordAssembler:
    """Puts records together from the pieces in which they arrive.

    Memory grows with what has arrived, never with what a length announces.

    Args:
        limit: Bytes that all fragments of a record may have together.
    """

    __slots__ = ("_body", "_is_last", "_limit", "_mark", "_missing")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._mark = b""
        self._body = bytearray()
        self._missing = 0
        self._is_last = False

    def feed(self, data: memoryview) -> Iterator[bytes | bytearray]:
        """Yield the records that `data` completes; they do not refer to `data`.

        Raises:
            ValueError: If a record is longer than the limit. The stream cannot be understood from there on.
        """
        at = 0
        while at < len(data):
            if not self._missing:
                at = self._take_mark(data, at)
            at = self._take_body(data, at)
            if self._is_last and not self._missing:
                self._is_last = False
                record, self._body = self._body, bytearray()
                yield record

    def _take_mark(self, data: memoryview, at: int) -> int:
        stop = at + _MARK_SIZE - len(self._mark)
        mark = self._mark + data[at:stop]
        if len(mark) < _MARK_SIZE:
            self._mark = mark
            return len(data)
        self._mark = b""
        (word,) = U32.unpack(mark)
        self._is_last = word >= LAST_FRAGMENT
        self._missing = word & (LAST_FRAGMENT - 1)
        if len(self._body) + self._missing > self._limit:
            raise ValueError(f"a record of more than {self._limit} bytes")
        return stop

    def _take_body(self, data: memoryview, at: int) -> int:
        piece = data[at : at + self._missing]
        self._body += piece
        self._missing -= len(piece)
        return at + len(piece)
