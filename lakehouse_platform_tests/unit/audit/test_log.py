from __future__ import annotations

import json
import os
import shutil
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from lakehouse_platform.audit.entries import AuditEntry, take
from lakehouse_platform.audit.journal import Journal
from lakehouse_platform.audit.log import AuditLog
from lakehouse_platform.audit.verify import verify
from lakehouse_platform.errors import AuditWriteFailedError, StoragePermissionError, TableNotFoundError
from lakehouse_platform.model.actions import ActionType
from lakehouse_platform.private_files import private_directory
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform_tests.support.full_disk import file_size_limit

READ = AuditEntry(action=ActionType.DATA_READ, user_id="u", row_count=1)
NEVER_S = 3600.0


def chained_ids(store: DeltaStore) -> list[str]:
    rows = store.scan("audit_log", ["sequence", "audit_id"]).to_polars().sort("sequence")
    return rows.get_column("audit_id").to_list()


def left_behind(state: Path, count: int) -> list[str]:
    """Leave entries in a journal as a process does that dies; return their ids."""
    journal = Journal(private_directory(state), capacity_bytes=2**20, room_timeout_s=1)
    recorded = [take(READ) for _ in range(count)]
    journal.append([one.to_bytes() for one in recorded])
    journal.close()
    return [one.audit_id for one in recorded]


def test_what_is_recorded_is_in_the_table_after_a_flush(log: AuditLog) -> None:
    ids = [log.record(READ), *log.record_all([READ, READ])]
    log.flush()
    assert chained_ids(log.store) == ids


def test_nothing_is_touched_before_something_is_recorded(store: DeltaStore, state: Path) -> None:
    AuditLog(store, state).close()
    with pytest.raises(TableNotFoundError):
        store.table("audit_log").version()


def test_no_entries_are_no_work(log: AuditLog) -> None:
    assert log.record_all([]) == []


def test_entries_wait_for_others_and_land_in_one_commit(store: DeltaStore, state: Path) -> None:
    with AuditLog(store, state, interval_s=NEVER_S) as log:
        for _ in range(20):
            log.record(READ)
        with pytest.raises(TableNotFoundError):
            store.table("audit_log").version()
    assert store.table("audit_log").version() == 1
    assert len(chained_ids(store)) == 20


def test_many_entries_are_cut_into_several_commits(store: DeltaStore, state: Path) -> None:
    with AuditLog(store, state, interval_s=NEVER_S, batch_entries=8) as log:
        ids = log.record_all([READ] * 20)
    assert store.table("audit_log").version() == 3
    assert chained_ids(store) == ids


def test_a_full_batch_does_not_wait(store: DeltaStore, state: Path) -> None:
    """With room for one batch alone the second one is taken only after the first has landed."""
    with AuditLog(store, state, interval_s=NEVER_S, batch_entries=100, capacity_mb=1) as log:
        large = AuditEntry(action=ActionType.CUSTOM, user_id="u", details="x" * 4096)
        for _ in range(4):
            log.record_all([large] * 200)
        assert len(chained_ids(store)) >= 200


def test_entries_land_by_themselves_after_the_interval(store: DeltaStore, state: Path) -> None:
    """Each entry needs the room of the one before it, which only the background thread makes."""
    large = AuditEntry(action=ActionType.CUSTOM, user_id="u", details="x" * 4096)
    with AuditLog(store, state, interval_s=0.01, capacity_mb=1) as log:
        for _ in range(3):
            log.record_all([large] * 250)
        assert len(chained_ids(store)) >= 500


def test_threads_that_record_at_once_all_land_once(log: AuditLog) -> None:
    with ThreadPoolExecutor(8) as pool:
        ids = list(pool.map(lambda _: log.record(READ), range(200)))
    log.flush()
    assert sorted(chained_ids(log.store)) == sorted(ids)
    assert verify(log.store.table("audit_log"), log.remembered.read()).is_whole


def test_two_logs_on_one_state_directory_write_one_chain(store: DeltaStore, state: Path) -> None:
    with (
        AuditLog(store, state, interval_s=0) as one,
        AuditLog(store, state, interval_s=0) as two,
        ThreadPoolExecutor(4) as pool,
    ):
        ids = list(pool.map(lambda n: (one if n % 2 else two).record(READ), range(60)))
    assert sorted(chained_ids(store)) == sorted(ids)
    assert verify(store.table("audit_log"), one.remembered.read()).is_whole


def test_a_submitted_entry_is_promised_and_kept(log: AuditLog) -> None:
    promises = [log.submit(READ) for _ in range(300)]
    ids = [promise.result(60) for promise in promises]
    log.flush()
    assert chained_ids(log.store) == ids


def test_a_submitted_entry_cannot_be_taken_back(log: AuditLog) -> None:
    promises = [log.submit(READ) for _ in range(20)]
    assert not any(promise.cancel() for promise in promises)
    ids = [promise.result(60) for promise in promises]
    log.flush()
    assert chained_ids(log.store) == ids


def test_entries_submitted_while_the_log_is_closed_are_kept_or_refused(
    store: DeltaStore, state: Path
) -> None:
    log, promises = AuditLog(store, state), list[Future[str]]()

    def submit() -> None:
        with suppress(AuditWriteFailedError):
            while True:
                promises.append(log.submit(READ))

    with ThreadPoolExecutor(4) as pool:
        for _ in range(4):
            pool.submit(submit)
        log.submit(READ).result(60)
        log.close()
    acknowledged = [promise.result(60) for promise in promises if promise.exception(60) is None]
    assert set(acknowledged) <= set(chained_ids(store))


def test_a_submitted_entry_that_finds_no_room_on_the_disk_is_told(log: AuditLog) -> None:
    large = AuditEntry(action=ActionType.CUSTOM, user_id="u", details="x" * 4096)
    with file_size_limit(100):
        error = log.submit(large).exception(60)
    assert isinstance(error, AuditWriteFailedError)


def test_a_closed_log_takes_and_flushes_nothing(store: DeltaStore, state: Path) -> None:
    log = AuditLog(store, state)
    log.close()
    for use in (lambda: log.record(READ), lambda: log.submit(READ), log.flush):
        with pytest.raises(AuditWriteFailedError, match="closed"):
            use()
    log.close()


def test_what_a_dead_writer_left_is_moved_by_the_next_log(store: DeltaStore, state: Path) -> None:
    ids = left_behind(state, 5) + left_behind(state, 3)
    with AuditLog(store, state) as log:
        log.flush()
        assert sorted(chained_ids(store)) == sorted(ids)
        assert [path.name for path in state.glob("*.journal")] == []


def test_what_a_dead_writer_left_is_moved_even_if_the_next_log_is_never_used(
    store: DeltaStore, state: Path
) -> None:
    ids = left_behind(state, 5)
    AuditLog(store, state).close()
    assert chained_ids(store) == ids


def test_what_a_dead_writer_left_is_moved_once_however_many_logs_begin(
    store: DeltaStore, state: Path
) -> None:
    ids = left_behind(state, 50)
    logs = [AuditLog(store, state, batch_entries=7) for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(AuditLog.flush, logs))
    for log in logs:
        log.close()
    assert chained_ids(store) == ids


def test_logs_one_after_the_other_go_by_one_name_in_the_table(store: DeltaStore, state: Path) -> None:
    ids: list[str] = []
    for _ in range(5):
        with AuditLog(store, state) as log:
            ids.append(log.record(READ))
    assert chained_ids(store) == ids
    actions = [json.loads(line) for line in _commit_lines(store)]
    assert len({action["txn"]["appId"] for action in actions if "txn" in action}) == 1


def _commit_lines(store: DeltaStore) -> list[str]:
    commits = (store.table("audit_log").location.path / "_delta_log").glob("*.json")
    return [line for path in commits for line in path.read_text().splitlines()]


def test_a_state_directory_that_is_put_back_does_not_make_new_entries_pass_for_old_ones(
    store: DeltaStore, state: Path
) -> None:
    ids: list[str] = []
    with AuditLog(store, state) as log:
        ids.append(log.record(READ))
    shutil.copytree(state, state.with_name("backup"))
    with AuditLog(store, state) as log:
        ids += log.record_all([READ] * 5)
    shutil.rmtree(state)
    state.with_name("backup").rename(state)
    with AuditLog(store, state) as log:
        ids += log.record_all([READ] * 3)
    assert chained_ids(store) == ids


def test_a_forked_process_leaves_its_parents_log_alone(log: AuditLog, state: Path) -> None:
    """Before the log's first thread is there, so that the fork itself is safe."""
    child = os.fork()
    if child == 0:
        refused = 0
        for use in (lambda: log.record(READ), lambda: log.submit(READ), log.flush):
            try:
                use()
            except AuditWriteFailedError as error:
                refused += "forked" in error.message
        log.close()
        os._exit(refused)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
    audit_id = log.record(READ)
    log.flush()
    assert chained_ids(log.store) == [audit_id]


def test_while_the_storage_refuses_entries_are_kept_and_a_flush_says_so(
    store: DeltaStore, state: Path
) -> None:
    base = Path(store.config.base_path)
    base.mkdir()
    (base / "audit_log").write_text("a file where the table should be")
    log = AuditLog(store, state)
    ids = log.record_all([READ, READ])
    with pytest.raises(AuditWriteFailedError, match="safe in"):
        log.flush()
    ids.append(log.record(READ))
    (base / "audit_log").unlink()
    log.flush()
    assert chained_ids(store) == ids
    log.close()


def test_a_log_that_cannot_be_moved_at_its_close_is_moved_by_the_next_one(
    store: DeltaStore, state: Path
) -> None:
    base = Path(store.config.base_path)
    base.mkdir()
    (base / "audit_log").write_text("a file where the table should be")
    log = AuditLog(store, state)
    ids = log.record_all([READ, READ])
    with pytest.raises(AuditWriteFailedError, match="safe in"):
        log.close()
    (base / "audit_log").unlink()
    with AuditLog(store, state) as following:
        following.flush()
    assert chained_ids(store) == ids


def test_a_flush_waits_for_what_another_thread_recorded_before_it(log: AuditLog) -> None:
    recorded = threading.Event()

    def write() -> None:
        log.record(READ)
        recorded.set()

    threading.Thread(target=write).start()
    recorded.wait(60)
    log.flush()
    assert len(chained_ids(log.store)) == 1


def test_a_state_directory_that_others_can_write_to_is_refused(store: DeltaStore, state: Path) -> None:
    state.mkdir(parents=True)
    state.chmod(0o777)
    with pytest.raises(StoragePermissionError):
        AuditLog(store, state)


def test_entries_that_wait_for_the_table_are_counted(store: DeltaStore, state: Path) -> None:
    with AuditLog(store, state, interval_s=NEVER_S) as log:
        log.record_all([READ, READ, READ])
        assert log.waiting_count == 3
        log.flush()
        assert log.waiting_count == 0


def test_whether_an_entry_could_be_recorded_is_tried_without_recording_one(log: AuditLog) -> None:
    log.check_writable()
    assert log.waiting_count == 0
    with file_size_limit(0), pytest.raises(AuditWriteFailedError):
        log.check_writable()
    log.record(READ)
    log.close()
    with pytest.raises(AuditWriteFailedError):
        log.check_writable()
