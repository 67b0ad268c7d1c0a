"""Where tables stand: every way to write a path, and no way to show a secret."""

from __future__ import annotations

import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.fs as pafs
import pytest

from lakehouse_platform.errors import InvalidNameError
from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.store.engine import clean_text
from lakehouse_platform.store.location import Location, looks_like_location
from lakehouse_platform_tests.support.s3_server import S3Server

IDS = pa.schema([("id", pa.int64())])


@pytest.mark.parametrize(
    "written",
    [
        "{d}/x",
        "{d}/x/",
        "{d}//x",
        "{d}/./x",
        "{d}/y/../x",
        "file://{d}/x",
        "file://{d}/x/",
        "file://localhost{d}/x",
    ],
)
def test_every_way_to_write_a_local_path_means_one_place(tmp_path: Path, written: str) -> None:
    place = Location.parse(written.format(d=tmp_path))
    assert (place.uri, place.name, place.is_local, place.path) == (f"{tmp_path}/x", "x", True, tmp_path / "x")


def test_relative_paths_and_home_become_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert Location.parse("x").uri == f"{tmp_path}/x"
    assert Location.parse(".").uri == str(tmp_path)
    assert Location.parse("~/x").uri == f"{tmp_path}/home/x"
    assert Location.parse(Path("x") / "y").uri == f"{tmp_path}/x/y"


def test_a_uri_may_encode_what_a_path_may_hold(tmp_path: Path) -> None:
    assert Location.parse((tmp_path / "a b ü").as_uri()).uri == f"{tmp_path}/a b ü"


def test_dots_behind_a_link_go_where_the_system_goes(tmp_path: Path) -> None:
    (tmp_path / "real" / "deep").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real" / "deep")
    assert Location.parse(f"{tmp_path}/link/../x").uri == f"{tmp_path}/real/x"
    assert Location.parse(f"{tmp_path}/link/x").uri == f"{tmp_path}/link/x"


def test_the_root_has_children_too() -> None:
    assert Location.parse("/").child("t").uri == "/t"


@pytest.mark.parametrize("base", ["a b", "ü🙂", "it's", "a~b+c&d", "x=1,y"])
def test_tables_live_under_odd_directories(tmp_path: Path, base: str) -> None:
    store = DeltaStore(LakehouseConfig(base_path=str(tmp_path / base)))
    store.create("t", IDS).append([{"id": 1}, {"id": 2}])
    store.delete("t", "id = 1")
    assert store.tables() == ["t"]
    assert store.scan("t").to_pylist() == [{"id": 2}]
    assert (store.table("t").history(1)[0].version, store.diff("t", 1, 2).num_rows) == (2, 1)


def test_a_table_behind_a_link_is_the_table(tmp_path: Path) -> None:
    store = DeltaStore(LakehouseConfig(base_path=str(tmp_path / "real")))
    store.create("t", IDS).append([{"id": 1}])
    (tmp_path / "link").symlink_to(tmp_path / "real")
    linked = DeltaStore(LakehouseConfig(base_path=str(tmp_path / "link")))
    assert linked.tables() == ["t"]
    with linked.transaction("t") as tx:
        tx.append([{"id": 2}])
        tx.delete("id = 1")
    assert store.scan("t").to_pylist() == [{"id": 2}]


@pytest.mark.parametrize("letter", ["%", "\\", "[", "]", "#", "?", "*", "\n", "\x00", "\x1f"])
def test_letters_that_readers_break_on_are_refused(letter: str) -> None:
    for text in (f"/data/a{letter}b", f"s3://bucket/a{letter}b"):
        with pytest.raises(InvalidNameError):
            Location.parse(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "~nobody-here/x",
        "file://elsewhere/x",
        "s3://",
        "s3:///x",
        "s3://b/a/../c",
        "s3://b/..",
        "s3://b/./c",
        "s3://b/a//c",
    ],
)
def test_what_names_no_one_place_is_refused(text: str) -> None:
    with pytest.raises(InvalidNameError):
        Location.parse(text)


@pytest.mark.parametrize(
    ("text", "uri", "name"),
    [
        ("s3://bucket/a/b/", "s3://bucket/a/b", "b"),
        ("S3://bucket/a", "s3://bucket/a", "a"),
        ("s3://bucket", "s3://bucket", "bucket"),
        ("az://box/t", "az://box/t", "t"),
        ("abfss://box@acc.dfs.core.windows.net/l/t", "abfss://box@acc.dfs.core.windows.net/l/t", "t"),
    ],
)
def test_uris_of_object_stores(text: str, uri: str, name: str) -> None:
    place = Location.parse(text)
    assert (place.uri, place.name, place.is_local) == (uri, name, False)
    assert place.child("x").uri == f"{uri}/x"


@pytest.mark.parametrize(
    "text",
    [
        "s3://KEY:SECRET@bucket/x",
        "s3://SECRET@bucket/x",
        "https://user:SECRET@host/x",
        "abfss://box:SECRET@acc.dfs.core.windows.net/x",
        "az://box/x?sv=1&sig=SECRET",
        "ftp://user:SECRET@host/x",
    ],
)
def test_credentials_in_a_uri_are_refused_and_never_shown(text: str) -> None:
    with pytest.raises(InvalidNameError) as caught:
        Location.parse(text)
    assert "SECRET" not in str(caught.value) + repr(caught.value.details)


def test_options_are_never_shown() -> None:
    place = Location.parse("s3://bucket/x", {"AWS_SECRET_ACCESS_KEY": "SECRET"})
    assert "SECRET" not in repr(place) + str(place) + repr(place.child("y"))
    assert place.storage_options == {"AWS_SECRET_ACCESS_KEY": "SECRET"}


@pytest.mark.parametrize("name", ["sig", "X-Amz-Signature", "x-amz-security-token"])
def test_signatures_in_the_engines_texts_are_hidden(name: str) -> None:
    shown = clean_text(OSError(f"Error performing GET https://h/c?comp=list&{name}=SECRET%2B=&se=1 in 3s"))
    assert "SECRET" not in shown
    assert "comp=list" in shown


@pytest.mark.parametrize(
    ("text", "expected"),
    [("users", False), ("a.b-c", False), ("./users", True), ("..", True), ("~", True), ("s3://b/t", True)],
)
def test_names_and_places_are_told_apart(text: str, expected: bool) -> None:
    assert looks_like_location(text) is expected


@pytest.mark.object_store
def test_an_object_store_is_a_filesystem_to_read_and_write(s3: S3Server) -> None:
    place = Location(s3.fresh_uri(), s3.options)
    with place.filesystem().open_output_stream("a b/ü.txt") as stream:
        stream.write(b"one")
        stream.write(memoryview(b"two"))
    with place.child("a b").filesystem().open_input_stream("ü.txt") as stream:
        assert stream.read() == b"onetwo"
    found = place.filesystem().get_file_info(pafs.FileSelector("", recursive=True))
    assert [info.path for info in found if info.type == pafs.FileType.File] == ["a b/ü.txt"]


@pytest.mark.object_store
def test_tables_of_an_object_store_are_listed(s3: S3Server) -> None:
    store = DeltaStore(LakehouseConfig(base_path=s3.fresh_uri(), storage_options=dict(s3.options)))
    assert store.tables() == []
    for name in ("b", "a", "c.d"):
        store.create(name, IDS)
    with store.base.filesystem().open_output_stream("no_table/readme.txt") as stream:
        stream.write(b"x")
    assert store.tables() == ["a", "b", "c.d"]
    store.drop("b")
    assert store.tables() == ["a", "c.d"]


def test_a_directory_that_comes_and_goes_can_be_listed(tmp_path: Path) -> None:
    place, ended = tmp_path / "t", threading.Event()

    def come_and_go() -> None:
        while not ended.is_set():
            place.mkdir()
            place.rmdir()

    other = threading.Thread(target=come_and_go)
    other.start()
    try:
        assert not any(Location.parse(tmp_path).entries("t") for _ in range(10_000))
    finally:
        ended.set()
        other.join()
