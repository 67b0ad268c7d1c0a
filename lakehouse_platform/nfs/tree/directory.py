"""Directory entries in an order that does not change while entries come and go."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lakehouse_platform.nfs.tree.handles import Handle, hash64

# Cookies are ranges by kind of entry: READDIR goes on after a cookie, so an entry keeps its own for good. 0 to 2 are
# the beginning, `.` and `..`; scratch files have theirs from FIRST_COOKIE on; Linux takes them as signed numbers.
_FIXED = 3
_VERSIONS = 64
_NAMED = 1 << 61


@dataclass(frozen=True, slots=True)
class Entries:
    """What a directory's entries depend on.

    Attributes:
        table_ns: When the table changed, or the set of tables.
        scratch_ns: When scratch entries changed.
        moved_ns: When moved views came or went.
        others: Whatever else they depend on.
    """

    table_ns: int
    scratch_ns: int
    moved_ns: int
    others: object = None


class Stamps:
    """When directories changed: a time that is new whenever anything in them is, whatever the clocks of writers say."""

    def __init__(self) -> None:
        self._seen: dict[bytes, tuple[Entries, int]] = {}

    def changed_ns(self, place: bytes, entries: Entries, now_ns: int) -> int:
        """Return the mtime and ctime of a directory whose entries depend on this now."""
        before = self._seen.get(place)
        if before is None:
            changed_ns = max(entries.table_ns, entries.scratch_ns, entries.moved_ns)
        elif before[0] == entries:
            return before[1]
        else:
            changed_ns = max(now_ns, before[1] + 1)
        self._seen[place] = entries, changed_ns
        return changed_ns


@dataclass(frozen=True, slots=True)
class Child:
    """One entry of a directory.

    Attributes:
        name: Its name.
        handle: What it is.
        cookie: Its place in the directory.
    """

    name: bytes
    handle: Handle
    cookie: int


def fixed(position: int, name: bytes, handle: Handle) -> Child:
    """Return an entry that the directory always has."""
    return Child(name, handle, _FIXED + position)


def versioned(version: int, handle: Handle) -> Child:
    """Return the entry of a version."""
    return Child(b"%d" % version, handle, version_cookie(version))


def version_cookie(version: int) -> int:
    """Return the place of a version."""
    return _VERSIONS + version


def named(name: bytes, handle: Handle) -> Child:
    """Return an entry that is placed by its name's hash."""
    return Child(name, handle, named_cookie(name))


def named_cookie(name: bytes) -> int:
    """Return the place of an entry that is placed by its name's hash."""
    return _NAMED + (hash64(name) & (_NAMED - 1))


def after(cookie: int, children: Iterable[Child]) -> list[Child]:
    """Return the entries after a cookie, in their order."""
    return sorted((child for child in children if child.cookie > cookie), key=lambda child: child.cookie)
