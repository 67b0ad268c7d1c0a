"""Opened tables that follow their logs: opening one anew takes longer than a small query."""

from __future__ import annotations

import copy
import logging
from collections import OrderedDict
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import TypeAlias
from weakref import WeakValueDictionary

from deltalake import DeltaTable

from lakehouse_platform.errors import LakehouseError
from lakehouse_platform.store.engine import open_table, translated
from lakehouse_platform.store.location import Location
from lakehouse_platform.store.log_marks import Identity, LogMark, last_checkpoint

# Each step makes the next a little slower: after 300 a commit takes as long as with a table opened anew (measured).
_MOST_STEPS = 32
# Each holds the list of its files: 33 MB for 100 000 files (measured).
_MOST_TABLES = 32
_log = logging.getLogger(__name__)
_Lent: TypeAlias = WeakValueDictionary[int, DeltaTable]  # by `id`: tables cannot be hashed


@dataclass(frozen=True, slots=True)
class _State:
    """A version and its opened table.

    Attributes:
        mark: The version.
        table: The opened table.
        is_sure: Whether they surely belong together; otherwise the table is for one use.
        checkpoint: The table's newest checkpoint when it was opened.
        steps: How often it went on to a newer version since it was opened.
    """

    mark: LogMark
    table: DeltaTable
    is_sure: bool
    checkpoint: Identity
    steps: int = 0

    @property
    def is_whole(self) -> bool:
        """Whether all log entries are there of which it may still have to read some.

        Entries are cleaned up only behind a checkpoint, and what is opened anew begins there.
        """
        return self.is_sure and last_checkpoint(self.mark.location) == self.checkpoint

    @property
    def is_newest(self) -> bool:
        """Whether it can be lent as it is."""
        return self.is_whole and self.mark.is_newest()


@dataclass(slots=True)
class _Kept:
    """What is known of one table.

    Attributes:
        state: The version that was the newest; None before the first look.
        lent: The copies of the opened table that somebody still holds. It must not change under them.
        lock: Held while the state is changed or lent.
    """

    state: _State | None = None
    lent: _Lent = field(default_factory=WeakValueDictionary[int, DeltaTable])
    lock: Lock = field(default_factory=Lock)


class NewestTables:
    """The local tables that were asked for last. Safe to share between threads.

    Tables on object stores are opened anew: finding out that nothing was committed there takes about as many requests.
    """

    def __init__(self) -> None:
        """Keep nothing yet."""
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._lock = Lock()

    def __reduce__(self) -> tuple[type[NewestTables], tuple[()]]:
        """Let what is sent to another process, or copied, begin with nothing kept."""
        return NewestTables, ()

    def open(self, location: Location) -> DeltaTable:
        """Return the newest version of a table, to be read from alone: others may hold the same one.

        Raises:
            TableNotFoundError, NotADeltaTableError, UnsupportedFeatureError: See `engine.open_table`.
        """
        if not location.is_local:
            return open_table(location)
        kept = self._known(location)
        with kept.lock:
            state = kept.state
            if state is None or not state.is_newest:
                state = _renewed(kept, location)
                kept.state, kept.lent = state, WeakValueDictionary()
            return _lend(state, kept.lent) if state.is_sure else state.table

    @contextmanager
    def changing(self, location: Location) -> Generator[DeltaTable]:
        """Lend the newest version of a table to one who commits on it at most once; nobody else holds it meanwhile.

        Raises:
            TableNotFoundError, NotADeltaTableError, UnsupportedFeatureError: See `engine.open_table`.
        """
        if not location.is_local:
            yield open_table(location)
            return
        kept = self._known(location)
        with kept.lock:
            state = _to_change(kept, location)
            kept.state, kept.lent = None, WeakValueDictionary()
        lent = WeakValueDictionary[int, DeltaTable]()
        yield _lend(state, lent)
        after = _changed(state)
        if after is not None:
            with kept.lock:
                kept.state, kept.lent = after, lent

    def _known(self, location: Location) -> _Kept:
        with self._lock:
            kept = self._kept.setdefault(location.uri, _Kept())
            self._kept.move_to_end(location.uri)
            if len(self._kept) > _MOST_TABLES:
                self._kept.popitem(last=False)
            return kept


def _lend(state: _State, lent: _Lent) -> DeltaTable:
    """Return a copy: it shares the engine's side of the table, and its life tells how long that is in use."""
    copied = copy.copy(state.table)
    lent[id(copied)] = copied
    return copied


def _to_change(kept: _Kept, location: Location) -> _State:
    state = kept.state
    if state is None or kept.lent or not state.is_newest:
        return _renewed(kept, location)
    return state if state.steps < _MOST_STEPS else _opened(state, location)


def _renewed(kept: _Kept, location: Location) -> _State:
    """Return the newest version; until it is known nothing is kept, whatever is raised meanwhile."""
    state, kept.state = kept.state, None
    return _followed(state, kept.lent) or _opened(state, location)


def _changed(state: _State) -> _State | None:
    """Return what a table is after a change; None if it is not sure that it is the newest version of the same one."""
    if not state.is_sure:
        return None
    before, version = state.mark, state.table.version()
    try:
        mark = LogMark.of(before.location, version)
        if not mark.is_newest() or not before.is_there():
            return None
    except LakehouseError as error:
        # The change is made, and must not fail for what only makes the next one faster.
        _log.debug("table %s will be opened anew: %s", before.location.name, error)
        return None
    return replace(state, mark=mark, steps=state.steps + version - before.version)


def _followed(state: _State | None, lent: _Lent) -> _State | None:
    """Apply what was committed since to a table that nobody uses, which is a third of the work of opening it."""
    if state is None or lent or state.steps >= _MOST_STEPS:
        return None
    if not state.is_whole or not state.mark.is_there():
        return None
    location = state.mark.location
    try:
        with translated(location):
            state.table.update_incremental()
    except LakehouseError as error:
        _log.debug("table %s is opened anew: %s", location.name, error)
        return None
    mark = LogMark.of(location, state.table.version())
    steps = state.steps + mark.version - state.mark.version
    # Another table that took its place meanwhile has another commit of the version before.
    return replace(state, mark=mark, steps=steps) if state.mark.is_there() else None


def _opened(before: _State | None, location: Location) -> _State:
    """Open a table anew; it is surely of its mark if a commit is the same one before and after."""
    witness = before.mark if before and before.mark.is_there() else LogMark.of(location, 0)
    checkpoint, table = last_checkpoint(location), open_table(location)
    mark = LogMark.of(location, table.version())
    return _State(mark, table, is_sure=witness.is_of_file and witness.is_there(), checkpoint=checkpoint)
