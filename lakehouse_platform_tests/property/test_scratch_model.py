"""Scratch files against the local file system: whatever is done, both must agree, errors included."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from lakehouse_platform.nfs.operations import CreateMode, FileType, NfsError, SetAttributes, Status
from lakehouse_platform.nfs.tree.scratch import Scratch
from lakehouse_platform.nfs.tree.scratch_tree import Node, Place

_ROOTS = (b"one root", b"two root")
_NO_FOLLOW = os.O_NOFOLLOW | os.O_RDWR
_SAME_NUMBER = {
    Status.NOENT, Status.EXIST, Status.NOTDIR, Status.ISDIR, Status.INVAL, Status.NAMETOOLONG, Status.NOTEMPTY,
}  # fmt: skip
_STATUSES = {getattr(errno, f"E{status.name}"): status for status in _SAME_NUMBER}
_SOON_AFTER_1970 = 1_000_000
Outcome: TypeAlias = Status | bytes | None

names = st.sampled_from([b"a", b"b", b"c", b"\xff'\\", b"n" * 256])
places = st.tuples(st.sampled_from([0, 1]), st.lists(st.sampled_from([b"a", b"b"]), max_size=2))
offsets = st.integers(0, 3) | st.integers(0, 20_000)
texts = st.binary(max_size=20) | st.binary(min_size=5_000, max_size=5_000)
WhereTo: TypeAlias = tuple[int, list[bytes]]


class ScratchModel(RuleBasedStateMachine):
    """Does the same to scratch files and to a directory on disk."""

    @initialize()
    def start(self) -> None:
        self.directory = Path(tempfile.mkdtemp())
        self.local = self.directory / "local"
        for number in (0, 1):
            (self.local / str(number)).mkdir(parents=True)
        (self.directory / "state").mkdir()
        self.scratch = self._opened()

    def _opened(self) -> Scratch:
        return Scratch(self.directory / "state", 1 << 30, 1_000)

    def teardown(self) -> None:
        self.scratch.close()
        shutil.rmtree(self.directory)

    # ── Operations ──

    @rule(where=places, name=names, how=st.sampled_from([CreateMode.UNCHECKED, CreateMode.GUARDED]))
    def create(self, where: WhereTo, name: bytes, how: CreateMode) -> None:
        flags = os.O_CREAT | _NO_FOLLOW | (os.O_EXCL if how is CreateMode.GUARDED else 0)

        def locally(at: int) -> None:
            os.close(os.open(name, flags, 0o600, dir_fd=at))

        # CREATE has no ISDIR (RFC 1813 §3.3.8), and no ELOOP, which O_NOFOLLOW gives for a link.
        self._same(
            where,
            lambda place: self.scratch.make_file(place, name, how),
            locally,
            frozenset({errno.EISDIR, errno.ELOOP}),
        )

    @rule(where=places, name=names)
    def make_directory(self, where: WhereTo, name: bytes) -> None:
        self._same(
            where,
            lambda place: self.scratch.make_directory(place, name),
            lambda at: os.mkdir(name, 0o700, dir_fd=at),
        )

    @rule(where=places, name=names, said=st.sampled_from([b"a", b"", b"../x", b"t" * 4095, b"t" * 4096]))
    def make_symlink(self, where: WhereTo, name: bytes, said: bytes) -> None:
        self._same(
            where,
            lambda place: self.scratch.make_symlink(place, name, said),
            lambda at: os.symlink(said, name, dir_fd=at),
        )

    @rule(where=places, name=names)
    def remove(self, where: WhereTo, name: bytes) -> None:
        self._same(
            where, lambda place: self.scratch.remove(place, name), lambda at: os.unlink(name, dir_fd=at)
        )

    @rule(where=places, name=names)
    def remove_directory(self, where: WhereTo, name: bytes) -> None:
        self._same(
            where,
            lambda place: self.scratch.remove_directory(place, name),
            lambda at: os.rmdir(name, dir_fd=at),
        )

    @rule(where=places, name=names, to=places, new_name=names)
    def rename(self, where: WhereTo, name: bytes, to: WhereTo, new_name: bytes) -> None:
        target = self._place(to)
        with self._local_place(to) as there:
            assert (target is None) == (there is None)
            if target is None or there is None:
                return
            self._same(
                where,
                lambda place: self.scratch.rename(place, name, target, new_name),
                lambda at: os.rename(name, new_name, src_dir_fd=at, dst_dir_fd=there),
            )

    @rule(where=places, name=names, offset=offsets, text=texts)
    def write(self, where: WhereTo, name: bytes, offset: int, text: bytes) -> None:
        def locally(descriptor: int) -> None:
            os.pwrite(descriptor, text, offset)

        self._same_on_file(where, name, lambda inode: self.scratch.write(inode, offset, text), locally)

    @rule(where=places, name=names, offset=offsets, count=offsets)
    def read(self, where: WhereTo, name: bytes, offset: int, count: int) -> None:
        self._same_on_file(
            where,
            name,
            lambda inode: b"".join(self.scratch.read(inode, offset, count)),
            lambda descriptor: os.pread(descriptor, count, offset),
        )

    @rule(where=places, name=names, size=offsets)
    def truncate(self, where: WhereTo, name: bytes, size: int) -> None:
        self._same_on_file(
            where,
            name,
            lambda inode: self.scratch.truncate(inode, size),
            lambda descriptor: os.ftruncate(descriptor, size),
        )

    @rule(where=places, name=names, mode=st.integers(0, 0o777), times=st.tuples(offsets, offsets))
    def set_mode_and_times(self, where: WhereTo, name: bytes, mode: int, times: tuple[int, int]) -> None:
        # A directory that its owner cannot search would stop the local side, unless run by root.
        new = SetAttributes(mode=mode | 0o700, atime=times[0], mtime=times[1])

        def locally(descriptor: int) -> None:
            os.fchmod(descriptor, mode | 0o700)
            os.utime(descriptor, ns=times)

        self._same_on_file(where, name, lambda inode: self.scratch.set_attributes(inode, new), locally)

    @rule()
    def restart(self) -> None:
        self.scratch.close()
        self.scratch = self._opened()

    @rule(where=places, name=names)
    def flush(self, where: WhereTo, name: bytes) -> None:
        self._same_on_file(where, name, self.scratch.sync, os.fsync)

    # ── Comparing ──

    @invariant()
    def trees_are_equal(self) -> None:
        for number, root in enumerate(_ROOTS):
            assert self._seen(root) == _seen_locally(self.local / str(number))

    def _seen(self, place: Place) -> dict[bytes, Any]:
        nodes = self.scratch.list(place)
        assert [node.cookie for node in nodes] == sorted({node.cookie for node in nodes})
        return {node.name: self._description(node) for node in sorted(nodes, key=lambda node: node.name)}

    def _description(self, node: Node) -> tuple[object, ...]:
        found = self.scratch.attributes(node.inode)
        if node.type is FileType.SYMLINK:
            return "symlink", self.scratch.read_link(node.inode), found.size
        if node.type is FileType.DIRECTORY:
            return "directory", found.mode, found.nlink, self._seen(node.inode)
        return "file", found.mode, found.size, b"".join(self.scratch.read(node.inode, 0, 1 << 20))

    def _same(
        self,
        where: WhereTo,
        ours: Callable[[Place], object],
        theirs: Callable[[int], object],
        exist: frozenset[int] = frozenset(),
    ) -> None:
        place = self._place(where)
        with self._local_place(where) as at:
            assert (place is None) == (at is None)
            if place is not None and at is not None:
                assert _outcome(lambda: ours(place)) == _local_outcome(lambda: theirs(at), exist)

    def _same_on_file(
        self, where: WhereTo, name: bytes, ours: Callable[[int], object], theirs: Callable[[int], object]
    ) -> None:
        place = self._place(where)
        node = None if place is None or len(name) > 255 else self.scratch.lookup(place, name)
        if place is None or node is None or node.type is not FileType.REGULAR:
            return
        with self._local_place(where) as at:
            descriptor = os.open(name, _NO_FOLLOW, dir_fd=at)
            try:
                assert _outcome(lambda: ours(node.inode)) == _local_outcome(lambda: theirs(descriptor))
                local = os.fstat(descriptor)
                found = self.scratch.attributes(node.inode)
                if local.st_mtime_ns < _SOON_AFTER_1970:
                    assert local.st_mtime_ns == found.mtime_ns
            finally:
                os.close(descriptor)

    def _place(self, where: WhereTo) -> Place | None:
        place: Place = _ROOTS[where[0]]
        for name in where[1]:
            node = self.scratch.lookup(place, name)
            if node is None or not node.is_directory:
                return None
            place = node.inode
        return place

    @contextmanager
    def _local_place(self, where: WhereTo) -> Generator[int | None]:
        at = os.open(self.local / str(where[0]), os.O_DIRECTORY)
        try:
            for name in where[1]:
                below = os.open(name, os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=at)
                os.close(at)
                at = below
            found = True
        except OSError:
            found = False
        try:
            yield at if found else None
        finally:
            os.close(at)


def _outcome(act: Callable[[], object]) -> Outcome:
    try:
        found = act()
    except NfsError as error:
        return error.status
    return found if isinstance(found, bytes) else None


def _local_outcome(act: Callable[[], object], exist: frozenset[int] = frozenset()) -> Outcome:
    try:
        found = act()
    except OSError as error:
        return Status.EXIST if error.errno in exist else _STATUSES[error.errno or 0]
    return found if isinstance(found, bytes) else None


def _seen_locally(directory: Path) -> dict[bytes, Any]:
    return {os.fsencode(path.name): _local_description(path) for path in sorted(directory.iterdir())}


def _local_description(path: Path) -> tuple[object, ...]:
    found = path.lstat()
    mode = stat.S_IMODE(found.st_mode)
    if path.is_symlink():
        return "symlink", os.fsencode(path.readlink()), found.st_size
    if path.is_dir():
        return "directory", mode, found.st_nlink, _seen_locally(path)
    return "file", mode, found.st_size, path.read_bytes()


def _counts_subdirectories() -> bool:
    with tempfile.TemporaryDirectory() as directory:
        return Path(directory).stat().st_nlink == 2


@pytest.mark.skipif(
    not _counts_subdirectories(), reason="the local file system does not count links of directories"
)
def test_scratch_files_behave_like_local_files() -> None:
    run_state_machine_as_test(ScratchModel, settings=settings(stateful_step_count=40))
