"""The scratch files' tree in memory: which node stands under which name in which directory."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from lakehouse_platform.nfs.operations import FileType

# A directory: the file tree's own id of one of its directories (bytes), or the inode number of a scratch directory.
Place: TypeAlias = bytes | int


@dataclass(frozen=True, slots=True)
class Node:
    """One scratch file, directory or symbolic link, and its only name. Never changes: a change makes a new one.

    Attributes:
        inode: Its number; never given to another node.
        parent: The directory that it stands in.
        name: Its name there.
        cookie: Its place in the listing of its directory.
        type: What it is.
        mode: Permission bits.
        size: Bytes that READ sees; of a symbolic link the length of its target.
        atime_ns: When it was last said to be read; reading does not change it.
        mtime_ns: When its bytes or entries last changed, or what a client set.
        ctime_ns: When anything about it last changed; grows strictly.
        target: What a symbolic link says.
        verifier: What an EXCLUSIVE create came with.
    """

    inode: int
    parent: Place
    name: bytes
    cookie: int
    type: FileType
    mode: int
    size: int
    atime_ns: int
    mtime_ns: int
    ctime_ns: int
    target: bytes = b""
    verifier: bytes = b""

    @property
    def is_directory(self) -> bool:
        """Whether it can hold entries."""
        return self.type is FileType.DIRECTORY


@dataclass(slots=True)
class Directory:
    """The entries of one directory."""

    entries: dict[bytes, Node] = field(default_factory=dict[bytes, Node])
    subdirectories: int = 0
    _order: list[tuple[int, bytes]] | None = None

    def add(self, node: Node) -> None:
        """Take an entry in."""
        self.entries[node.name] = node
        self.subdirectories += node.is_directory
        self._order = None

    def discard(self, node: Node) -> None:
        """Let an entry go."""
        del self.entries[node.name]
        self.subdirectories -= node.is_directory
        self._order = None

    def after(self, cookie: int, limit: int | None) -> Sequence[Node]:
        """Return the entries behind a cookie, in the order of their cookies."""
        if self._order is None:
            self._order = sorted((node.cookie, name) for name, node in self.entries.items())
        start = bisect_right(self._order, cookie, key=lambda pair: pair[0])
        stop = None if limit is None else start + limit
        return [self.entries[name] for _, name in self._order[start:stop]]


_EMPTY = Directory()


class Tree:
    """All nodes and directories."""

    def __init__(self, nodes: Iterable[Node], changed_ns: dict[bytes, int]) -> None:
        self.nodes: dict[int, Node] = {}
        self.changed_ns = changed_ns
        self._directories: dict[Place, Directory] = {}
        for node in nodes:
            self.put(node)

    def directory(self, place: Place) -> Directory:
        """Return a directory's entries; a directory that nothing was ever put in is empty."""
        return self._directories.get(place, _EMPTY)

    def put(self, node: Node) -> None:
        """Add a node, or replace the node of the same number, wherever that stood."""
        old = self.nodes.get(node.inode)
        self.nodes[node.inode] = node
        if old is not None and old.cookie == node.cookie:
            self._directories[node.parent].entries[node.name] = node
            return
        if old is not None:
            self._discard(old)
        self._directories.setdefault(node.parent, Directory()).add(node)

    def drop(self, inode: int) -> None:
        """Forget a node."""
        self._discard(self.nodes.pop(inode))

    def _discard(self, node: Node) -> None:
        directory = self._directories[node.parent]
        directory.discard(node)
        if not directory.entries:
            del self._directories[node.parent]

    def is_inside(self, place: Place, inode: int) -> bool:
        """Tell whether a directory is a given one or lies below it."""
        while isinstance(place, int):
            if place == inode:
                return True
            place = self.nodes[place].parent
        return False
