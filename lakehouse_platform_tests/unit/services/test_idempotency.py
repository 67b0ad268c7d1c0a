"""Writes that are made once: the commit itself tells that the request was served."""

from __future__ import annotations

import hmac
import threading
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from lakehouse_platform.errors import CommitConflictError, IdempotencyKeyReusedError, InvalidArgumentError
from lakehouse_platform.services.idempotency import Request, Served
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.store.table import Table

SCHEMA = pa.schema([("id", pa.int64())])


@pytest.fixture
def table(store: DeltaStore) -> Table:
    return store.create("rides", SCHEMA)


def said(text: str) -> Callable[[hmac.HMAC], None]:
    return lambda digest: digest.update(text.encode())


def request(key: str = "key-1", actor: str = "u1", what: str = "one row") -> Request:
    return Request.of(key, actor, "rides", said(what))


def append(table: Table) -> int:
    return table.append([{"id": 1}])


def version(served: Served) -> int:
    return served.version


def test_a_request_is_served_once(table: Table) -> None:
    assert request().run(table, append, version) == (1, False)
    table.append([{"id": 7}])
    assert request().run(table, append, version) == (1, True)
    assert table.scan().to_arrow().num_rows == 2


@pytest.mark.parametrize(
    "other", [request(key="key-2"), request(actor="u2")], ids=["another key", "another actor"]
)
def test_another_request_is_another_one(table: Table, other: Request) -> None:
    request().run(table, append, version)
    assert other.run(table, append, version) == (2, False)


def test_a_key_is_not_used_for_something_else(table: Table) -> None:
    request().run(table, append, version)
    with pytest.raises(IdempotencyKeyReusedError, match="another request"):
        request(what="two rows").run(table, append, version)
    assert table.version() == 1


def test_a_request_that_changed_nothing_is_served_again(table: Table) -> None:
    assert request().run(table, lambda one: one.append(SCHEMA.empty_table()), version) == (0, False)
    assert request().run(table, append, version) == (1, False)


def test_a_request_that_failed_can_be_sent_again(table: Table) -> None:
    def fail(_: Table) -> int:
        raise CommitConflictError("another writer was first")

    with pytest.raises(CommitConflictError):
        request().run(table, fail, version)
    assert request().run(table, append, version) == (1, False)


def test_of_two_attempts_at_the_same_time_one_writes(table: Table) -> None:
    ready = threading.Barrier(4)
    results: list[tuple[int, bool]] = []

    def attempt() -> None:
        def act(one: Table) -> int:
            ready.wait(30)
            return append(one)

        results.append(request().run(table, act, version))

    threads = [threading.Thread(target=attempt) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == [(1, False), (1, True), (1, True), (1, True)]
    assert table.scan().to_arrow().num_rows == 1


def test_two_different_requests_with_one_key_at_the_same_time_are_not_both_served(table: Table) -> None:
    def act(one: Table) -> int:
        request(what="two rows").run(table, append, version)
        return append(one)

    with pytest.raises(IdempotencyKeyReusedError):
        request().run(table, act, version)
    assert table.scan().to_arrow().num_rows == 1


def test_a_request_stays_served_when_its_log_entry_is_gone(table: Table) -> None:
    request().run(table, append, version)
    table.append([{"id": 7}])
    table.checkpoint()
    for number in (0, 1):
        (Path(table.location.uri) / "_delta_log" / f"{number:020}.json").unlink()
    assert request().run(table, append, version) == (2, True)


def test_neither_key_nor_content_stands_in_the_log(table: Table) -> None:
    Request.of("the-secret-key", "u1", "rides", said("ada@example.com")).run(table, append, version)
    log = (Path(table.location.uri) / "_delta_log" / f"{1:020}.json").read_text()
    assert "lakehouse-request-" in log
    assert "the-secret-key" not in log
    assert "ada" not in log
    # The same content under another key has another digest: nothing can be looked up by it.
    assert Request.of("a", "u", "t", said("x")).digest != Request.of("b", "u", "t", said("x")).digest


@pytest.mark.parametrize("key", ["", "x" * 256, "a b", "a\n", "ü", "\0"])
def test_a_key_is_visible_ascii(key: str) -> None:
    with pytest.raises(InvalidArgumentError, match="255"):
        request(key=key)


def test_no_two_actors_tables_and_keys_run_into_each_other() -> None:
    one = Request.of("key", 'u","t', "x", said(""))
    other = Request.of("key", "u", 't","x', said(""))
    assert one.app_id != other.app_id
