"""What all operations on scratch files share: the tree, its database, its bytes, and one way to change them."""

from __future__ import annotations

import os
import sqlite3
import time
import weakref
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from lakehouse_platform.errors import StorageIoError
from lakehouse_platform.nfs.operations import FileType, NfsError, ServerTime, Status
from lakehouse_platform.nfs.tree.scratch_data import BlobContent, ScratchData, flush
from lakehouse_platform.nfs.tree.scratch_store import Change, ScratchStore
from lakehouse_platform.nfs.tree.scratch_tree import Node, Place, Tree

MODE_BITS = 0o7777


class ScratchState:
    """The state of one server's scratch files."""

    def __init__(
        self,
        state_dir: Path,
        quota_bytes: int,
        quota_files: int,
        *,
        uid: int | None = None,
        gid: int | None = None,
        now_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        """Open the scratch files kept in a state directory.

        Args:
            state_dir: The server's state directory, which only this server uses.
            quota_bytes: Most bytes on disk that files may take; holes are free.
            quota_files: Most files, directories and links there may be.
            uid: The owner that all files show; changing it to another is refused.
            gid: The group that all files show.
            now_ns: The clock, in nanoseconds since 1970.

        Raises:
            StorageIoError: What the directory holds is damaged, or the disk fails.
        """
        self._quota_bytes, self._quota_files, self._now_ns = quota_bytes, quota_files, now_ns
        self._ids = {"uid": os.getuid() if uid is None else uid, "gid": os.getgid() if gid is None else gid}
        self._directory = state_dir
        self._background = ThreadPoolExecutor(1, "scratch")
        with _starting(state_dir):
            self._store = ScratchStore(state_dir / "scratch.sqlite", self._background)
            self._data = ScratchData(state_dir / "scratch", self._background)
            self._tree = Tree(self._store.nodes(), self._store.changed_ns())
            nodes = self._tree.nodes.values()
            self._data.reconcile({node.inode: node.size for node in nodes if node.type is FileType.REGULAR})
            flush(state_dir)
        changed = self._tree.changed_ns.values()
        self._newest_ns = max([0, *(node.ctime_ns for node in nodes), *changed])
        self._held: weakref.WeakValueDictionary[int, BlobContent] = weakref.WeakValueDictionary()

    def close(self) -> None:
        """Finish what runs in the background and close all files."""
        self._background.shutdown()
        self._data.close()
        self._store.close()

    def node(self, inode: int) -> Node:
        """Return a node by its number.

        Raises:
            NfsError: STALE, it is gone.
        """
        node = self._tree.nodes.get(inode)
        if node is None:
            raise NfsError(Status.STALE)
        return node

    def _file(self, inode: int) -> Node:
        node = self.node(inode)
        if node.is_directory:
            raise NfsError(Status.ISDIR)
        if node.type is not FileType.REGULAR:
            raise NfsError(Status.INVAL)
        return node

    def _tick(self) -> int:
        self._newest_ns = max(self._newest_ns + 1, self._now_ns())
        return self._newest_ns

    def _apply(
        self,
        nodes: tuple[Node, ...] = (),
        *,
        gone: Node | None = None,
        now: int = 0,
        places: tuple[Place, ...] = (),
    ) -> None:
        """Save a change and then make it in memory; `places` are the directories whose entries change at `now`."""
        roots = {place: now for place in places if isinstance(place, bytes)}
        parents = {place for place in places if isinstance(place, int)}
        touched = (replace(self.node(parent), mtime_ns=now, ctime_ns=now) for parent in parents)
        put = (*nodes, *touched)
        self._store.save(Change(put, () if gone is None else (gone.inode,), roots))
        self._tree.changed_ns.update(roots)
        if gone is not None:
            self._tree.drop(gone.inode)
            self._data.remove(gone.inode)
        for node in put:
            self._tree.put(node)


@contextmanager
def _starting(state_dir: Path) -> Generator[None]:
    try:
        yield
    except (sqlite3.Error, NfsError, OSError) as error:
        raise StorageIoError(
            f"The scratch files in {state_dir} cannot be opened: {error}. "
            "Repair the disk, or move scratch.sqlite and scratch/ away to start with none.",
            path=str(state_dir),
        ) from error


def resolve_time(wanted: int | ServerTime | None, now: int, otherwise: int) -> int:
    """Return the time that a client's request means."""
    if wanted is None:
        return otherwise
    return now if isinstance(wanted, ServerTime) else wanted
