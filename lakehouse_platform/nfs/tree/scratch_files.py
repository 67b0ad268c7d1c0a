"""Bytes and attributes of scratch files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lakehouse_platform.nfs.content import Buffer
from lakehouse_platform.nfs.operations import FileType, NfsError, SetAttributes, Status
from lakehouse_platform.nfs.tree.scratch_data import BLOCK, BlobContent
from lakehouse_platform.nfs.tree.scratch_state import MODE_BITS, ScratchState, resolve_time
from lakehouse_platform.nfs.tree.scratch_tree import Node

_MAX_SIZE = (1 << 63) - 1


class ScratchFiles(ScratchState):
    """What can be done with a scratch file whose number is known."""

    def read_link(self, inode: int) -> bytes:
        """Return what a symbolic link says."""
        node = self.node(inode)
        if node.type is not FileType.SYMLINK:
            raise NfsError(Status.INVAL)
        return node.target

    def read(self, inode: int, offset: int, count: int) -> Sequence[Buffer]:
        """Return the bytes of a range, cut at the end of the file."""
        count = min(count, self._file(inode).size - offset)
        return [self._data.read(inode, offset, count)] if count > 0 else []

    def write(self, inode: int, offset: int, data: Buffer) -> Node:
        """Write bytes at any place, and return the file as it then is. Not flushed: see `sync`.

        Raises:
            NfsError: FBIG; NOSPC; JUKEBOX, a `content` of the file is still in use.
        """
        node = self._file(inode)
        self._check_not_held(inode)
        end = offset + len(data)
        if end > _MAX_SIZE:
            raise NfsError(Status.FBIG)
        if not data:
            return node
        self._check_room(inode, offset, len(data))
        now = self._tick()
        changed = replace(node, size=max(node.size, end), mtime_ns=now, ctime_ns=now)
        try:
            self._data.write(inode, offset, memoryview(data))
            self._apply((changed,))
        except NfsError:
            self._data.resize(inode, node.size)
            raise
        return changed

    def _check_room(self, inode: int, offset: int, count: int) -> None:
        free = self._quota_bytes - self._data.total
        # At most two blocks more than the bytes are touched. Only close to the quota are the holes looked up.
        if count + 2 * BLOCK > free and self._data.missing(inode, offset, count) > free:
            raise NfsError(Status.NOSPC, "the quota of scratch bytes is used up")

    def set_attributes(self, inode: int, new: SetAttributes) -> Node:
        """Change mode, size and times, and return the node as it then is.

        Raises:
            NfsError: PERM, another owner or group; ISDIR or INVAL, a size for what has none; FBIG; JUKEBOX as above.
        """
        node = self.node(inode)
        if new.uid not in (None, self._ids["uid"]) or new.gid not in (None, self._ids["gid"]):
            raise NfsError(Status.PERM, "all scratch files belong to the server's owner")
        now = self._tick()
        changed = replace(
            node,
            mode=node.mode if new.mode is None else new.mode & MODE_BITS,
            atime_ns=resolve_time(new.atime, now, node.atime_ns),
            mtime_ns=resolve_time(new.mtime, now, node.mtime_ns if new.size is None else now),
            ctime_ns=now,
        )
        return self._store_resized(changed, new.size)

    def truncate(self, inode: int, size: int) -> Node:
        """Cut a file, or lengthen it by a hole."""
        return self.set_attributes(inode, SetAttributes(size=size))

    def _store_resized(self, changed: Node, size: int | None) -> Node:
        if size is None:
            self._apply((changed,))
            return changed
        old_size = self._file(changed.inode).size
        self._check_not_held(changed.inode)
        if size > _MAX_SIZE:
            raise NfsError(Status.FBIG)
        # The tree never promises bytes that the file does not have: it grows after the file and shrinks before it.
        if size > old_size:
            self._data.resize(changed.inode, size)
        resized = replace(changed, size=size)
        self._apply((resized,))
        if size < old_size:
            self._data.resize(changed.inode, size)
        return resized

    def sync(self, inode: int) -> None:
        """Flush a file's bytes and everything that was changed before. Blocks; may be called from any thread."""
        self.node(inode)
        self._data.sync(inode)
        self._store.sync()

    def content(self, inode: int) -> BlobContent:
        """Return a file's bytes as they are now; until that is closed, changing the bytes is refused with JUKEBOX."""
        node = self._file(inode)
        self._check_not_held(inode)
        content = self._data.content(inode, node.size)
        self._held[inode] = content
        return content

    def _check_not_held(self, inode: int) -> None:
        held = self._held.get(inode)
        if held is not None and held.is_open:
            raise NfsError(Status.JUKEBOX, "the file is being published")
