"""Scratch files after a restart, a kill at any point, and damage."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from lakehouse_platform.errors import StorageIoError
from lakehouse_platform.nfs.operations import NfsError
from lakehouse_platform.nfs.tree.scratch import Scratch
from lakehouse_platform_tests.support.s3_server import ROOT as PROJECT

ROOT = b"8 bytes."
# Says each file's name after its bytes were answered for, until it is killed.
_WRITER = """
import sys
from itertools import count
from pathlib import Path
from lakehouse_platform.nfs.tree.scratch import Scratch

scratch = Scratch(Path(sys.argv[1]), 1 << 30, 100_000)
for number in count():
    inode = scratch.make_file(b"8 bytes.", b"temporary").inode
    scratch.write(inode, 0, b"%d" % number * 100)
    scratch.truncate(inode, 50)
    scratch.rename(b"8 bytes.", b"temporary", b"8 bytes.", b"%d" % (number % 50))
    print(number, flush=True)
"""


def opened(directory: Path) -> Scratch:
    return Scratch(directory, 1 << 30, 100_000)


def test_everything_is_there_after_a_restart(tmp_path: Path) -> None:
    first = opened(tmp_path)
    home = first.make_directory(ROOT, b"home")
    file = first.make_file(home.inode, b"file")
    first.write(file.inode, 5_000_000, b"end")
    link = first.make_symlink(home.inode, b"link", b"\xff")
    before = [first.attributes(node.inode) for node in (home, file, link)]
    changed, space = first.root(ROOT), first.space()
    first.close()
    second = opened(tmp_path)
    assert [second.attributes(node.inode) for node in (home, file, link)] == before
    assert second.root(ROOT) == changed
    assert second.space().free_files == space.free_files
    assert second.read(file.inode, 4_999_999, 10) == [b"\0end"]
    assert second.read_link(link.inode) == b"\xff"
    second.sync(file.inode)
    second.close()


def test_an_empty_directory_of_the_file_tree_leaves_no_trace(tmp_path: Path) -> None:
    first = opened(tmp_path)
    first.make_file(ROOT, b"x")
    first.remove(ROOT, b"x")
    assert first.root(ROOT).changed_ns > 0
    first.close()
    second = opened(tmp_path)
    assert second.root(ROOT).changed_ns == 0
    second.close()


@pytest.mark.parametrize("lines", [1, 7, 120])
def test_a_kill_loses_nothing_that_was_answered(tmp_path: Path, lines: int) -> None:
    command = [sys.executable, "-c", _WRITER, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=PROJECT) as writer:
        assert writer.stdout is not None
        said = [int(writer.stdout.readline()) for _ in range(lines)]
        writer.kill()
        said += [int(line) for line in writer.stdout]
    scratch = opened(tmp_path)
    for number in said[-40:]:
        node = scratch.lookup(ROOT, b"%d" % (number % 50))
        assert node is not None
        written = b"".join(scratch.read(node.inode, 0, 1_000))
        # The operation that was under way may have replaced the oldest name.
        assert written in {(b"%d" % n * 100)[:50] for n in (number, number + 50)}
    left = {path.name for path in (tmp_path / "scratch").iterdir()}
    assert left <= {f"{node.inode:016x}" for node in scratch.list(ROOT)}
    scratch.close()


def test_bytes_beyond_the_size_that_was_answered_do_not_come_back(tmp_path: Path) -> None:
    first = opened(tmp_path)
    inode = first.make_file(ROOT, b"x").inode
    first.write(inode, 0, b"answered")
    first.close()
    [blob] = (tmp_path / "scratch").iterdir()
    blob.write_bytes(b"answered and not")
    second = opened(tmp_path)
    second.truncate(inode, 16)
    assert second.read(inode, 0, 100) == [b"answered" + bytes(8)]
    second.close()


def test_bytes_that_a_power_cut_lost_read_as_nul(tmp_path: Path) -> None:
    first = opened(tmp_path)
    inode = first.make_file(ROOT, b"x").inode
    first.write(inode, 0, b"lost")
    first.close()
    [blob] = (tmp_path / "scratch").iterdir()
    blob.unlink()
    second = opened(tmp_path)
    assert second.read(inode, 0, 100) == [bytes(4)]
    second.close()


def test_a_damaged_database_is_named(tmp_path: Path) -> None:
    (tmp_path / "scratch.sqlite").write_bytes(b"not a database" * 1_000)
    with pytest.raises(StorageIoError, match="scratch"):
        opened(tmp_path)


def test_a_disk_that_fails_refuses_the_change_and_keeps_the_tree(tmp_path: Path) -> None:
    scratch = opened(tmp_path)
    inode = scratch.make_file(ROOT, b"x").inode
    scratch.write(inode, 0, b"kept")
    before = scratch.attributes(inode)
    scratch._store.close()
    for act in (
        lambda: scratch.make_file(ROOT, b"y"),
        lambda: scratch.remove(ROOT, b"x"),
        lambda: scratch.write(inode, 4, b"more"),
        lambda: scratch.truncate(inode, 0),
    ):
        with pytest.raises(NfsError, match="IO"):
            act()
    assert [node.name for node in scratch.list(ROOT)] == [b"x"]
    assert scratch.attributes(inode) == before
    assert scratch.read(inode, 0, 100) == [b"kept"]
    scratch.close()
