"""One change, one commit, three outcomes: landed, certainly not landed, unknown."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakehouse_platform.errors import (
    CommitConflictError,
    CommitOutcomeUnknownError,
    DuplicateKeyError,
    InfrastructureError,
    StorageIoError,
    StorageUnavailableError,
)
from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform.store.commit import COMMIT_ID, AppTransaction, Committer
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.store.log import commit_info, list_log, read_commit
from lakehouse_platform.store.table import Table
from lakehouse_platform_tests.support.cutting_proxy import COMMIT, CuttingProxy, cutting_proxy
from lakehouse_platform_tests.support.s3_server import S3Server

SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.string()), ("q", pa.string())])


def ids(table: Table) -> list[int]:
    return sorted(row["id"] for row in table.scan().to_pylist())


def _transaction(table: Table) -> int:
    with table.transaction() as tx:
        tx.delete("id = 1")
        tx.append([{"id": 9}])
    return tx.version


# ── Answers that are lost ─────────────────────────────────────────────────────────────────────────


@pytest.fixture
def proxy(s3: S3Server, tmp_path: Path) -> Iterator[CuttingProxy]:
    with cutting_proxy(s3, tmp_path) as running:
        yield running


@pytest.fixture
def far(proxy: CuttingProxy) -> DeltaStore:
    """A store behind the proxy, with one table of two rows."""
    server = proxy.server
    store = DeltaStore(LakehouseConfig(base_path=server.fresh_uri(), storage_options=dict(server.options)))
    store.create("t", SCHEMA).append([{"id": 1}, {"id": 2}])
    return store


_CHANGES: dict[str, tuple[Callable[[Table], Any], Any, list[int]]] = {
    "append": (lambda t: t.append([{"id": 3}]), None, [1, 2, 3]),
    "delete": (lambda t: t.delete("id = 1").rows_deleted, 1, [2]),
    "update": (lambda t: t.update({"id": "id + 10"}, "id = 1").rows_updated, 1, [2, 11]),
    "merge": (lambda t: t.merge([{"id": 3, "_op": "INSERT"}], on=["id"]).rows_inserted, 1, [1, 2, 3]),
    "overwrite": (lambda t: t.overwrite([{"id": 7}]), None, [7]),
    "overwrite_where": (lambda t: t.overwrite_where("id > 1", [{"id": 8}]), None, [1, 8]),
    "transaction": (_transaction, 2, [2, 9]),
    "restore": (lambda t: t.restore(0), None, []),
    "set_primary_key": (lambda t: t.set_primary_key(["id"]), 2, [1, 2]),
}


@pytest.mark.object_store
@pytest.mark.parametrize("change", _CHANGES)
def test_a_commit_whose_answer_is_lost_is_found_and_not_made_twice(
    proxy: CuttingProxy, far: DeltaStore, change: str
) -> None:
    act, answer, rows = _CHANGES[change]
    table = far.table("t")
    proxy.plan(lose=COMMIT)
    told = act(table)
    assert proxy.lost()
    assert ids(table) == rows
    assert answer is None or told == answer


@pytest.mark.object_store
def test_a_keyed_append_whose_answer_is_lost_does_not_meet_its_own_key(
    proxy: CuttingProxy, far: DeltaStore
) -> None:
    keyed = far.create("k", SCHEMA, primary_key=["id"])
    proxy.plan(lose=COMMIT)
    assert keyed.append([{"id": 1}]) == 1
    assert (proxy.lost(), ids(keyed)) == (True, [1])


@pytest.mark.object_store
def test_a_table_whose_creation_is_not_answered_is_ours(proxy: CuttingProxy, far: DeltaStore) -> None:
    proxy.plan(lose=COMMIT)
    assert far.create("new", SCHEMA).version() == 0
    assert proxy.lost()


@pytest.mark.object_store
def test_an_application_transaction_whose_answer_is_lost_is_written_once(
    proxy: CuttingProxy, far: DeltaStore
) -> None:
    table, once = far.table("t"), AppTransaction("app", 1)
    proxy.plan(lose=COMMIT)
    table.append([{"id": 3}], transaction=once)
    table.append([{"id": 3}], transaction=once)
    assert (proxy.lost(), ids(table)) == (True, [1, 2, 3])


@pytest.mark.object_store
@pytest.mark.parametrize("change", ["append", "delete", "merge", "transaction"])
def test_a_storage_that_dies_after_the_commit_leaves_the_outcome_unknown(
    proxy: CuttingProxy, far: DeltaStore, change: str
) -> None:
    act, _, rows = _CHANGES[change]
    table = far.table("t")
    proxy.plan(lose=COMMIT, dead_after_loss=True)
    with pytest.raises(CommitOutcomeUnknownError) as caught:
        act(table)
    proxy.plan()
    newest = commit_info(read_commit(table.location, table.version()))
    assert newest[COMMIT_ID] == caught.value.details["commit_id"]
    assert ids(table) == rows


@pytest.mark.object_store
@pytest.mark.parametrize("refused", [COMMIT, "PUT .*", ".*"])
def test_a_storage_that_never_took_the_commit_means_that_nothing_was_written(
    proxy: CuttingProxy, far: DeltaStore, refused: str
) -> None:
    table = far.table("t")
    proxy.plan(refuse=refused)
    with pytest.raises((StorageUnavailableError, CommitOutcomeUnknownError)):
        table.append([{"id": 3}])
    proxy.plan()
    assert (ids(table), table.version()) == ([1, 2], 1)
    table.append([{"id": 3}])
    assert ids(table) == [1, 2, 3]


# ── Disks that fail ───────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def near(tmp_path: Path) -> Table:
    """A table on disk that is forced there at each commit."""
    store = DeltaStore(LakehouseConfig(base_path=str(tmp_path / "lake"), durability="fsync"))
    table = store.create("t", SCHEMA, partition_by=["p", "q"])
    table.append([{"id": 1, "p": "a", "q": "b"}])
    return table


@pytest.mark.parametrize("change", ["append", "delete", "merge", "transaction"])
def test_a_log_that_is_no_directory_any_more_means_a_clear_error(near: Table, change: str) -> None:
    log = near.location.path / "_delta_log"
    log.rename(log.with_name("away"))
    log.write_text("in the way")
    with pytest.raises(Exception, match=r"_delta_log|denied|not a|No such|Not a") as caught:
        _CHANGES[change][0](near)
    assert "lakehouse_platform.errors" in type(caught.value).__module__
    log.unlink()
    log.with_name("away").rename(log)
    assert (ids(near), near.version()) == ([1], 1)


def test_a_version_whose_file_cannot_be_made_is_certainly_not_written(near: Table) -> None:
    """A directory stands where the commit file belongs: every attempt fails, whoever runs this test."""
    blocked = near.location.path / "_delta_log" / f"{2:020}.json"
    blocked.mkdir()
    few = Table(
        near.location, LakehouseConfig(base_path=near.config.base_path, commit_retries=1), near.origin
    )
    with pytest.raises((InfrastructureError, CommitConflictError, CommitOutcomeUnknownError)):
        few.append([{"id": 2}])
    blocked.rmdir()
    assert (ids(near), near.version()) == ([1], 1)


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files and directories that were forced to disk."""
    paths: list[Path] = []

    def record(descriptor: int) -> None:
        paths.append(Path(f"/proc/self/fd/{descriptor}").readlink())

    monkeypatch.setattr(os, "fsync", record)
    return paths


def _must_be_synced(table: Table, version: int) -> set[Path]:
    """Return the commit's files and every directory in which it made an entry."""
    root = table.location.path
    added = [action["add"]["path"] for action in read_commit(table.location, version) if "add" in action]
    files = {root / path for path in added} | {root / "_delta_log" / f"{version:020}.json"}
    return files | {parent for file in files for parent in file.parents if parent.is_relative_to(root)}


@pytest.mark.parametrize("change", ["append", "delete", "update", "merge", "overwrite", "transaction"])
def test_a_durable_commit_forces_its_files_and_all_their_directories(
    near: Table, synced: list[Path], change: str
) -> None:
    _CHANGES[change][0](near)
    wanted = _must_be_synced(near, near.version())
    assert wanted <= set(synced)
    assert {stat.S_ISDIR(path.stat().st_mode) for path in wanted} == {True, False}


def test_a_checkpoint_is_forced_to_disk_too(tmp_path: Path, synced: list[Path]) -> None:
    store = DeltaStore(LakehouseConfig(base_path=str(tmp_path), durability="fsync"))
    table = store.create("t", SCHEMA, properties={"delta.checkpointInterval": "1"})
    table.append([{"id": 1}])
    log = table.location.path / "_delta_log"
    assert {log / f"{1:020}.checkpoint.parquet", log / "_last_checkpoint"} <= set(synced)


def test_durability_os_forces_nothing(tmp_path: Path, synced: list[Path]) -> None:
    store = DeltaStore(LakehouseConfig(base_path=str(tmp_path), durability="os"))
    table = store.create("t", SCHEMA)
    table.append([{"id": 1}])
    _transaction(table)
    assert synced == []


def test_a_change_of_nothing_forces_nothing(near: Table, synced: list[Path]) -> None:
    near.delete("id = 99")
    assert synced == []


def test_a_disk_that_does_not_confirm_says_that_the_version_is_there(
    near: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(descriptor: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(StorageIoError, match=r"Version 2 .* is committed") as caught:
        near.append([{"id": 2}])
    assert caught.value.details["version"] == 2
    assert ids(near) == [1, 2]


# ── Application transactions and conflicts ────────────────────────────────────────────────────────


def test_an_older_application_transaction_is_not_written(near: Table) -> None:
    near.append([{"id": 5}], transaction=AppTransaction("app", 5))
    for version in (5, 4):
        assert near.append([{"id": version}], transaction=AppTransaction("app", version)) == 2
    near.append([{"id": 6}], transaction=AppTransaction("app", 6))
    near.append([{"id": 7}], transaction=AppTransaction("other", 1))
    assert ids(near) == [1, 5, 6, 7]


@pytest.mark.parametrize("streamed", [False, True])
def test_an_application_transaction_raced_by_many_is_written_once(near: Table, streamed: bool) -> None:
    rows = pa.table({"id": [2], "p": ["a"], "q": ["b"]})

    def write(_: int) -> int:
        return near.append(rows.to_reader() if streamed else rows, transaction=AppTransaction("app", 1))

    with ThreadPoolExecutor(6) as threads:
        versions = list(threads.map(write, range(6)))
    assert ids(near) == [1, 2]
    assert min(versions) >= 2


def test_the_version_told_is_the_one_that_holds_the_commit(near: Table) -> None:
    def write(number: int) -> tuple[int, int]:
        return number, near.append([{"id": number}])

    with ThreadPoolExecutor(4) as threads:
        told = list(threads.map(write, range(10, 22)))
    assert len({version for _, version in told}) == 12
    for number, version in told:
        assert number in {row["id"] for row in near.scan(version=version).to_pylist()}
        assert number not in {row["id"] for row in near.scan(version=version - 1).to_pylist()}


def test_threads_that_append_one_key_let_one_win(tmp_path: Path) -> None:
    table = DeltaStore(LakehouseConfig(base_path=str(tmp_path), durability="os")).create(
        "k", SCHEMA, primary_key=["id"]
    )

    def write(_: int) -> bool:
        try:
            table.append([{"id": 1}])
        except DuplicateKeyError:
            return False
        return True

    with ThreadPoolExecutor(6) as threads:
        assert sum(threads.map(write, range(6))) == 1
    assert ids(table) == [1]


def test_no_retries_means_one_attempt(near: Table) -> None:
    config = LakehouseConfig(base_path=near.config.base_path, commit_retries=0)
    committer, attempts = Committer(near.location, config, near.origin), []

    def act(table: Any, stamp: Any) -> None:
        attempts.append(table.version())
        near.append([{"id": 2}])
        table.delete("id = 1", commit_properties=stamp(exact=True))

    with pytest.raises(CommitConflictError):
        committer.commit(act)
    assert attempts == [1]
    assert ids(near) == [1, 2]


def test_a_conflict_is_repeated_on_the_newest_version(near: Table) -> None:
    committer, attempts = Committer(near.location, near.config, near.origin), []

    def act(table: Any, stamp: Any) -> None:
        attempts.append(table.version())
        if len(attempts) == 1:
            near.update({"q": "'c'"})
        table.delete("id = 1", commit_properties=stamp())

    assert committer.commit(act).version == 3
    assert attempts == [1, 2]
    assert list_log(near.location).last == 3
