"""The file `.query`: SQL is written to it, and then it holds the result. Each mount has its own."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from lakehouse_platform.nfs.operations import NfsError, Status

MOST_QUERY_BYTES = 1 << 20
MOST_FILES = 256
_MOST_BYTES = 256 << 20

USAGE = b"""\
Write one SELECT to this file, then read the result from it as CSV:

  echo 'SELECT count(*) FROM data' > .query && cat .query

The table is called data; other tables of the lakehouse have their own names. For a result that stays, write the query
to .query.d/NAME.sql and read .query.d/NAME.csv or NAME.json, or NAME.err if it failed.
"""


@dataclass(slots=True)
class QueryFile:
    """One mount's `.query` of one table. Pure: the time is an argument, in nanoseconds.

    Attributes:
        content: What reading it gives: usage, result, or the message of a query that failed.
        changed_ns: When that came about.
        text: The SQL written so far.
        waiting: Whether it was not run yet.
    """

    content: bytes = USAGE
    changed_ns: int = 0
    text: bytearray = field(default_factory=bytearray)
    waiting: bool = False

    def truncate(self, size: int, now_ns: int) -> None:
        """Begin a new query.

        Raises:
            NfsError: INVAL: the file is cut to something else than nothing.
        """
        if size == len(self.content) and not self.waiting:
            return
        if size:
            raise NfsError(Status.INVAL, "only an empty .query can be begun")
        self.text.clear()
        self.waiting = False
        self.show(b"", now_ns)

    def write(self, offset: int, data: bytes) -> None:
        """Take a piece of SQL: at the start, after the last piece, or after the result, which clients resend.

        Raises:
            NfsError: FBIG: it is too long; INVAL: it belongs nowhere.
        """
        start, piece = self._place(offset, data)
        if start + len(piece) > MOST_QUERY_BYTES:
            raise NfsError(Status.FBIG, "the query is too long")
        if start == 0 and not self.waiting:
            self.text.clear()
        # Pieces of one flush may come in any order.
        self.text.extend(b"\0" * (start - len(self.text)))
        self.text[start : start + len(piece)] = piece
        self.waiting = True

    def show(self, content: bytes, now_ns: int) -> None:
        """Give the file new content."""
        self.content = content
        self.changed_ns = max(now_ns, self.changed_ns + 1)

    def _place(self, offset: int, data: bytes) -> tuple[int, bytes]:
        shown = len(self.content)
        if not self.waiting and shown and offset <= shown:
            known = self.content[offset:]
            if offset == shown or data.startswith(known):
                return 0, data[len(known) :]
        if offset > MOST_QUERY_BYTES:
            raise NfsError(Status.FBIG, "the query is too long")
        if offset > len(self.text) and not self.waiting and self.text:
            raise NfsError(Status.INVAL, "SQL is written from the start of the file")
        return offset, data


@dataclass(slots=True)
class QueryFiles:
    """The `.query` files that mounts have used lately; the others show the usage text."""

    started_ns: int
    _files: OrderedDict[tuple[bytes, bytes], QueryFile] = field(
        default_factory=OrderedDict[tuple[bytes, bytes], QueryFile]
    )

    def shown(self, mount: bytes, table: bytes) -> QueryFile:
        """Return a mount's file for a table, to look at: who lists directories takes no other's place."""
        key = mount, table
        if key in self._files:
            self._files.move_to_end(key)
            return self._files[key]
        return QueryFile(changed_ns=self.started_ns)

    def of(self, mount: bytes, table: bytes) -> QueryFile:
        """Return a mount's file for a table, to change it."""
        key = mount, table
        if key not in self._files:
            self._files[key] = QueryFile(changed_ns=self.started_ns)
        self._files.move_to_end(key)
        while len(self._files) > 1 and self._is_too_much():
            self._files.popitem(last=False)
        return self._files[key]

    def _is_too_much(self) -> bool:
        size = sum(len(file.content) + len(file.text) for file in self._files.values())
        return len(self._files) > MOST_FILES or size > _MOST_BYTES
