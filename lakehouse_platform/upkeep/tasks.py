"""Runs maintenance on the tables that are due, one table's failure never stopping the others."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from lakehouse_platform.errors import LakehouseError, TableNotFoundError
from lakehouse_platform.model.results import DeleteResult, OptimizeResult, VacuumResult
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.upkeep.facts import expired_sessions, gather_facts
from lakehouse_platform.upkeep.policy import SESSIONS_TABLE, Due, TableFacts, Task, decide

_log = logging.getLogger(__name__)

# A checkpoint returns its version, a log clean-up the number of files it removed.
Result = DeleteResult | OptimizeResult | VacuumResult | int | None
Act = Callable[[], Result]
Surround = Callable[[Task, str, Act], Result]


def utc_now() -> datetime:
    """Return the present instant."""
    return datetime.now(UTC)


def delete_expired(store: DeltaStore, now: datetime) -> DeleteResult:
    """Delete the sessions past their end."""
    return store.table(SESSIONS_TABLE).delete(expired_sessions(now))


def _at_once(_task: Task, _table: str, act: Act) -> Result:
    return act()


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOutcome:
    """What a task did to one table.

    Attributes:
        table: The table.
        due: The decision it went by; None if the facts could not be gathered.
        before: The facts before; None if they could not be gathered.
        after: The facts after, if the table was touched.
        result: What the store's operation returned.
        error: Why it failed, or None.
    """

    table: str
    due: Due | None = None
    before: TableFacts | None = None
    after: TableFacts | None = None
    result: Result = None
    error: Exception | None = None

    @property
    def touched(self) -> bool:
        """Whether the operation ran and ended well."""
        return self.after is not None

    @property
    def summary(self) -> str:
        """One line for a log or a list."""
        if self.error is not None:
            return f"{self.table}: failed: {self.error}"
        reason = self.due.reason if self.due else ""
        return f"{self.table}: {'done' if self.touched else 'left alone'}. {reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskReport:
    """One run of one task over a lakehouse.

    Attributes:
        task: What ran.
        started: When.
        finished: When it ended.
        dry_run: Whether it only decided and changed nothing.
        outcomes: One for each table, in name order.
    """

    task: Task
    started: datetime
    finished: datetime
    dry_run: bool
    outcomes: tuple[TableOutcome, ...]

    @property
    def touched(self) -> tuple[TableOutcome, ...]:
        """The tables that were changed."""
        return tuple(outcome for outcome in self.outcomes if outcome.touched)

    @property
    def failures(self) -> tuple[TableOutcome, ...]:
        """The tables on which the task failed."""
        return tuple(outcome for outcome in self.outcomes if outcome.error is not None)

    @property
    def summary(self) -> str:
        """One line: how many tables were looked at, due, changed and failed."""
        due = sum(outcome.due is not None and outcome.due.is_due for outcome in self.outcomes)
        done = f"{len(self.touched)} done" if not self.dry_run else "nothing done (dry run)"
        seen, failed = len(self.outcomes), len(self.failures)
        return f"{self.task}: {seen} tables looked at, {due} due, {done}, {failed} failed."


class Upkeep:
    """Decides on and runs maintenance for the tables of one lakehouse.

    Args:
        store: The lakehouse's tables; its settings hold every threshold.
        clock: Tells the time; aware, in UTC.
        surround: Is handed each change of a table, to do it and what belongs around it.
        clean_up_sessions: Deletes the sessions past their end.
    """

    def __init__(
        self,
        store: DeltaStore,
        *,
        clock: Callable[[], datetime] = utc_now,
        surround: Surround = _at_once,
        clean_up_sessions: Callable[[DeltaStore, datetime], Result] = delete_expired,
    ) -> None:
        self._store = store
        self._clock = clock
        self._surround = surround
        self._clean_up_sessions = clean_up_sessions

    def facts(self, table: str) -> TableFacts:
        """Return what the decisions about one table are made from.

        Raises:
            StorageError: The table cannot be read.
        """
        return gather_facts(self._store, table, self._clock())

    def due(self, task: Task, tables: Sequence[str] = ()) -> Iterator[Due]:
        """Yield the decision for each table, in name order; nothing is changed.

        Args:
            task: The kind of maintenance.
            tables: Names to look at; empty for every table that the task concerns.

        Raises:
            TableNotFoundError: A name is unknown; raised before anything is yielded from the store.
            StorageError: A table cannot be read.
        """
        for name in self._chosen(task, tables):
            yield decide(task, self.facts(name), self._store.config, self._clock())

    def run(
        self,
        task: Task,
        tables: Sequence[str] = (),
        *,
        only_due: bool = True,
        dry_run: bool = False,
        retention_hours: int | None = None,
    ) -> TaskReport:
        """Run a task on the tables that are due and report on each.

        A table that fails is reported with its error, and the next one follows.

        Args:
            task: The kind of maintenance.
            tables: Names to look at; empty for every table that the task concerns.
            only_due: False to run it on the chosen tables whether or not they are due.
            dry_run: Decide only.
            retention_hours: For vacuum: keep that much instead of what the settings say.

        Raises:
            TableNotFoundError: A name is unknown; nothing was changed.
        """
        names = self._chosen(task, tables)
        started = self._clock()
        outcomes = tuple(self._run_one(task, name, only_due, dry_run, retention_hours) for name in names)
        return TaskReport(
            task=task, started=started, finished=self._clock(), dry_run=dry_run, outcomes=outcomes
        )

    def _chosen(self, task: Task, tables: Sequence[str]) -> list[str]:
        known = self._store.tables()
        if unknown := sorted(set(tables) - set(known)):
            raise TableNotFoundError(
                f"There is no table {', '.join(unknown)} to maintain; nothing was done. "
                f"Tables here: {', '.join(known) or 'none'}.",
                table=unknown[0],
            )
        chosen = [name for name in known if not tables or name in tables]
        return [name for name in chosen if name == SESSIONS_TABLE] if task is Task.SESSION_CLEANUP else chosen

    def _run_one(
        self, task: Task, name: str, only_due: bool, dry_run: bool, retention_hours: int | None
    ) -> TableOutcome:
        due = before = None
        try:
            before = self.facts(name)
            due = decide(task, before, self._store.config, self._clock())
            if dry_run or (only_due and not due.is_due) or (task is Task.Z_ORDER and not due.columns):
                return TableOutcome(table=name, due=due, before=before)
            result = self._act(task, name, due, retention_hours)
            return TableOutcome(table=name, due=due, before=before, after=self.facts(name), result=result)
        except LakehouseError as error:
            _log.warning("%s of table %s failed: %s", task, name, error)
            return TableOutcome(table=name, due=due, before=before, error=error)
        except Exception as error:  # noqa: BLE001 - a fault in one table's handling must not stop the others
            _log.exception("%s of table %s failed", task, name)
            return TableOutcome(table=name, due=due, before=before, error=error)

    def _act(self, task: Task, name: str, due: Due, retention_hours: int | None) -> Result:
        store = self._store.through(self._store.origin.because(due.reason))
        table = store.table(name)
        actions: Mapping[Task, Callable[[], Result]] = {
            Task.SESSION_CLEANUP: lambda: self._clean_up_sessions(store, self._clock()),
            Task.COMPACT: table.compact,
            Task.CHECKPOINT: table.checkpoint,
            Task.Z_ORDER: lambda: table.z_order(due.columns),
            Task.VACUUM: lambda: table.vacuum(retention_hours=retention_hours),
            Task.LOG_CLEANUP: table.clean_up_log,
        }
        return self._surround(task, name, actions[task])
