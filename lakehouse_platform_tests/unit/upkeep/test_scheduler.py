"""The background scheduler: its cadence, how it stops, what survives a failure. No test waits for time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.upkeep.policy import Task
from lakehouse_platform.upkeep.scheduler import CADENCE, MaintenanceScheduler
from lakehouse_platform_tests.unit.upkeep.builders import break_log, scattered

START = datetime(2026, 3, 1, tzinfo=UTC)


class FakeTime:
    """A clock that moves only while the scheduler waits; it stops the scheduler at the end."""

    def __init__(self, length: timedelta) -> None:
        self.now = START
        self._end = START + length
        self.waits: list[float] = []
        self.over = threading.Event()

    def clock(self) -> datetime:
        return self.now

    def wait(self, stopping: threading.Event, seconds: float) -> bool:
        self.waits.append(seconds)
        if self.now + timedelta(seconds=seconds) > self._end:
            self.over.set()
            return stopping.wait()
        self.now += timedelta(seconds=seconds)
        return stopping.is_set()


Run = Callable[[timedelta], tuple[MaintenanceScheduler, FakeTime]]


@pytest.fixture
def run_for(store: DeltaStore) -> Run:
    """Run a scheduler for a length of fake time and stop it."""

    def run(length: timedelta) -> tuple[MaintenanceScheduler, FakeTime]:
        time = FakeTime(length)
        scheduler = MaintenanceScheduler(store, clock=time.clock, wait=time.wait)
        with scheduler:
            assert time.over.wait(60)
        return scheduler, time

    return run


def runs(scheduler: MaintenanceScheduler) -> dict[Task, datetime | None]:
    return {status.task: status.last_run for status in scheduler.status().tasks}


def test_the_cadence_is_hourly_six_hourly_daily_and_weekly() -> None:
    assert CADENCE[Task.SESSION_CLEANUP] == timedelta(hours=1)
    assert CADENCE[Task.COMPACT] == timedelta(hours=6)
    assert CADENCE[Task.Z_ORDER] == timedelta(days=1)
    assert CADENCE[Task.VACUUM] == timedelta(weeks=1)
    assert set(CADENCE) == set(Task)


def test_every_task_runs_at_the_start_and_then_at_its_own_pace(run_for: Run) -> None:
    scheduler, time = run_for(timedelta(hours=25, minutes=30))

    assert runs(scheduler) == {
        Task.SESSION_CLEANUP: START + timedelta(hours=25),
        Task.COMPACT: START + timedelta(hours=24),
        Task.CHECKPOINT: START + timedelta(hours=24),
        Task.Z_ORDER: START + timedelta(hours=24),
        Task.VACUUM: START,
        Task.LOG_CLEANUP: START,
    }
    assert time.waits[:3] == [3600.0, 3600.0, 3600.0]


def test_due_tables_are_done_in_the_background(store: DeltaStore, run_for: Run) -> None:
    scattered(store, "people", files=6)
    scheduler, _ = run_for(timedelta(minutes=1))
    compaction = next(status for status in scheduler.status().tasks if status.task is Task.COMPACT)

    assert compaction.last_report is not None
    assert [outcome.table for outcome in compaction.last_report.touched] == ["people"]
    assert len(store.table("people").data_files()) == 1


def test_a_broken_table_does_not_end_the_scheduler(store: DeltaStore, run_for: Run) -> None:
    scattered(store, "people", files=6)
    break_log(store, "people")
    scheduler, _ = run_for(timedelta(hours=7))

    assert runs(scheduler)[Task.COMPACT] == START + timedelta(hours=6)


def test_a_failure_is_told_in_the_status_and_the_task_tried_again(store: DeltaStore) -> None:
    in_the_way = Path(store.base.uri)
    in_the_way.symlink_to(in_the_way)  # a loop, which the operating system refuses to follow
    time = FakeTime(timedelta(hours=2))
    errors: list[str | None] = []

    def wait(stopping: threading.Event, seconds: float) -> bool:
        errors.append(scheduler.status().tasks[0].error)
        in_the_way.unlink(missing_ok=True)
        return time.wait(stopping, seconds)

    scheduler = MaintenanceScheduler(store, clock=time.clock, wait=wait)
    with scheduler:
        assert time.over.wait(60)

    assert errors[0] is not None
    assert "Reading or writing" in errors[0]
    assert errors[1:] == [None, None]


def test_start_and_stop_can_be_repeated_and_leave_no_thread(store: DeltaStore) -> None:
    scheduler = MaintenanceScheduler(store)
    assert not scheduler.status().running
    for _ in range(3):
        scheduler.start()
        scheduler.start()
        assert scheduler.status().running
        assert scheduler.stop(timeout=60)
        assert not scheduler.status().running

    assert not [thread for thread in threading.enumerate() if thread.name == "lakehouse-maintenance"]


def test_stop_before_start_is_harmless(store: DeltaStore) -> None:
    assert MaintenanceScheduler(store).stop()


def test_run_once_runs_every_task_now_and_returns_the_reports(store: DeltaStore) -> None:
    scattered(store, "people", files=6)
    reports = MaintenanceScheduler(store).run_once()

    assert [report.task for report in reports] == list(CADENCE)
    assert [outcome.table for outcome in reports[1].touched] == ["people"]


def test_settings_given_to_the_scheduler_replace_the_stores(store: DeltaStore) -> None:
    scattered(store, "people", files=6)
    strict = store.config.model_copy(update={"compact_min_small_files": 100})
    reports = MaintenanceScheduler(store, strict).run_once()

    assert reports[1].touched == ()
