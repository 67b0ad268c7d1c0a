"""Scratch files: what editors put beside a table's views, with the behaviour of a local file system.

Names are keys of dictionaries and never paths: a client cannot reach the disk by them. Hard links and special files are
not offered. Every operation is on disk, safe from a kill of this process, before it returns.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace

from lakehouse_platform.nfs.operations import CreateMode, FileType, NfsError, SetAttributes, Status
from lakehouse_platform.nfs.tree.scratch_files import ScratchFiles
from lakehouse_platform.nfs.tree.scratch_state import MODE_BITS, resolve_time
from lakehouse_platform.nfs.tree.scratch_tree import Node, Place

# The file tree's own entries have cookies below.
FIRST_COOKIE = 1 << 32
MAX_NAME = 255
# PATH_MAX of Linux, less the NUL.
_MAX_TARGET = 4095
_FILE_MODE, _DIRECTORY_MODE, _LINK_MODE = 0o600, 0o700, 0o777
_NOTHING = SetAttributes()


@dataclass(frozen=True, slots=True)
class ScratchAttributes:
    """What the file tree needs to answer GETATTR. Times in nanoseconds since 1970."""

    inode: int
    type: FileType
    mode: int
    size: int
    used: int
    nlink: int
    mtime_ns: int
    ctime_ns: int
    atime_ns: int


@dataclass(frozen=True, slots=True)
class RootState:
    """What scratch entries add to one of the file tree's own directories.

    Attributes:
        changed_ns: When they last changed; 0 if that is not known, because there are none.
        subdirectories: How many of them are directories.
        entries: How many there are.
    """

    changed_ns: int
    subdirectories: int
    entries: int


@dataclass(frozen=True, slots=True)
class ScratchSpace:
    """How much scratch files may take and what of it is free."""

    total_bytes: int
    free_bytes: int
    total_files: int
    free_files: int


class Scratch(ScratchFiles):
    """The scratch files of one server. Used by one thread, except `sync`, which may be called from any.

    Every method that takes a directory or a file refuses with STALE if it is gone, and with NOTDIR, ISDIR or INVAL if
    it is of the wrong type. What changes anything refuses with NOSPC or DQUOT when there is no room, and with IO when
    the disk fails; then nothing is changed.
    """

    # Calls over a restart.

    def has_done(self, call: bytes) -> bool:
        """Tell whether an earlier server has carried a call out; see `calls`."""
        return call in self._store.calls_before

    def note_done(self, call: bytes) -> None:
        """Remember a call that was carried out, for a client that asks again after a restart."""
        self._store.note_done(call)

    # What there is.

    def lookup(self, place: Place, name: bytes) -> Node | None:
        """Return the entry of a name, or None.

        Raises:
            NfsError: NAMETOOLONG, or the directory's STALE or NOTDIR.
        """
        self._check_directory(place)
        if len(name) > MAX_NAME:
            raise NfsError(Status.NAMETOOLONG)
        return self._tree.directory(place).entries.get(name)

    def list(self, place: Place, after_cookie: int = 0, limit: int | None = None) -> Sequence[Node]:
        """Return a directory's entries behind a cookie, in the order of their cookies, at most `limit`."""
        self._check_directory(place)
        return self._tree.directory(place).after(after_cookie, limit)

    def root(self, place: bytes) -> RootState:
        """Return what scratch entries add to one of the file tree's own directories."""
        directory = self._tree.directory(place)
        changed_ns = self._tree.changed_ns.get(place, 0)
        return RootState(changed_ns, directory.subdirectories, len(directory.entries))

    def attributes(self, inode: int) -> ScratchAttributes:
        """Return what GETATTR tells about a node."""
        node = self.node(inode)
        nlink = 2 + self._tree.directory(inode).subdirectories if node.is_directory else 1
        return ScratchAttributes(
            inode=inode,
            type=node.type,
            mode=node.mode,
            size=node.size,
            used=self._data.used(inode),
            nlink=nlink,
            mtime_ns=node.mtime_ns,
            ctime_ns=node.ctime_ns,
            atime_ns=node.atime_ns,
        )

    def space(self) -> ScratchSpace:
        """Return the room there is: by the quota, and on the disk."""
        disk = os.statvfs(self._directory)
        by_quota = max(0, self._quota_bytes - self._data.total)
        return ScratchSpace(
            total_bytes=self._quota_bytes,
            free_bytes=min(by_quota, disk.f_bavail * disk.f_frsize),
            total_files=self._quota_files,
            free_files=max(0, self._quota_files - len(self._tree.nodes)),
        )

    # Making entries.

    def make_file(
        self,
        place: Place,
        name: bytes,
        how: CreateMode = CreateMode.UNCHECKED,
        new: SetAttributes = _NOTHING,
        verifier: bytes = b"",
    ) -> Node:
        """Create a regular file, RFC 1813 §3.3.8; owner and group are always the server's.

        Raises:
            NfsError: EXIST, INVAL or NAMETOOLONG for its name.
        """
        found = self._free_name(place, name)
        if found is not None:
            return self._use_existing(found, how, new, verifier)
        remembered = verifier if how is CreateMode.EXCLUSIVE else b""
        node = self._add(place, name, FileType.REGULAR, new, _FILE_MODE, verifier=remembered)
        return self.truncate(node.inode, new.size) if new.size else node

    def _use_existing(self, found: Node, how: CreateMode, new: SetAttributes, verifier: bytes) -> Node:
        is_file = found.type is FileType.REGULAR
        is_repeated = how is CreateMode.EXCLUSIVE and found.verifier == verifier != b""
        if not is_file or not (is_repeated or how is CreateMode.UNCHECKED):
            raise NfsError(Status.EXIST)
        return found if is_repeated or new.size is None else self.truncate(found.inode, new.size)

    def make_directory(self, place: Place, name: bytes, new: SetAttributes = _NOTHING) -> Node:
        """Create a directory.

        Raises:
            NfsError: EXIST, INVAL or NAMETOOLONG for its name.
        """
        if self._free_name(place, name) is not None:
            raise NfsError(Status.EXIST)
        return self._add(place, name, FileType.DIRECTORY, new, _DIRECTORY_MODE)

    def make_symlink(self, place: Place, name: bytes, target: bytes, new: SetAttributes = _NOTHING) -> Node:
        """Create a symbolic link; its target is not looked at.

        Raises:
            NfsError: EXIST, INVAL or NAMETOOLONG for its name; NOENT, INVAL or NAMETOOLONG for its target.
        """
        _check_target(target)
        if self._free_name(place, name) is not None:
            raise NfsError(Status.EXIST)
        return self._add(place, name, FileType.SYMLINK, replace(new, mode=None), _LINK_MODE, target=target)

    def _add(
        self,
        place: Place,
        name: bytes,
        kind: FileType,
        new: SetAttributes,
        mode: int,
        *,
        target: bytes = b"",
        verifier: bytes = b"",
    ) -> Node:
        if len(self._tree.nodes) >= self._quota_files:
            raise NfsError(Status.NOSPC, "the quota of scratch files is used up")
        number, now = self._store.serial(), self._tick()
        node = Node(
            inode=number,
            parent=place,
            name=name,
            cookie=FIRST_COOKIE + number,
            type=kind,
            mode=(mode if new.mode is None else new.mode) & MODE_BITS,
            size=len(target),
            atime_ns=resolve_time(new.atime, now, now),
            mtime_ns=resolve_time(new.mtime, now, now),
            ctime_ns=now,
            target=target,
            verifier=verifier,
        )
        self._apply((node,), now=now, places=(place,))
        return node

    # Removing and moving entries.

    def remove(self, place: Place, name: bytes) -> Node:
        """Remove a file or link and return what it was.

        Raises:
            NfsError: NOENT or ISDIR.
        """
        node = self._entry(place, name)
        if node.is_directory:
            raise NfsError(Status.ISDIR)
        self._apply(gone=node, now=self._tick(), places=(place,))
        return node

    def remove_directory(self, place: Place, name: bytes) -> Node:
        """Remove an empty directory and return what it was.

        Raises:
            NfsError: NOENT, NOTDIR or NOTEMPTY.
        """
        node = self._entry(place, name)
        self._check_replaceable(node, by_directory=True)
        self._apply(gone=node, now=self._tick(), places=(place,))
        return node

    def rename(self, place: Place, name: bytes, target: Place, new_name: bytes) -> Node:
        """Give an entry another place, over a file or an empty directory if there is one, and return it.

        Raises:
            NfsError: NOENT; INVAL, a directory would go below itself; NOTDIR, ISDIR or NOTEMPTY, what is in the way.
        """
        node = self._entry(place, name)
        over = self._free_name(target, new_name)
        if self._tree.is_inside(target, node.inode):
            raise NfsError(Status.INVAL, "a directory cannot be moved below itself")
        if over is node:
            return node
        if over is not None:
            self._check_not_above(over, place)
            self._check_replaceable(over, by_directory=node.is_directory)
        now = self._tick()
        cookie = FIRST_COOKIE + self._store.serial()
        moved = replace(node, parent=target, name=new_name, cookie=cookie, ctime_ns=now)
        self._apply((moved,), gone=over, now=now, places=(place, target))
        return moved

    def _check_not_above(self, over: Node, place: Place) -> None:
        if self._tree.is_inside(place, over.inode):
            raise NfsError(Status.NOTEMPTY, "it holds what would replace it")

    def _check_replaceable(self, node: Node, *, by_directory: bool) -> None:
        if by_directory and not node.is_directory:
            raise NfsError(Status.NOTDIR)
        if node.is_directory and not by_directory:
            raise NfsError(Status.ISDIR)
        if self._tree.directory(node.inode).entries:
            raise NfsError(Status.NOTEMPTY)

    # Rules for names.

    def _check_directory(self, place: Place) -> None:
        if isinstance(place, int) and not self.node(place).is_directory:
            raise NfsError(Status.NOTDIR)

    def _entry(self, place: Place, name: bytes) -> Node:
        node = self.lookup(place, name)
        if name in (b".", b".."):
            raise NfsError(Status.INVAL)
        if node is None:
            raise NfsError(Status.NOENT)
        return node

    def _free_name(self, place: Place, name: bytes) -> Node | None:
        found = self.lookup(place, name)
        if name in (b".", b".."):
            raise NfsError(Status.EXIST)
        if not name or b"/" in name or b"\0" in name:
            raise NfsError(Status.INVAL, "no file can have this name")
        return found


def _check_target(target: bytes) -> None:
    if not target:
        raise NfsError(Status.NOENT)
    if b"\0" in target:
        raise NfsError(Status.INVAL)
    if len(target) > _MAX_TARGET:
        raise NfsError(Status.NAMETOOLONG)
