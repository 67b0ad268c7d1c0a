"""Whole rows out of bytes that arrive in any pieces."""

from __future__ import annotations

from lakehouse_platform.nfs.content import Buffer
from lakehouse_platform.text.csv_lines import last_row_end


class RowSplitter:
    """Cuts arriving bytes after the last row that is whole, and keeps the rest.

    Attributes:
        offset: How many bytes were given out as whole rows: where the kept rest begins.
    """

    def __init__(self) -> None:
        self.offset = 0
        self._rest = bytearray()
        self._in_quotes = False

    @property
    def rest(self) -> bytes:
        """The bytes of the row that is not whole yet."""
        return bytes(self._rest)

    @property
    def rest_size(self) -> int:
        """How many bytes the row has that is not whole yet."""
        return len(self._rest)

    @property
    def is_whole(self) -> bool:
        """Whether all bytes so far are whole rows."""
        return not self._rest

    def feed(self, data: Buffer) -> bytes:
        """Take the next bytes and return the rows that are whole now, in one piece; empty if none is."""
        chunk = bytes(data)
        end = last_row_end(chunk, in_quotes=self._in_quotes)
        if not end:
            self._keep(chunk)
            return b""
        rows = bytes(self._rest) + chunk[:end] if self._rest else chunk[:end]
        self._rest.clear()
        self._in_quotes = False
        self._keep(chunk[end:])
        self.offset += len(rows)
        return rows

    def finish(self) -> bytes:
        """Return the rest, which lacks its line end, and begin anew behind it."""
        rest = bytes(self._rest)
        self._rest.clear()
        self._in_quotes = False
        self.offset += len(rest)
        return rest

    def _keep(self, chunk: bytes) -> None:
        self._rest += chunk
        self._in_quotes ^= bool(chunk.count(b'"') % 2)
