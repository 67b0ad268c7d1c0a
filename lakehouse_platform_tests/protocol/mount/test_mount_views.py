"""What each file of a table shows."""

from __future__ import annotations

import json

import pytest

from lakehouse_platform.nfs.operations import FileType
from lakehouse_platform_tests.protocol.mount.conftest import CSV, Served
from lakehouse_platform_tests.support.nfs_client import NfsClient
from lakehouse_platform_tests.support.tables import PEOPLE, people

JSON_ROWS = [{"id": n, "name": f"n{n}", "age": 30} for n in (1, 2, 3)]
EVERYTHING = [
    "data/data.csv", "data/data.json", "data/data.jsonl", "schema.sql", ".history", ".stats", ".query", ".last_error",
    ".versions/1/data.csv", ".versions/1/data.json", ".versions/1/data.jsonl", ".versions/1/schema.sql",
]  # fmt: skip


@pytest.mark.parametrize("path", EVERYTHING)
def test_a_file_has_exactly_the_size_that_is_told(client: NfsClient, path: str) -> None:
    handle = client.walk(f"people/{path}")
    assert client.getattr(handle).size == len(client.read_all(handle)) > 0
    assert client.getattr(handle).type is FileType.REGULAR


def test_csv_has_a_header_and_a_line_for_each_row(client: NfsClient, view: bytes) -> None:
    assert client.read_all(view) == CSV


@pytest.mark.parametrize("count", [1, 3, 7, 36, 37, 1 << 20])
def test_a_file_reads_the_same_in_pieces_of_any_size(client: NfsClient, view: bytes, count: int) -> None:
    assert client.read_all(view, count) == CSV


def test_reading_behind_the_end_gives_nothing_and_says_that_it_is_the_end(
    client: NfsClient, view: bytes
) -> None:
    reply = client.read(view, 1000, 10)
    assert (reply.data, reply.eof) == (b"", True)


def test_json_is_one_array_of_objects(client: NfsClient) -> None:
    assert json.loads(client.read_all(client.walk("people/data/data.json"))) == JSON_ROWS


def test_json_lines_has_an_object_on_each_line(client: NfsClient) -> None:
    lines = client.read_all(client.walk("people/data/data.jsonl")).splitlines()
    assert [json.loads(line) for line in lines] == JSON_ROWS


def test_data_files_are_shown_byte_by_byte(served: Served, client: NfsClient, data: bytes) -> None:
    names = [entry.name for entry in client.readdir(data) if entry.name.endswith(b".parquet")]
    assert len(names) == len(served.table.data_files())
    stored = served.table.location.path / served.table.data_files()[0].path
    assert client.read_all(client.lookup(data, names[0])) == stored.read_bytes()


def test_a_partitioned_data_file_has_its_path_as_its_name(served: Served, client: NfsClient) -> None:
    parted = served.lake.store.create("parted", PEOPLE, partition_by=["age"])
    parted.append(people(1))
    names = [entry.name for entry in client.readdir(client.walk("parted/data"))]
    assert [name for name in names if name.startswith(b"age=30%2F")]


def test_the_schema_is_a_statement_that_makes_the_table(client: NfsClient) -> None:
    text = client.read_all(client.walk("people/schema.sql"))
    assert text.startswith(b"CREATE TABLE people (\n  id BIGINT")


def test_the_history_has_a_line_for_each_version_newest_first(client: NfsClient) -> None:
    lines = client.read_all(client.walk("people/.history")).decode().splitlines()
    assert [line.split("\t")[0] for line in lines] == ["1", "0"]
    assert [line.split("\t")[2] for line in lines] == ["WRITE", "CREATE TABLE"]
    assert lines[0].split("\t")[4] == "owner"


def test_the_statistics_are_those_of_the_newest_version(served: Served, client: NfsClient) -> None:
    served.table.append([{"id": 4, "name": None, "age": 1}])
    stats = json.loads(client.read_all(client.walk("people/.stats")))
    assert (stats["version"], stats["rows"], stats["files"]) == (2, 4, 2)
    assert stats["columns"]["name"]["nulls"] == 1


def test_attributes_of_what_was_never_rendered_are_left_out_of_listings(
    client: NfsClient, data: bytes
) -> None:
    before = {entry.name: entry.attributes for entry in client.readdirplus(data)}
    assert before[b"data.csv"] is None
    client.getattr(client.lookup(data, "data.csv"))
    after = {entry.name: entry.attributes for entry in client.readdirplus(data)}
    told = after[b"data.csv"]
    assert told
    assert told.size == len(CSV)


def test_files_keep_their_numbers_in_every_mount(served: Served, client: NfsClient, data: bytes) -> None:
    other = served.client(profile="bulk")
    mine = {entry.name: entry.fileid for entry in client.readdir(data)}
    theirs = {entry.name: entry.fileid for entry in other.readdir(other.walk("people/data"))}
    assert mine == theirs
    assert client.getattr(data).fsid != other.getattr(other.walk("people/data")).fsid


@pytest.mark.parametrize("path", ["", "people", "people/data", "people/.versions", "people/.versions/0"])
def test_a_listed_name_leads_to_the_listed_file(client: NfsClient, path: str) -> None:
    directory = client.walk(path)
    for entry in client.readdirplus(directory):
        found = client.getattr(client.lookup(directory, entry.name))
        assert found.fileid == entry.fileid


def test_a_listing_goes_on_after_any_entry(client: NfsClient, data: bytes) -> None:
    for number in range(20):
        client.create(data, f"scratch-{number}")
    names = [entry.name for entry in client.readdir(data, count=512)]
    assert len(names) == len(set(names)) == 20 + 2 + 4


def test_a_table_can_be_mounted_on_its_own(served: Served) -> None:
    client = served.connect()
    client.mount(served.server.exports["sync"].replace("/lake", "/people"))
    assert client.read_all(client.walk("data/data.csv")) == CSV


def test_a_directory_below_an_export_can_be_mounted(served: Served) -> None:
    client = served.client(below="/people/data")
    assert client.read_all(client.walk("data.csv")) == CSV


def test_a_directory_of_many_entries_is_listed_once_each_in_any_page_size(
    served: Served, client: NfsClient, data: bytes
) -> None:
    for number in range(300):
        client.create(data, f"scratch-{number:03}")
    for number in range(10, 20):
        served.table.append(people(number))
    expected = {
        b"data.csv",
        b"data.json",
        b"data.jsonl",
        *(b"scratch-%03d" % number for number in range(300)),
    }
    expected |= {file.path.encode() for file in served.table.data_files()}
    for size in (1024, 1 << 16):
        names = [entry.name for entry in client.readdirplus(data, dircount=size, maxcount=size)]
        assert (len(names), set(names)) == (len(expected) + 2, expected | {b".", b".."})
    versions = [entry.name for entry in client.readdir(client.walk("people/.versions"), count=256)]
    assert versions == [b".", b"..", *(b"%d" % number for number in range(12))]
