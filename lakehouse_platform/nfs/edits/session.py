"""When an edit is published, held, refused or given up: one client's edit of one table, as a pure state machine.

Events come in with the time, in seconds; what is to be done goes out. Bytes are not its business: what it knows of the
draft is its `Shape`. The numbers come from measured clients: a close is asked for 0.5 to 2 ms after the last WRITE,
writers that keep a file open write 0.2 to 0.3 s apart, Linux writes dirty pages after 30 s at the latest.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum, auto

HOLD_S = 0.02
APPEND_QUIET_S = 0.2
APPEND_LONGEST_S = 1.0
BULK_QUIET_S = 1.0
BULK_LONGEST_S = 30.0
# What one `cat big >>` sends in a second is one commit; a log that is followed writes less than this.
_BULK = 256 << 10
REWRITE_QUIET_S = 0.3
TAIL_QUIET_S = 1.0
CAUTIOUS_QUIET_S = 2.0
GIVE_UP_S = 10.0
RETRY_FOR_S = 60.0
RECOVERED_QUIET_S = 60.0
BACK_QUIET_S = 2.0
_LONGEST_RETRY_S = 10.0
# A client sends whole pages except at the end of the file, so a size that is not a multiple is the end.
_PAGE = 4096


class Ending(Enum):
    """How the draft's bytes end."""

    WHOLE = auto()
    """With a row and its line end."""
    TAIL = auto()
    """With a row that only lacks its line end."""
    BROKEN = auto()
    """In the middle of a row, or there is a hole."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What a draft looks like.

    Attributes:
        is_append: Whether it only adds to what the client saw.
        size: How many bytes it has.
        ending: How they end.
        has_rows: Whether there are whole rows to append.
        added: How many bytes an append adds.
        is_cautious: Whether it has only the header, or is the beginning of what the client saw: a copy in progress
            looks like that.
        cuts_row: Whether it is the beginning of what the client saw up to the middle of a row.
    """

    is_append: bool
    size: int
    ending: Ending
    has_rows: bool = False
    added: int = 0
    is_cautious: bool = False
    cuts_row: bool = False


class Act(Enum):
    """What is to be done now."""

    NOTHING = auto()
    HOLD = auto()
    """Wait `HOLD_S` for further WRITEs, then ask `on_hold_over`."""
    PUBLISH_ALL = auto()
    PUBLISH_WHOLE_ROWS = auto()
    """Publish the whole rows of an append; the beginning of another row stays."""
    REJECT = auto()
    """Keep the bytes aside and show the table again."""
    SHOW_TABLE = auto()
    """Drop an empty draft and show the table again."""


@dataclass(frozen=True, slots=True)
class Session:
    """The state of one client's edit of one table.

    Attributes:
        shape: What the draft looks like; None if there is none.
        since: When it got its first bytes after the last publication.
        touched: When it last changed.
        changes: How often it changed.
        is_unstable: Whether the client still has to COMMIT, which it does before it closes: it is not done yet.
        is_closed: Whether it has asked for attributes since, which may have been its close.
        not_before: No publication before this, unless the client writes: after a restart it may send the rest.
        failures: How often publishing failed for reasons that may pass.
        failing_since: Since when.
        retry_at: When to try again.
    """

    shape: Shape | None = None
    since: float = 0.0
    touched: float = 0.0
    changes: int = 0
    is_unstable: bool = False
    is_closed: bool = False
    not_before: float = 0.0
    failures: int = 0
    failing_since: float = 0.0
    retry_at: float = 0.0

    @property
    def is_open(self) -> bool:
        """Whether there is a draft."""
        return self.shape is not None

    @property
    def is_append(self) -> bool:
        """Whether there is a draft that only adds to what the client saw."""
        return self.shape is not None and self.shape.is_append

    @property
    def due(self) -> float | None:
        """When something is to be done if nothing happens until then."""
        if self.shape is None:
            return None
        return max(_plan(self.shape, self)[0], self.not_before, self.retry_at)

    # ── Events ────────────────────────────────────────────────────────────────────────────────────

    def on_change(self, shape: Shape, now: float, *, unstable: bool = False) -> Session:
        """The client has written or truncated."""
        return replace(
            self,
            shape=shape,
            since=self.since if self.is_open else now,
            touched=now,
            changes=self.changes + 1,
            is_unstable=unstable or self.is_unstable,
            is_closed=False,
            not_before=0.0,
        )

    def on_commit(self, now: float) -> Session:
        """The client has asked to make durable what it wrote."""
        return replace(self, is_unstable=False, touched=now) if self.is_unstable else self

    def on_recovered(self, shape: Shape, now: float, *, unstable: bool = False) -> Session:
        """The draft was found in the spool of an earlier server."""
        wait = 0.0 if shape.is_append else RECOVERED_QUIET_S
        return Session(shape, now, now, changes=1, is_unstable=unstable, not_before=now + wait)

    def on_back(self, now: float) -> Session:
        """The client is there: what it sends again after a restart comes now."""
        return replace(self, not_before=min(self.not_before, now + BACK_QUIET_S))

    def on_asked(self, now: float) -> Session:
        """The client asks for attributes, which may be its close."""
        return self if self.shape is None else replace(self.on_back(now), is_closed=True)

    def on_close(self, now: float) -> Act:
        """The client asks for attributes, which may be its close."""
        if self.shape is None or self.is_unstable or self.retry_at > now:
            return Act.NOTHING
        if self.shape.is_append:
            return _closed_append(self.shape)
        return Act.HOLD if _looks_complete(self.shape) else Act.NOTHING

    def on_hold_over(self, changes: int) -> Act:
        """`HOLD_S` have passed since a close; `changes` were counted then."""
        if self.shape is None or self.changes > changes or not _looks_complete(self.shape):
            return Act.NOTHING
        return Act.PUBLISH_ALL

    def on_time(self, now: float) -> Act:
        """Time has passed."""
        due = self.due
        if self.shape is None or due is None or now < due:
            return Act.NOTHING
        if self.failures and now - self.failing_since >= RETRY_FOR_S:
            return Act.REJECT
        return _plan(self.shape, self)[1]

    def on_settle(self) -> Act:
        """Something takes the place of the file: publish what looks complete, keep the rest aside."""
        if self.shape is None:
            return Act.NOTHING
        if self.shape.size == 0:
            return Act.SHOW_TABLE
        closed = _closed_append(self.shape) if self.shape.is_append else Act.NOTHING
        is_complete = _looks_complete(self.shape) or self._is_closed_beginning
        return Act.PUBLISH_ALL if closed is Act.PUBLISH_ALL or is_complete else Act.REJECT

    @property
    def is_finished(self) -> bool:
        """Whether the client has closed a whole file, which only waits to be published."""
        return self.is_closed and self.on_settle() is Act.PUBLISH_ALL

    @property
    def _is_closed_beginning(self) -> bool:
        """Whether the draft is the beginning of what was seen, as its client left it."""
        shape = self.shape
        if shape is None or not self.is_closed or self.is_unstable or shape.cuts_row or not shape.size:
            return False
        return shape.is_cautious and _ends_row(shape)

    def on_drain(self) -> Act:
        """The server stops: publish what is complete, the log keeps the rest."""
        if self.shape is None:
            return Act.NOTHING
        if self.shape.is_append:
            return Act.PUBLISH_WHOLE_ROWS if self.shape.has_rows else Act.NOTHING
        return Act.PUBLISH_ALL if _looks_complete(self.shape) and not self.is_unstable else Act.NOTHING

    def on_published(self, rest: Shape | None) -> Session:
        """The draft is in the table, except for the beginning of a row."""
        if rest is None:
            return Session(changes=self.changes)
        return Session(rest, self.touched, self.touched, self.changes, self.is_unstable)

    def on_failed(self, now: float) -> Session:
        """Publishing failed for a reason that may pass."""
        since = self.failing_since if self.failures else now
        wait = min(2.0**self.failures, _LONGEST_RETRY_S)
        return replace(self, failures=self.failures + 1, failing_since=since, retry_at=now + wait)


def _closed_append(shape: Shape) -> Act:
    if shape.ending is not Ending.BROKEN:
        return Act.PUBLISH_ALL
    return Act.PUBLISH_WHOLE_ROWS if shape.has_rows else Act.NOTHING


def _looks_complete(shape: Shape) -> bool:
    if shape.is_append or shape.size == 0 or shape.is_cautious:
        return False
    return _ends_row(shape)


def _ends_row(shape: Shape) -> bool:
    return shape.ending is Ending.WHOLE or (shape.ending is Ending.TAIL and shape.size % _PAGE != 0)


def _without_commit(shape: Shape) -> Act:
    """Return what becomes of a draft whose client never asked to make it durable: it may be half of a file."""
    if not shape.is_append:
        return Act.PUBLISH_ALL if _looks_complete(shape) else Act.REJECT
    if shape.ending is Ending.WHOLE or shape.size % _PAGE != 0:
        return Act.PUBLISH_ALL
    return Act.PUBLISH_WHOLE_ROWS if shape.has_rows else Act.REJECT


def _plan(shape: Shape, state: Session) -> tuple[float, Act]:
    """Return when to do what if nothing happens."""
    give_up = state.touched + GIVE_UP_S
    if shape.size == 0:
        return give_up, Act.SHOW_TABLE
    if state.is_unstable and shape.ending is not Ending.BROKEN and not shape.cuts_row:
        return give_up, _without_commit(shape)
    if shape.is_append and shape.has_rows:
        is_bulk = shape.added > _BULK
        quiet = state.touched + (BULK_QUIET_S if is_bulk else APPEND_QUIET_S)
        return min(
            quiet, state.since + (BULK_LONGEST_S if is_bulk else APPEND_LONGEST_S)
        ), Act.PUBLISH_WHOLE_ROWS
    if shape.ending is Ending.BROKEN or shape.cuts_row:
        return give_up, Act.REJECT
    if shape.is_append:
        return state.touched + TAIL_QUIET_S, Act.PUBLISH_ALL
    quiet = TAIL_QUIET_S if shape.ending is Ending.TAIL else REWRITE_QUIET_S
    return state.touched + (CAUTIOUS_QUIET_S if shape.is_cautious else quiet), Act.PUBLISH_ALL


# ── A name without a file ─────────────────────────────────────────────────────────────────────────

REMOVED_GRACE_S = 1.0
MOVED_GRACE_S = 10.0


@dataclass(frozen=True, slots=True)
class Hole:
    """A view that a client has removed or moved away: nobody sees it.

    Attributes:
        mount: Who did it.
        is_removed: Whether it was removed, which deletes all rows, or moved away, which does not.
        since: When.
    """

    mount: bytes
    is_removed: bool
    since: float

    @property
    def due(self) -> float:
        """When the rows are deleted, or the view is shown again."""
        return self.since + (REMOVED_GRACE_S if self.is_removed else MOVED_GRACE_S)
