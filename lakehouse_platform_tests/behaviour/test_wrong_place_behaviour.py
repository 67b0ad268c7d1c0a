"""Places that are no table, hold a broken one, or may not be looked at: each with its own reason."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.fs as pafs
import pytest

from lakehouse_platform.errors import (
    DataFilesMissingError,
    DirectoryNotEmptyError,
    InvalidNameError,
    LakehouseError,
    NotADeltaTableError,
    StoragePermissionError,
    StorageUnavailableError,
    TableExistsError,
    TableNotFoundError,
)
from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform_tests.support.s3_server import S3Server
from lakehouse_platform_tests.support.tables import PEOPLE, people

_NOBODY = 65_534


@pytest.fixture
def disk(tmp_path: Path) -> DeltaStore:
    """A store on disk whose directory is there."""
    (tmp_path / "lake").mkdir()
    return DeltaStore(LakehouseConfig(base_path=str(tmp_path / "lake"), durability="os"))


def test_a_place_where_nothing_is(filled: DeltaStore) -> None:
    with pytest.raises(TableNotFoundError, match="absent"):
        filled.at(filled.table("people").location.uri + "/absent").scan()


def test_a_table_whose_data_files_were_lost(filled: DeltaStore) -> None:
    table = filled.table("people")
    table.location.filesystem().delete_file(table.data_files()[0].path)
    with pytest.raises(DataFilesMissingError, match="people"):
        table.scan().to_pylist()
    with pytest.raises(DataFilesMissingError, match="people"):
        filled.sql("SELECT * FROM people").to_pylist()


@pytest.mark.parametrize("text", [b"", b"{", b"rubbish\n", b'{"commitInfo": {}}\n', b"\xff\xfe"])
def test_a_table_whose_log_is_rubbish(store: DeltaStore, text: bytes) -> None:
    _write(store, "t/_delta_log", f"{0:020}.json", text)
    with pytest.raises(NotADeltaTableError, match="_delta_log"):
        store.table("t").scan().to_pylist()


def test_a_log_entry_that_was_cut_off(filled: DeltaStore) -> None:
    _write(filled, "people/_delta_log", f"{1:020}.json", b'{"add": {"path": "part-0')
    with pytest.raises(NotADeltaTableError, match="_delta_log"):
        filled.scan("people").to_pylist()


def test_a_file_in_place_of_a_table(disk: DeltaStore, tmp_path: Path) -> None:
    (tmp_path / "lake" / "t").write_text("x")
    with pytest.raises(NotADeltaTableError, match="is a file"):
        disk.open("t")
    with pytest.raises(DirectoryNotEmptyError, match="is a file"):
        disk.create("t", PEOPLE)


@pytest.mark.parametrize(("content", "reason"), [(None, "empty"), ("notes.txt", "not a Delta table")])
def test_a_directory_without_a_log(
    disk: DeltaStore, tmp_path: Path, content: str | None, reason: str
) -> None:
    (tmp_path / "lake" / "t").mkdir()
    if content:
        (tmp_path / "lake" / "t" / content).write_text("x")
    with pytest.raises(NotADeltaTableError, match=reason):
        disk.open("t")
    assert disk.tables() == []


def test_a_directory_whose_log_is_empty(disk: DeltaStore, tmp_path: Path) -> None:
    (tmp_path / "lake" / "t" / "_delta_log").mkdir(parents=True)
    with pytest.raises(NotADeltaTableError, match="no commit"):
        disk.open("t")


def test_a_table_is_created_in_an_empty_directory_but_in_no_other(disk: DeltaStore, tmp_path: Path) -> None:
    for name in ("empty", "used"):
        (tmp_path / "lake" / name).mkdir()
    kept = tmp_path / "lake" / "used" / "notes.txt"
    kept.write_text("mine")
    disk.create("empty", PEOPLE)
    with pytest.raises(DirectoryNotEmptyError, match=r"notes\.txt"):
        disk.create("used", PEOPLE)
    assert (disk.tables(), kept.read_text()) == (["empty"], "mine")


def test_a_prefix_that_is_used_is_no_place_for_a_table(store: DeltaStore) -> None:
    _write(store, "t", "notes.txt", b"mine")
    with pytest.raises(DirectoryNotEmptyError, match=r"notes\.txt"):
        store.create("t", PEOPLE)
    assert store.table("t").location.filesystem().get_file_info("notes.txt").type == pafs.FileType.File


@pytest.mark.parametrize("path", ["50%", "a[1]", "a#b", "a?b", "a*b", "a\\b"])
def test_a_path_that_readers_break_on(tmp_path: Path, path: str) -> None:
    with pytest.raises(InvalidNameError, match="choose another"):
        DeltaStore(LakehouseConfig(base_path=str(tmp_path / path))).create("t", PEOPLE)


def test_a_directory_that_may_not_be_read(disk: DeltaStore, tmp_path: Path) -> None:
    disk.create("t", PEOPLE)
    disk.append("t", people(1))
    with _unreadable(tmp_path / "lake"):
        for operation in (
            lambda: disk.scan("t").to_pylist(),
            lambda: disk.append("t", people(2)),
            lambda: disk.create("u", PEOPLE),
        ):
            with pytest.raises(StoragePermissionError, match="denied"):
                operation()
    assert disk.table("t").version() == 1


@pytest.mark.object_store
def test_credentials_that_are_wrong(s3: S3Server) -> None:
    options = {**s3.options, "AWS_SECRET_ACCESS_KEY": "wrong"}
    stranger = DeltaStore(LakehouseConfig(base_path=s3.fresh_uri(), storage_options=options))
    for operation in (
        lambda: stranger.scan("t").to_pylist(),
        lambda: stranger.create("t", PEOPLE),
        stranger.tables,
    ):
        with pytest.raises(StoragePermissionError) as caught:
            operation()
        assert "wrong" not in str(caught.value)


@pytest.mark.object_store
def test_a_server_that_does_not_answer(s3: S3Server) -> None:
    options = {**s3.options, "AWS_ENDPOINT_URL": "http://127.0.0.1:1", "max_retries": "0"}
    lost = DeltaStore(LakehouseConfig(base_path=s3.fresh_uri(), storage_options=options))
    for operation in (lambda: lost.scan("t").to_pylist(), lambda: lost.append("t", people(1)), lost.tables):
        with pytest.raises(StorageUnavailableError, match="does not answer"):
            operation()


def test_every_error_says_what_it_is_about(filled: DeltaStore) -> None:
    with pytest.raises(LakehouseError) as caught:
        filled.create("people", pa.schema([("id", pa.int64())]))
    assert isinstance(caught.value, TableExistsError)
    assert caught.value.to_dict()["code"] == "table_exists"


def _write(store: DeltaStore, directory: str, name: str, content: bytes) -> None:
    place = store.base.child(directory)
    if place.is_local:
        place.path.mkdir(parents=True, exist_ok=True)
    with place.filesystem().open_output_stream(name) as stream:
        stream.write(content)


@contextmanager
def _unreadable(directory: Path) -> Generator[None]:
    """Take away our own access to a directory; root has to become somebody else for that."""
    directory.chmod(0)
    is_root = os.geteuid() == 0
    try:
        if is_root:
            os.seteuid(_NOBODY)
        yield
    finally:
        if is_root:
            os.seteuid(0)
        directory.chmod(0o700)
