"""Verification: reads the whole audit log and says what was changed, and where.

The rows are read in windows of sequence numbers, so memory is bounded however long the log is and however its files are
clustered. A count of all rows beforehand finds those that a window's condition would not meet, for example because a
file's statistics lie about it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import pyarrow as pa

from lakehouse_platform.audit.chain import GENESIS, ChainFields, Head, commitment, entry_hash
from lakehouse_platform.audit.heads import told_head
from lakehouse_platform.store.table import Table

# A row takes about 400 bytes in Arrow, so a window and its sorted copy take 100 MB. As Python values it takes five
# times as much, so only a batch at a time is made one.
_WINDOW, _BATCH = 1 << 17, 1 << 10
_COLUMNS = (
    "sequence", "audit_id", "timestamp", "action", "outcome", "resource", "row_count", "door", "request_id",
    "commitment", "user_id", "details", "ip_address", "salt", "entry_hash", "date_partition",
)  # fmt: skip
_CHAINED = ChainFields.__dataclass_fields__

_Row = Mapping[str, Any]


class ProblemKind(StrEnum):
    """What is wrong at a place of the log.

    Attributes:
        ALTERED: The entry is not what was chained.
        MISSING: Entries are gone.
        DOUBLED: The entry is there more than once.
        CUT: The end of the log is gone, or was replaced.
        MISPLACED: The entry stands in another day's partition, where reports do not look.
        UNCHAINED: Rows that were not written by the audit log.
        HIDDEN: Rows that a condition on their sequence number does not meet.
    """

    ALTERED = "altered"
    MISSING = "missing"
    DOUBLED = "doubled"
    CUT = "cut"
    MISPLACED = "misplaced"
    UNCHAINED = "unchained"
    HIDDEN = "hidden"


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong.

    Attributes:
        sequence: At which entry; for a gap the first that is gone.
        kind: What kind of thing.
        message: In words.
    """

    sequence: int
    kind: ProblemKind
    message: str


@dataclass(frozen=True, slots=True)
class Verification:
    """What a verification found.

    Attributes:
        version: The version of the table that was read.
        entries: Rows in it.
        erased: Entries whose personal fields were erased.
        head_sequence: Number of the last entry; 0 if there is none.
        head_hash: Its hash, as the row holds it.
        problems: What is wrong, by sequence; empty if the log is whole.
    """

    version: int
    entries: int
    erased: int
    head_sequence: int
    head_hash: bytes
    problems: tuple[Problem, ...]

    @property
    def is_whole(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems


def verify(
    table: Table, head: Head | None = None, lost: Sequence[Head] = (), *, window: int = _WINDOW
) -> Verification:
    """Read the audit log at its newest version and return what is wrong with it.

    Args:
        table: The audit log.
        head: An entry that the log must hold, from outside the table: where the chain ended at some time before.
        lost: Further such entries, from before the log was seen to go on without them.
        window: How many entries are in memory at once.
    """
    version = table.version()
    count = _count(table, version, window)
    walk = _Walk(head, lost)
    for number in sorted(count.windows):
        first = number * window
        rows = _rows(table, version, first, first + window)
        if rows.num_rows != count.windows[number]:
            walk.hidden(first, count.windows[number] - rows.num_rows)
        for batch in rows.to_batches(_BATCH):
            for row in batch.to_pylist():
                walk.step(row)
    if count.unchained:
        walk.problem(0, ProblemKind.UNCHAINED, f"{count.unchained} rows have no sequence number from 1.")
    walk.end(told_head(table, version))
    return Verification(
        version, count.rows, walk.erased, walk.last.sequence, walk.last.hash, tuple(walk.sorted_problems())
    )


@dataclass(slots=True)
class _Count:
    """How many rows there are in each window of sequence numbers, and without one."""

    rows: int = 0
    unchained: int = 0
    windows: Counter[int] = field(default_factory=Counter[int])


def _count(table: Table, version: int, window: int) -> _Count:
    count = _Count()
    for batch in table.scan(["sequence"], version=version).reader():
        numbers = [number for number in batch.column(0).to_pylist() if number is not None and number > 0]
        count.rows += batch.num_rows
        count.unchained += batch.num_rows - len(numbers)
        count.windows.update(number // window for number in numbers)
    return count


def _rows(table: Table, version: int, first: int, end: int) -> pa.Table:
    """Return the rows of a window in the order of their numbers."""
    condition = f"sequence >= {max(first, 1)} AND sequence < {end}"
    rows = table.scan(_COLUMNS, condition, version=version).to_arrow()
    return rows.sort_by([("sequence", "ascending"), ("audit_id", "ascending")])


class _Walk:
    """Goes along the chain and gathers what is wrong."""

    def __init__(self, remembered: Head | None, lost: Sequence[Head]) -> None:
        self.erased = 0
        self.last = GENESIS
        # The hash that the last row should have had: if that row alone was changed, the next one still fits this.
        self._should_be: bytes | None = GENESIS.hash
        self._remembered = remembered
        self._lost = set(lost)
        self._problems: list[Problem] = []

    def problem(self, sequence: int, kind: ProblemKind, message: str) -> None:
        """Note something wrong."""
        self._problems.append(Problem(sequence, kind, message))

    def sorted_problems(self) -> list[Problem]:
        """Return everything noted, by sequence."""
        return sorted(self._problems, key=lambda one: one.sequence)

    def hidden(self, first: int, rows: int) -> None:
        """Note rows that a condition does not meet."""
        self.problem(
            first, ProblemKind.HIDDEN, f"{rows} rows from here on are not found by their sequence number."
        )

    def step(self, row: _Row) -> None:
        """Look at the next row."""
        sequence: int = row["sequence"]
        if sequence == self.last.sequence:
            self.problem(sequence, ProblemKind.DOUBLED, f"Entry {sequence} is there more than once.")
            return
        if sequence > self.last.sequence + 1:
            self._gap(self.last.sequence + 1, sequence - 1)
        self._check_hash(row)
        self._check_personal_fields(row)
        if row["date_partition"] != (row["timestamp"] or "")[:10]:
            day = row["date_partition"]
            self.problem(
                sequence, ProblemKind.MISPLACED, f"Entry {sequence} stands in the partition of {day}."
            )
        self.last = Head(sequence, _from_hex(row["entry_hash"]))
        self._check_remembered()
        self._lost.discard(self.last)

    def end(self, told: Head | None) -> None:
        """Compare the end with what the newest commit tells and what is remembered elsewhere."""
        for witness, head in (("the newest commit", told), ("this machine", self._remembered)):
            if head is None or head.sequence <= self.last.sequence:
                continue
            gone = head.sequence - self.last.sequence
            self.problem(
                self.last.sequence + 1,
                ProblemKind.CUT,
                f"{gone} entries at the end are gone: {witness} knows the log up to entry {head.sequence}.",
            )
        for lost in self._lost:
            message = (
                f"This machine knew another entry {lost.sequence}: the log was cut off before it or replaced, and then "
                "went on."
            )
            self.problem(lost.sequence, ProblemKind.CUT, message)
        if told is not None and told.sequence <= self.last.sequence and told != self.last:
            self.problem(
                self.last.sequence,
                ProblemKind.CUT,
                "The end of the log is not the one that the newest commit tells.",
            )

    def _gap(self, first: int, last: int) -> None:
        which = f"Entry {first} is" if first == last else f"Entries {first} to {last} are"
        self.problem(first, ProblemKind.MISSING, f"{which} gone.")
        # What the next entry was chained to is gone with them.
        self._should_be = None

    def _check_hash(self, row: _Row) -> None:
        fields = ChainFields(**{name: row[name] for name in _CHAINED})
        stored = _from_hex(row["entry_hash"])
        follows_gap = self._should_be is None
        before = [self.last.hash, self._should_be or self.last.hash]
        hashes = [entry_hash(previous, fields) for previous in before]
        self._should_be = stored if stored in hashes else hashes[0]
        if follows_gap:
            self._should_be = stored
        elif stored not in hashes:
            sequence = row["sequence"]
            message = f"Entry {sequence} does not follow from the one before it: one of the two was changed."
            self.problem(sequence, ProblemKind.ALTERED, message)

    def _check_personal_fields(self, row: _Row) -> None:
        sequence, salt = row["sequence"], row["salt"]
        personal = (row["user_id"], row["details"], row["ip_address"])
        if not salt:
            self.erased += 1
            is_right = not any(personal)
        else:
            is_right = commitment(_from_hex(salt), *personal).hex() == row["commitment"]
        if not is_right:
            message = f"The personal fields of entry {sequence} are not those that were chained."
            self.problem(sequence, ProblemKind.ALTERED, message)

    def _check_remembered(self) -> None:
        head = self._remembered
        if head is not None and head.sequence == self.last.sequence and head.hash != self.last.hash:
            message = (
                f"Entry {head.sequence} is not the one that this machine remembers: the log was replaced."
            )
            self.problem(head.sequence, ProblemKind.CUT, message)


def _from_hex(text: str | None) -> bytes:
    """Return the bytes of a hexadecimal text; none for a text that is not one, which no hash or salt of ours equals."""
    try:
        return bytes.fromhex(text or "")
    except ValueError:
        return b""
