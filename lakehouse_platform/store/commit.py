"""One change, one commit: stamping, retries by reason, durability, and the three outcomes.

A change has landed, has certainly not landed, or its outcome is unknown. Every commit carries a random id in its
`commitInfo`; after a storage failure the id is looked for, so that a retry never writes twice.
"""

from __future__ import annotations

import os
import random
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any, Generic, TypeVar
from urllib.parse import unquote

from deltalake import CommitProperties, DeltaTable, Transaction

from lakehouse_platform.errors import (
    CommitConflictError,
    CommitOutcomeUnknownError,
    DeltaTableError,
    InfrastructureError,
    LakehouseError,
    StorageIoError,
)
from lakehouse_platform.model.origin import Origin
from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform.store.engine import open_table, translated
from lakehouse_platform.store.key_index import KeyIndex
from lakehouse_platform.store.location import Location
from lakehouse_platform.store.log import LOG_DIRECTORY, commit_file, commit_info, list_log, read_commit
from lakehouse_platform.store.newest import NewestTables

COMMIT_ID = "lakehouse.commitId"
# Back-off between two attempts: 8 writers on one table spread over about a second (research: p95 0.6 to 0.9 s).
_FIRST_WAIT_S = 0.01
_LONGEST_WAIT_S = 0.5

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class AppTransaction:
    """An application's own transaction id: the same (app_id, version) is written at most once.

    Attributes:
        app_id: Name of the application or request.
        version: Its sequence number; must grow with each write of that application.
    """

    app_id: str
    version: int


@dataclass(frozen=True, slots=True)
class Once:
    """A change that is made at most once, however often it is asked for.

    Attributes:
        transaction: Recorded with the commit, and looked for before one is made.
        metadata: What the commit says about the request that it was made for.
    """

    transaction: AppTransaction
    metadata: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Committed(Generic[_T]):
    """The version that a change made and what the change returned.

    Attributes:
        version: The newest version this change knows: its own, or the one it read if it changed nothing.
        value: What the change returned; None if it had landed before it could answer.
    """

    version: int
    value: _T | None


@dataclass(frozen=True, slots=True)
class Stamp:
    """Makes the properties of one commit: origin, a random commit id, retries, application transaction."""

    config: LakehouseConfig
    origin: Origin
    transaction: AppTransaction | None = None
    metadata: Mapping[str, str] = field(default_factory=dict[str, str])
    commit_id: str = field(default_factory=lambda: uuid.uuid4().hex)

    def __call__(self, *, exact: bool = False, metadata: Mapping[str, Any] | None = None) -> CommitProperties:
        """Return the properties.

        Args:
            exact: Whether the commit must directly follow the snapshot it was planned on (compare and swap).
            metadata: What else the commit says about itself.
        """
        app = self.transaction
        return CommitProperties(
            custom_metadata={
                **(metadata or {}),
                **self.metadata,
                **self.origin.commit_metadata(),
                COMMIT_ID: self.commit_id,
            },
            max_commit_retries=0 if exact else self.config.commit_retries,
            app_transactions=[Transaction(app.app_id, app.version)] if app else None,
        )


@dataclass(frozen=True, slots=True)
class Committer:
    """Makes commits on one table.

    Attributes:
        location: The table.
        config: Retries and durability.
        origin: Stamped into every commit.
        once: The request that its one change is made for; None for any number of changes.
        tables: Keeps the opened table from one change to the next.
    """

    location: Location
    config: LakehouseConfig
    origin: Origin
    once: Once | None = None
    tables: NewestTables = field(default_factory=NewestTables, compare=False, repr=False)

    def commit(
        self,
        act: Callable[[DeltaTable, Stamp], _T],
        *,
        rerun: bool = True,
        guard: Callable[[DeltaTable], None] | None = None,
        transaction: AppTransaction | None = None,
        silent: bool = False,
    ) -> Committed[_T]:
        """Run `act` on the newest version and commit; `act` must make at most one commit.

        Args:
            act: Receives the table and a stamp, which makes the properties that its one engine call must pass on.
            rerun: Whether `act` may run again on a newer snapshot after a conflict.
            guard: Sees each snapshot before `act` does, unless `transaction` is in it; what it raises ends the commit.
            transaction: Skip everything if the table already holds this application transaction.
            silent: The engine does not tell the version that `act` makes, so it is looked up.

        Raises:
            CommitConflictError: Another writer won and the change could not be repeated; nothing was written.
            CommitOutcomeUnknownError: The storage failed, and whether the change landed could not be found out.
        """
        attempts = self.config.commit_retries + 1 if rerun else 1
        stamped = transaction or (self.once.transaction if self.once else None)
        for attempt in range(attempts):
            done = self._try(act, guard, stamped, silent=silent)
            if isinstance(done, Committed):
                return done
            if attempt + 1 == attempts:
                if stamped and _already_landed(landed := open_table(self.location), stamped):
                    return Committed(landed.version(), None)
                raise done
            _wait(attempt)
        raise AssertionError("a commit is attempted at least once")

    @property
    def key_index(self) -> KeyIndex | None:
        """The index of the table's keys, if the settings name a directory for one."""
        directory = self.config.key_index_path
        return None if directory is None else KeyIndex(Path(directory), self.location)

    def metrics(self, done: Committed[Mapping[str, Any]]) -> Mapping[str, Any]:
        """Return a change's metrics, from its commit if the engine could not answer any more."""
        if done.value is not None:
            return done.value
        return commit_info(read_commit(self.location, done.version)).get("operationMetrics") or {}

    def make_durable(self, version: int) -> None:
        """Force a local commit and its files to disk, unless settings leave that to the operating system.

        Raises:
            StorageIoError: The disk refused; the version is there, but might not survive a power failure.
        """
        if self.config.durability != "fsync" or not self.location.is_local:
            return
        try:
            fsync_commit(self.location, version)
        except OSError as error:
            raise StorageIoError(
                f"Version {version} of {self.location.name} is committed, but the disk did not confirm it "
                f"({error.strerror}): it may be lost if the power fails now. Check the disk; do not repeat the change.",
                table=self.location.name,
                version=version,
            ) from error

    def landed(self, wanted: str, before: int) -> int | None:
        """Return the version after `before` whose commit has this id; None if there is none."""
        for version in list_log(self.location).commits:
            if version > before and commit_info(read_commit(self.location, version)).get(COMMIT_ID) == wanted:
                return version
        return None

    def _try(
        self,
        act: Callable[[DeltaTable, Stamp], _T],
        guard: Callable[[DeltaTable], None] | None,
        transaction: AppTransaction | None,
        *,
        silent: bool,
    ) -> Committed[_T] | CommitConflictError:
        """Attempt the change on the newest version; a conflict with another writer is returned."""
        with self.tables.changing(self.location) as table:
            with translated(self.location):
                if transaction and _already_landed(table, transaction):
                    return Committed(table.version(), None)
                if guard is not None:
                    guard(table)
            try:
                return self._attempt(table, act, self._stamp(transaction), silent=silent)
            except CommitConflictError as error:
                return error

    def _stamp(self, transaction: AppTransaction | None) -> Stamp:
        metadata = self.once.metadata if self.once else {}
        return Stamp(self.config, self.origin, transaction, metadata)

    def _attempt(
        self, table: DeltaTable, act: Callable[[DeltaTable, Stamp], _T], stamp: Stamp, *, silent: bool
    ) -> Committed[_T]:
        before = table.version()
        try:
            with translated(self.location):
                value = act(table, stamp)
        except (InfrastructureError, DeltaTableError, CommitConflictError) as error:
            # A conflict too: if the answer to our commit is lost, the engine tries again and conflicts with itself.
            found = self._look_for(stamp.commit_id, before, error)
            if found is None:
                raise
            self.make_durable(found)
            return Committed(found, None)
        version = (self.landed(stamp.commit_id, before) or before) if silent else table.version()
        if version > before:
            self.make_durable(version)
        return Committed(version, value)

    def _look_for(self, wanted: str, before: int, cause: LakehouseError) -> int | None:
        """Return the version of the commit with this id, None if it certainly did not land."""
        try:
            return self.landed(wanted, before)
        except OSError as error:
            raise CommitOutcomeUnknownError(
                f"The storage failed while writing to {self.location.name}, and it cannot be told whether the change "
                f"landed ({cause.message}). Look for commit id {wanted} in the history before you repeat it.",
                table=self.location.name,
                commit_id=wanted,
            ) from error


def fsync_commit(location: Location, version: int) -> None:
    """Force one local commit to disk: its data files, its log entry, a checkpoint it made, and their directories."""
    root = location.path
    actions = read_commit(location, version)
    # Paths in the log are URI-encoded (Delta protocol, "Add File and Remove File").
    paths = [unquote(action[kind]["path"]) for action in actions for kind in ("add", "cdc") if kind in action]
    files = {root / path for path in paths}
    log = root / LOG_DIRECTORY
    files.add(root / commit_file(version))
    checkpoint = log / f"{version:020}.checkpoint.parquet"
    if checkpoint.exists():
        files |= {checkpoint, log / "_last_checkpoint"}
    for path in files:
        _fsync(path)
    # Each level of partition directories may be new, and with the first version the table's own directory.
    parents = {root.joinpath(parent) for path in paths for parent in PurePath(path).parents}
    above = {root.parent} if version == 0 else set[Path]()
    for directory in parents | {log, root} | above:
        _fsync(directory)


def _fsync(path: Path) -> None:
    # A foreign vacuum or clean-up may take a file away between the commit and this call.
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def at_version(name: str, expected: int | None) -> Callable[[DeltaTable], None]:
    """Return a guard that lets a change of table `name` through only on the expected version; None is any."""

    def guard(table: DeltaTable) -> None:
        if expected is not None and table.version() != expected:
            raise CommitConflictError(
                f"Table {name} is at version {table.version()}, not at {expected} any more; nothing was written. "
                "Read the table again and repeat the change.",
                table=name,
                expected=expected,
                version=table.version(),
            )

    return guard


def _already_landed(table: DeltaTable, transaction: AppTransaction) -> bool:
    landed = table.transaction_version(transaction.app_id)
    return landed is not None and landed >= transaction.version


def _wait(attempt: int) -> None:
    ceiling = min(_LONGEST_WAIT_S, _FIRST_WAIT_S * 2**attempt)
    time.sleep(random.uniform(0, ceiling))  # noqa: S311 - spreads writers, guards nothing
