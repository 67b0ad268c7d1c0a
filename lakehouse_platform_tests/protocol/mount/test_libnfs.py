"""libnfs and its tools: a client of its own that closes files without telling, and mounts the directory of a path.

Its `nfs-cp` (4.0) creates with GUARDED, so that it never overwrites a file, whatever the server.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from lakehouse_platform_tests.protocol.mount.conftest import CSV, Served, within
from lakehouse_platform_tests.support import libnfs
from lakehouse_platform_tests.support.libnfs import LibNfs
from lakehouse_platform_tests.support.tables import people

pytestmark = pytest.mark.skipif(
    shutil.which("nfs-cp") is None or not libnfs.is_there(), reason="no libnfs-utils"
)
NEW = b"id,name,age\n1,n1,30\n3,changed,30\n4,n4,30\n"
NEW_ROWS = [(1, "n1", 30), (3, "changed", 30), (4, "n4", 30)]


@pytest.fixture(params=["sync", "bulk"])
def mounted(request: pytest.FixtureRequest, served: Served) -> Iterator[LibNfs]:
    """The table's data directory, mounted by libnfs."""
    mount = LibNfs(served.port, f"{served.server.exports[request.param]}/people/data")
    yield mount
    mount.close()


def _rows(served: Served) -> list[tuple[object, ...]]:
    return sorted(tuple(row.values()) for row in served.table.scan().to_arrow().to_pylist())


def _is_one_version(served: Served, before: int = 1) -> bool:
    return within(20, lambda: served.table.version() > before) and not within(
        1, lambda: served.table.version() > before + 1
    )


def _data_file(served: Served) -> Path:
    (file,) = served.table.data_files()
    return served.table.location.path / file.path


def _url(served: Served, below: str, profile: str = "sync") -> str:
    ports = f"nfsport={served.port}&mountport={served.port}&version=3"
    return f"nfs://127.0.0.1{served.server.exports[profile]}/{below}?{ports}"


def _run(*words: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(words, capture_output=True, timeout=60, check=False)


def _output(*words: str) -> bytes:
    done = _run(*words)
    assert done.returncode == 0, done
    return done.stdout


def _names(listing: bytes) -> list[str]:
    return sorted(line.split()[-1].decode() for line in listing.splitlines())


@pytest.mark.parametrize("profile", ["sync", "bulk"])
def test_nfs_ls_lists_a_tables_directory(served: Served, profile: str) -> None:
    # libnfs shows zeros where LOOKUP tells no attributes, which it does not before a view's size is known.
    _output("nfs-cat", _url(served, "people/data/data.csv", profile))
    listing = _output("nfs-ls", _url(served, "people/data", profile))
    (csv,) = (line for line in listing.splitlines() if line.endswith(b" data.csv"))
    assert csv.startswith(b"-rw-------")
    assert str(len(CSV)) in csv.decode().split()
    file = _data_file(served)
    assert _names(listing) == sorted([file.name, "data.csv", "data.json", "data.jsonl"])


def test_nfs_ls_lists_the_lake_and_what_is_below(served: Served) -> None:
    assert _names(_output("nfs-ls", _url(served, ""))) == ["people"]
    names = _names(_output("nfs-ls", "-R", _url(served, "people")))
    assert {"data", "schema.sql", ".query", ".history", ".stats", ".versions"} <= set(names)


@pytest.mark.parametrize("below", ["data/data.csv", ".versions/1/data.csv"])
def test_nfs_cat_shows_the_rows(served: Served, below: str) -> None:
    assert _output("nfs-cat", _url(served, f"people/{below}")) == CSV


def test_nfs_cat_of_what_is_not_there_fails(served: Served) -> None:
    assert _run("nfs-cat", _url(served, "people/data/none")).returncode != 0
    assert _run("nfs-cat", _url(served, "none/data/data.csv")).returncode != 0
    wrong = _url(served, "people/data/data.csv").replace(served.server.exports["sync"], "/wrong/lake")
    assert _run("nfs-cat", wrong).returncode != 0


def test_nfs_cp_downloads_every_byte(served: Served, tmp_path: Path) -> None:
    served.table.append([{"id": number, "name": f"n{number}", "age": 1} for number in range(10, 150_010)])
    _output("nfs-cp", _url(served, "people/data/data.csv"), str(tmp_path / "copy.csv"))
    copy = (tmp_path / "copy.csv").read_bytes()
    assert copy.startswith(CSV.splitlines(keepends=True)[0])
    assert copy.count(b"\n") == 150_004
    assert copy == _output("nfs-cat", _url(served, "people/data/data.csv"))


def test_nfs_cp_downloads_data_files_as_they_are(served: Served, tmp_path: Path) -> None:
    file = _data_file(served)
    _output("nfs-cp", _url(served, f"people/data/{file.name}"), str(tmp_path / "copy"))
    assert (tmp_path / "copy").read_bytes() == file.read_bytes()


def test_nfs_cp_does_not_replace_the_view(served: Served, tmp_path: Path) -> None:
    (tmp_path / "new.csv").write_bytes(NEW)
    done = _run("nfs-cp", str(tmp_path / "new.csv"), _url(served, "people/data/data.csv"))
    assert (done.returncode != 0, b"EXIST" in done.stderr) == (True, True)
    assert not within(1, lambda: served.table.version() != 1)


def test_nfs_cp_after_removing_the_view_is_one_version(
    served: Served, mounted: LibNfs, tmp_path: Path
) -> None:
    (tmp_path / "new.csv").write_bytes(NEW)
    mounted.unlink("/data.csv")
    _output("nfs-cp", str(tmp_path / "new.csv"), _url(served, "people/data/data.csv"))
    assert _is_one_version(served)
    assert _rows(served) == NEW_ROWS


def test_writing_anew_is_one_version(served: Served, mounted: LibNfs) -> None:
    with mounted.open("/data.csv", os.O_WRONLY | os.O_TRUNC) as file:
        file.write(NEW)
    assert _is_one_version(served)
    assert _rows(served) == NEW_ROWS
    assert sorted(_output("nfs-cat", _url(served, "people/data/data.csv")).split()) == sorted(NEW.split())


def test_writing_many_rows_anew_is_one_version(served: Served, mounted: LibNfs) -> None:
    with mounted.open("/data.csv", os.O_WRONLY | os.O_TRUNC) as file:
        file.write(b"id,name,age\n" + b"".join(b"%d,name %d,7\n" % (n, n) for n in range(200_000)))
    assert _is_one_version(served)
    assert served.table.scan().to_arrow().num_rows == 200_000


def test_appending_is_one_version(served: Served, mounted: LibNfs) -> None:
    with mounted.open("/data.csv", os.O_WRONLY | os.O_APPEND) as file:
        file.write(b"4,n4,30\n")
        file.write(b"5,n5,30\n")
    assert _is_one_version(served)
    assert _rows(served) == [(number, f"n{number}", 30) for number in range(1, 6)]


def test_changing_bytes_in_place_is_one_version(served: Served, mounted: LibNfs) -> None:
    with mounted.open("/data.csv", os.O_RDWR) as file:
        file.pwrite(b"31", CSV.index(b"n1,30") + 3)
    assert _is_one_version(served)
    assert _rows(served)[0] == (1, "n1", 31)


def test_cutting_rows_off_is_one_version(served: Served, mounted: LibNfs) -> None:
    with mounted.open("/data.csv", os.O_RDWR) as file:
        file.truncate(CSV.index(b"3,n3"))
    assert _is_one_version(served)
    assert _rows(served) == [(1, "n1", 30), (2, "n2", 30)]


def test_moving_a_file_onto_the_view_is_one_version(served: Served, mounted: LibNfs, tmp_path: Path) -> None:
    (tmp_path / "new.csv").write_bytes(NEW)
    _output("nfs-cp", str(tmp_path / "new.csv"), _url(served, "people/data/new.csv"))
    mounted.rename("/new.csv", "/data.csv")
    assert _is_one_version(served)
    assert _rows(served) == NEW_ROWS


def test_bad_rows_are_refused_and_why_is_told(served: Served, mounted: LibNfs) -> None:
    # libnfs 4.0 makes EFAULT of every error of WRITE.
    with pytest.raises(OSError), mounted.open("/data.csv", os.O_WRONLY | os.O_TRUNC) as file:
        file.write(b"id,name,age\n1,n1,old\n")
    assert not within(1.5, lambda: served.table.version() != 1)
    assert b"Line 2" in _output("nfs-cat", _url(served, "people/.last_error"))
    assert _output("nfs-cat", _url(served, "people/data/data.csv")) == CSV


def test_nfs_cp_makes_scratch_files(served: Served, tmp_path: Path) -> None:
    data = bytes(range(256)) * 10_000
    (tmp_path / "blob").write_bytes(data)
    _output("nfs-cp", str(tmp_path / "blob"), _url(served, "people/data/blob"))
    assert _output("nfs-cat", _url(served, "people/data/blob")) == data
    assert served.table.version() == 1


def test_nfs_cat_sees_appends_by_others(served: Served) -> None:
    for number in range(4, 7):
        served.table.append(people(number))
        assert within(2, lambda: _output("nfs-cat", _url(served, "people/data/data.csv")) == _shown(served))


def _shown(served: Served) -> bytes:
    return CSV + b"".join(
        b"%d,n%d,30\n" % (n, n) for n in range(4, served.table.scan().to_arrow().num_rows + 1)
    )
