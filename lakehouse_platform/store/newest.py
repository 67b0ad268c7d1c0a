"""Opened tables that follow their logs: opening one anew takes longer than a small query."""

from __future__ import annotations

import copy
import logging
from collections import OrderedDict
from dataclasses import dataclass, field
from threading import Lock
from typing import TypeAlias
from weakref import WeakValueDictionary

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from lakehouse_platform.store.engine import open_table
from lakehouse_platform.store.location import Location
from lakehouse_platform.store.log_marks import LogMark

# Each holds the list of its files: 33 MB for 100 000 files (measured).
_MOST_TABLES = 32
_log = logging.getLogger(__name__)
_Lent: TypeAlias = WeakValueDictionary[int, DeltaTable]  # by `id`: tables cannot be hashed


@dataclass(frozen=True, slots=True)
class _State:
    """A version and its opened table; if it is not sure that they belong together, the table is for one use."""

    mark: LogMark
    table: DeltaTable
    is_sure: bool


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
            if state is None or not state.is_sure or not state.mark.is_newest():
                kept.state = None  # until the table is known anew, whatever is raised meanwhile
                state = kept.state = _followed(state, kept.lent) or _opened(state, location)
                kept.lent = WeakValueDictionary()
            if not state.is_sure:
                return state.table
            # The copy shares the engine's side of the table, and its life tells how long that is in use.
            lent = copy.copy(state.table)
            kept.lent[id(lent)] = lent
            return lent

    def _known(self, location: Location) -> _Kept:
        with self._lock:
            kept = self._kept.setdefault(location.uri, _Kept())
            self._kept.move_to_end(location.uri)
            if len(self._kept) > _MOST_TABLES:
                self._kept.popitem(last=False)
            return kept


def _followed(state: _State | None, lent: _Lent) -> _State | None:
    """Apply what was committed since to a table that nobody uses, which is a third of the work of opening it."""
    if state is None or not state.is_sure or lent or not state.mark.is_there():
        return None
    location = state.mark.location
    try:
        state.table.update_incremental()
    except DeltaError as error:
        _log.debug("table %s is opened anew: %s", location.name, error)
        return None
    mark = LogMark.of(location, state.table.version())
    # Another table that took its place meanwhile has another commit of the version before.
    return _State(mark, state.table, is_sure=True) if state.mark.is_there() else None


def _opened(before: _State | None, location: Location) -> _State:
    """Open a table anew; it is surely of its mark if a commit is the same one before and after."""
    witness = before.mark if before and before.mark.is_there() else LogMark.of(location, 0)
    table = open_table(location)
    mark = LogMark.of(location, table.version())
    return _State(mark, table, is_sure=witness.is_of_file and witness.is_there())
