"""A version's data files as entries of the directory `data`: by name, by number, and in the order of a listing."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

from lakehouse_platform.nfs.tree.directory import named_cookie
from lakehouse_platform.nfs.tree.handles import hash64
from lakehouse_platform.store.pinned import Pinned, PinnedFile

MAX_NAME = 255
_SHORTENED = 200


def file_number(path: str) -> int:
    """Return the number by which a data file's handle names it."""
    return hash64(path.encode())


def file_name(path: str) -> bytes:
    """Return a data file's name: its path in the log with `/` written as `%2F`, shortened if it is too long."""
    name = path.encode().replace(b"/", b"%2F")
    return name if len(name) <= MAX_NAME else b"%016x-%s" % (file_number(path), name[-_SHORTENED:])


class DataFiles:
    """The data files of one version."""

    def __init__(self, pinned: Pinned) -> None:
        self.pinned = pinned
        self._by_number = {file_number(file.path): file for file in pinned.files}
        self._numbers = {file_name(file.path): number for number, file in self._by_number.items()}
        self._listed = sorted((named_cookie(name), name) for name in self._numbers)

    def numbered(self, number: int) -> PinnedFile | None:
        """Return a file by the number in its handle."""
        return self._by_number.get(number)

    def number_of(self, name: bytes) -> int | None:
        """Return the number of the file of a name."""
        return self._numbers.get(name)

    def after(self, cookie: int, limit: int) -> Iterator[tuple[bytes, int]]:
        """Yield names and numbers in the order of a listing, at most `limit` behind a cookie."""
        start = bisect_right(self._listed, cookie, key=lambda entry: entry[0])
        for _, name in self._listed[start : start + limit]:
            yield name, self._numbers[name]
