"""Maintenance in the background of one process, for those who run no Dagster."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from lakehouse_platform.errors import LakehouseError
from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.upkeep.policy import Task
from lakehouse_platform.upkeep.tasks import TaskReport, Upkeep, utc_now

_log = logging.getLogger(__name__)

# The cadence is the product's promise; checkpoints go with compaction and log clean-up with vacuum.
CADENCE: Mapping[Task, timedelta] = {
    Task.SESSION_CLEANUP: timedelta(hours=1),
    Task.COMPACT: timedelta(hours=6),
    Task.CHECKPOINT: timedelta(hours=6),
    Task.Z_ORDER: timedelta(days=1),
    Task.VACUUM: timedelta(weeks=1),
    Task.LOG_CLEANUP: timedelta(weeks=1),
}

Wait = Callable[[threading.Event, float], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskStatus:
    """Where one task of the scheduler stands.

    Attributes:
        task: The task.
        next_run: When it runs next.
        last_run: When it ran last, or None.
        last_report: What that run did, or None.
        error: Why that run could not even look at the tables, or None.
    """

    task: Task
    next_run: datetime
    last_run: datetime | None = None
    last_report: TaskReport | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerStatus:
    """Whether the scheduler runs, and where each task stands."""

    running: bool
    tasks: tuple[TaskStatus, ...]


class MaintenanceScheduler:
    """Runs the maintenance tasks at their cadence in one background thread.

    Every task runs once at the start: only due tables are touched, and a process that is restarted daily
    would otherwise never reach its weekly vacuum. Can be used as a context manager.

    Args:
        store: The lakehouse's tables.
        config: Settings to use instead of the store's.
        clock: Tells the time; aware, in UTC.
        wait: Waits until the event is set or the seconds are over; returns whether the event is set.
    """

    def __init__(
        self,
        store: DeltaStore,
        config: LakehouseConfig | None = None,
        *,
        clock: Callable[[], datetime] = utc_now,
        wait: Wait = threading.Event.wait,
    ) -> None:
        store = DeltaStore(config, origin=store.origin) if config is not None else store
        self._upkeep = Upkeep(store, clock=clock)
        self._clock = clock
        self._wait = wait
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._tasks = {task: TaskStatus(task=task, next_run=clock()) for task in CADENCE}

    def __enter__(self) -> MaintenanceScheduler:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start the background thread; does nothing if it runs."""
        with self._lock:
            if self._thread is not None and self._thread.is_alive():
                return
            self._stopping = threading.Event()
            self._thread = threading.Thread(
                target=self._loop, args=(self._stopping,), name="lakehouse-maintenance", daemon=True
            )
            self._thread.start()

    def stop(self, timeout: float | None = None) -> bool:
        """Ask the thread to end after the operation it is in, and wait for it.

        Args:
            timeout: Seconds to wait; None for as long as it takes.

        Returns:
            Whether it has ended.
        """
        with self._lock:
            thread = self._thread
            self._stopping.set()
        if thread is None:
            return True
        thread.join(timeout)
        return not thread.is_alive()

    def run_once(self) -> tuple[TaskReport, ...]:
        """Run every task now, in this thread, whatever its next time is.

        Raises:
            LakehouseError: The tables cannot even be listed.
        """
        reports: list[TaskReport] = []
        for task in CADENCE:
            report = self._upkeep.run(task)
            self._record(task, report=report)
            reports.append(report)
        return tuple(reports)

    def status(self) -> SchedulerStatus:
        """Return where the scheduler stands."""
        with self._lock:
            running = self._thread is not None and self._thread.is_alive() and not self._stopping.is_set()
            return SchedulerStatus(running=running, tasks=tuple(self._tasks.values()))

    def _loop(self, stopping: threading.Event) -> None:
        while not stopping.is_set():
            for task in self._ripe():
                if stopping.is_set():
                    return
                self._attempt(task)
            self._wait(stopping, self._seconds_to_next())

    def _ripe(self) -> list[Task]:
        now = self._clock()
        return [status.task for status in self.status().tasks if status.next_run <= now]

    def _seconds_to_next(self) -> float:
        soonest = min(status.next_run for status in self.status().tasks)
        return max(0.0, (soonest - self._clock()).total_seconds())

    def _attempt(self, task: Task) -> None:
        try:
            self._record(task, report=self._upkeep.run(task))
        except LakehouseError as error:
            _log.warning("Maintenance task %s could not run: %s", task, error)
            self._record(task, error=str(error))
        except Exception as error:  # noqa: BLE001 - the thread must outlive a fault, and say so
            _log.exception("Maintenance task %s could not run", task)
            self._record(task, error=f"{type(error).__name__}: {error}")

    def _record(self, task: Task, *, report: TaskReport | None = None, error: str | None = None) -> None:
        now = self._clock()
        with self._lock:
            self._tasks[task] = replace(
                self._tasks[task],
                last_run=now,
                next_run=now + CADENCE[task],
                last_report=report or self._tasks[task].last_report,
                error=error,
            )
