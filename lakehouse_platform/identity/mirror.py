"""A small keyed table held in memory, and kept up with its commits.

A look at a local table's log tells at each call whether it changed, at the price of two `stat`; a remote one is looked
at once in a while. After a commit only the files that it added are read. What is handed out never changes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from lakehouse_platform.errors import DataFilesMissingError, InputError, InvalidRowsError, LakehouseError
from lakehouse_platform.store.pinned import Pinned
from lakehouse_platform.store.table import Table

Row = Mapping[str, Any]
_R = TypeVar("_R")

# A vacuum without retention can take a file away between two looks; more often than this, something else is wrong.
_MOST_TRIES = 5


@dataclass(frozen=True, slots=True)
class Seen(Generic[_R]):
    """What a table held at one version.

    Attributes:
        version: The version; a change that rests on what was seen can demand it (`expected_version`).
        records: Every record by its key.
        damaged: By key: why a row is no record. One bad row must not keep all others from being read.
        indexes: By the name of an index and its value: the keys of the records.
    """

    version: int
    records: Mapping[str, _R]
    damaged: Mapping[str, LakehouseError]
    indexes: Mapping[str, Mapping[str, frozenset[str]]] = field(repr=False)

    def find(self, index: str, value: str) -> list[_R]:
        """Return the records that an index has under a value, in the order of their keys."""
        return [self.records[key] for key in sorted(self.indexes[index].get(value, ()))]


@dataclass(frozen=True, slots=True)
class _State(Generic[_R]):
    pinned: Pinned
    files: Mapping[str, tuple[bytes, tuple[str, ...]]]
    seen: Seen[_R]


class Mirror(Generic[_R]):
    """The records of one table, by key and by further values. Safe to share between threads."""

    def __init__(
        self,
        table: Table,
        key: str,
        make: Callable[[Row], _R],
        *,
        indexes: Mapping[str, Callable[[_R], str | None]] | None = None,
        clock: Callable[[], float] = time.monotonic,
        fresh_seconds: float = 1.0,
    ) -> None:
        """Read nothing yet.

        Args:
            table: The table; its rows must fit into memory.
            key: The text column that identifies a row.
            make: Makes a record of a row; what it raises of our errors is kept as the reason why there is none.
            indexes: Further values to find records by; records whose value is None are left out.
            clock: Seconds that only grow.
            fresh_seconds: How old an answer about a remote table may be.
        """
        self._table = table
        self._key = key
        self._make = make
        self._indexes = dict(indexes or {})
        self._clock = clock
        self._fresh_seconds = 0.0 if table.location.is_local else fresh_seconds
        self._state: _State[_R] | None = None
        self._looked_at = 0.0
        self._lock = threading.Lock()

    def current(self) -> Mapping[str, _R]:
        """Return the records by key; see `look`."""
        return self.look().records

    def look(self) -> Seen[_R]:
        """Return what the table holds: now if it is local, at most `fresh_seconds` ago if it is not.

        Raises:
            TableNotFoundError, NotADeltaTableError: The table is gone.
        """
        state = self._state
        if state is not None and self._is_fresh(state):
            return state.seen
        return self.newest()

    def newest(self) -> Seen[_R]:
        """Return what the table holds now, whether it is local or not; needed after a change of one's own.

        Raises:
            TableNotFoundError, NotADeltaTableError: The table is gone.
        """
        with self._lock:
            started = self._clock()
            state = self._followed(self._state)
            self._state, self._looked_at = state, started
            return state.seen

    def _is_fresh(self, state: _State[_R]) -> bool:
        if self._fresh_seconds:
            return self._clock() - self._looked_at < self._fresh_seconds
        return state.pinned.is_newest()

    def _followed(self, old: _State[_R] | None) -> _State[_R]:
        for _ in range(_MOST_TRIES - 1):
            try:
                return self._step(old)
            except DataFilesMissingError:
                # A vacuum overtook us: what is the newest version now has other files.
                old = None
        return self._step(None)

    def _step(self, old: _State[_R] | None) -> _State[_R]:
        pinned = Pinned.open(self._table) if old is None else old.pinned.newer()
        if old is not None and pinned is old.pinned:
            return old
        if old is not None and not _continues(old.pinned, pinned):
            old = None
        return self._read(pinned, old)

    def _read(self, pinned: Pinned, old: _State[_R] | None) -> _State[_R]:
        """Return the state at a version, of which only files are read that the old state does not have."""
        known = old.files if old else {}
        tokens = {file.path: file.token for file in pinned.files}
        gone = [keys for path, (token, keys) in known.items() if tokens.get(path) != token]
        files = {path: entry for path, entry in known.items() if tokens.get(path) == entry[0]}
        added: dict[str, _R | LakehouseError] = {}
        for path in tokens.keys() - files.keys():
            rows = [row for batch in pinned.read_rows(path) for row in batch.to_pylist()]
            files[path] = (tokens[path], tuple(row[self._key] for row in rows))
            added |= {row[self._key]: self._made(row) for row in rows}
        removed = {key for keys in gone for key in keys}
        return _State(pinned, files, self._seen(pinned.version, old.seen if old else None, removed, added))

    def _made(self, row: Row) -> _R | LakehouseError:
        try:
            return self._make(row)
        except LakehouseError as error:
            return error

    def _seen(
        self,
        version: int,
        old: Seen[_R] | None,
        removed: Collection[str],
        made: Mapping[str, _R | LakehouseError],
    ) -> Seen[_R]:
        records = dict(old.records) if old else {}
        damaged = {key: error for key, error in (old.damaged if old else {}).items() if key not in removed}
        damaged |= {key: error for key, error in made.items() if isinstance(error, LakehouseError)}
        added = {key: record for key, record in made.items() if not isinstance(record, LakehouseError)}
        indexes = {name: dict(old.indexes[name]) if old else {} for name in self._indexes}
        taken_away = [(key, records.pop(key)) for key in removed if key in records]
        records |= added
        for name, value_of in self._indexes.items():
            entries = indexes[name]
            for key, record in taken_away:
                _drop(entries, value_of(record), key)
            for key, record in added.items():
                _put(entries, value_of(record), key)
        return Seen(version, MappingProxyType(records), MappingProxyType(damaged), indexes)


@contextmanager
def readable(table: str, key: str) -> Generator[None]:
    """Say of what goes wrong in the block that a row of a table cannot be read.

    Raises:
        InvalidRowsError: It cannot; the message names it.
    """
    try:
        yield
    except (ValueError, TypeError, InputError) as error:
        raise InvalidRowsError(
            f"The row {key!r} of table {table} cannot be read ({error}): correct or delete it.",
            table=table,
            key=key,
        ) from error


def _continues(old: Pinned, new: Pinned) -> bool:
    """Tell whether rows that were read of the old version are those of the new one where the files are the same."""
    return old.table_id == new.table_id and old.schema.equals(new.schema)


def _drop(entries: dict[str, frozenset[str]], value: str | None, key: str) -> None:
    if value is None:
        return
    if left := entries.get(value, frozenset()) - {key}:
        entries[value] = left
    else:
        entries.pop(value, None)


def _put(entries: dict[str, frozenset[str]], value: str | None, key: str) -> None:
    if value is not None:
        entries[value] = entries.get(value, frozenset()) | {key}
