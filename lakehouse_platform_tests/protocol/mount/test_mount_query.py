"""SQL through files."""

from __future__ import annotations

import json

import pytest

from lakehouse_platform.nfs.operations import Stable
from lakehouse_platform_tests.protocol.mount.conftest import Served
from lakehouse_platform_tests.support.nfs_client import NfsClient, NfsStatusError
from lakehouse_platform_tests.support.tables import PEOPLE, people


@pytest.fixture
def query(client: NfsClient) -> bytes:
    """The handle of `.query`."""
    return client.walk("people/.query")


@pytest.fixture
def queries(client: NfsClient) -> bytes:
    """The handle of `.query.d`."""
    return client.walk("people/.query.d")


def test_without_a_query_the_file_tells_how_to_use_it(client: NfsClient, query: bytes) -> None:
    assert b"SELECT" in client.read_all(query)


def test_the_result_is_there_when_the_write_is_answered(client: NfsClient, query: bytes) -> None:
    before = client.getattr(query)
    client.truncate(query, 0)
    reply = client.write(query, 0, b"SELECT name FROM data WHERE id = 2\n")
    assert reply.attributes is None
    assert client.read_all(query) == b"name\nn2\n"
    after = client.getattr(query)
    assert (after.size, after.fileid) == (len(b"name\nn2\n"), before.fileid)
    assert after.ctime_ns > before.ctime_ns


def test_a_query_sent_in_unstable_pieces_is_run_by_the_commit(client: NfsClient, query: bytes) -> None:
    client.truncate(query, 0)
    client.write(query, 7, b"count(*) AS n FROM people", Stable.UNSTABLE)
    client.write(query, 0, b"SELECT ", Stable.UNSTABLE)
    client.commit(query)
    assert client.read_all(query) == b"n\n3\n"


def test_a_query_appended_to_the_last_result_is_a_query_of_its_own(client: NfsClient, query: bytes) -> None:
    client.truncate(query, 0)
    client.write(query, 0, b"SELECT 1 AS one")
    client.write(query, 0, b"one\n1\nSELECT 2 AS two")
    assert client.read_all(query) == b"two\n2\n"
    client.write(query, len(b"two\n2\n"), b"SELECT 3 AS three")
    assert client.read_all(query) == b"three\n3\n"


@pytest.mark.parametrize(
    "text",
    [b"SELECT nope FROM data", b"DELETE FROM data", b"SELECT 1; SELECT 2", b"\xff\xfe", b"COPY data TO 'x'"],
)
def test_a_query_that_fails_fails_its_write_and_the_file_says_why(
    client: NfsClient, query: bytes, text: bytes
) -> None:
    client.truncate(query, 0)
    with pytest.raises(NfsStatusError, match="INVAL"):
        client.write(query, 0, text)
    message = client.read_all(query)
    assert message
    assert message.strip() in client.read_all(client.walk("people/.last_error"))


def test_a_query_that_fails_at_its_commit_is_an_input_output_error(client: NfsClient, query: bytes) -> None:
    client.truncate(query, 0)
    client.write(query, 0, b"SELECT nope", Stable.UNSTABLE)
    with pytest.raises(NfsStatusError, match="IO"):
        client.commit(query)


def test_each_mount_sees_its_own_result(served: Served, client: NfsClient, query: bytes) -> None:
    other = served.client()
    client.write(query, 0, b"SELECT 1 AS mine")
    assert b"SELECT" in other.read_all(other.walk("people/.query"))
    assert client.read_all(query) == b"mine\n1\n"


def test_tables_beside_it_can_be_joined(served: Served, client: NfsClient, query: bytes) -> None:
    served.lake.store.create("towns", PEOPLE).append(people(3))
    client.truncate(query, 0)
    client.write(query, 0, b"SELECT p.id FROM data p JOIN towns t ON p.id = t.id")
    assert client.read_all(query) == b"id\n3\n"


def test_system_tables_are_neither_shown_nor_queried(client: NfsClient, query: bytes) -> None:
    assert [entry.name for entry in client.readdir(client.root)] == [b".", b"..", b"people"]
    for name in ("users", "sessions", "audit_log", "user_actions", "grants", "api_keys"):
        with pytest.raises(NfsStatusError, match="NOENT"):
            client.walk(name)
        client.truncate(query, 0)
        with pytest.raises(NfsStatusError):
            client.write(query, 0, f"SELECT * FROM {name}".encode())


def test_a_query_too_long_is_refused(client: NfsClient, query: bytes) -> None:
    client.truncate(query, 0)
    with pytest.raises(NfsStatusError, match="FBIG"):
        client.write(query, 1 << 20, b"SELECT 1")


def test_a_file_of_sql_gets_its_results_beside_it(client: NfsClient, queries: bytes) -> None:
    handle = client.create(queries, "first.sql")
    client.write(handle, 0, b"SELECT id FROM data ORDER BY id LIMIT 1")
    names = {entry.name for entry in client.readdir(queries)}
    assert names == {b".", b"..", b"first.sql", b"first.csv", b"first.json"}
    assert client.read_all(client.lookup(queries, "first.csv")) == b"id\n1\n"
    assert json.loads(client.read_all(client.lookup(queries, "first.json"))) == [{"id": 1}]
    assert client.read_all(handle) == b"SELECT id FROM data ORDER BY id LIMIT 1"


def test_a_file_of_wrong_sql_gets_its_error_in_place_of_results(client: NfsClient, queries: bytes) -> None:
    handle = client.create(queries, "q.sql")
    client.write(handle, 0, b"SELECT 1 AS a")
    client.truncate(handle, 0)
    client.write(handle, 0, b"SELECT nope FROM data")
    names = {entry.name for entry in client.readdir(queries)}
    assert names == {b".", b"..", b"q.sql", b"q.err"}
    assert b"nope" in client.read_all(client.lookup(queries, "q.err"))


def test_a_file_that_is_moved_in_is_run(client: NfsClient, queries: bytes) -> None:
    table = client.walk("people")
    handle = client.create(table, "q.tmp")
    client.write(handle, 0, b"SELECT 5 AS five")
    client.rename(table, "q.tmp", queries, "q.sql")
    assert client.read_all(client.lookup(queries, "q.csv")) == b"five\n5\n"


def test_columns_of_one_name_are_in_the_csv_and_the_error_says_why_there_is_no_json(
    client: NfsClient, query: bytes, queries: bytes
) -> None:
    text = b"SELECT a.id, b.id FROM data a JOIN people b ON a.id + 1 = b.id WHERE a.id = 1"
    client.truncate(query, 0)
    client.write(query, 0, text)
    assert client.read_all(query) == b"id,id\n1,2\n"
    client.write(client.create(queries, "q.sql"), 0, text)
    names = {entry.name for entry in client.readdir(queries)}
    assert names == {b".", b"..", b"q.sql", b"q.csv", b"q.err"}
    assert client.read_all(client.lookup(queries, "q.csv")) == b"id,id\n1,2\n"
    assert b" AS" in client.read_all(client.lookup(queries, "q.err"))
