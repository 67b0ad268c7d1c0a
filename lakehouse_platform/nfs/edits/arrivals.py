"""A draft's bytes checked as they arrive: what is wrong fails the WRITE that brings it. Blocking: call in a thread."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from lakehouse_platform.errors import DuplicateKeyError, InfrastructureError, RowError
from lakehouse_platform.nfs.content import Content
from lakehouse_platform.nfs.edits.check import RowChecker, Violations
from lakehouse_platform.nfs.edits.draft import Overlay, chunks, equal_until, joined
from lakehouse_platform.nfs.edits.rows import RowSplitter
from lakehouse_platform.nfs.edits.session import Ending, Shape
from lakehouse_platform.text.csv_edit import parse_columns, without_blank_end

_LOG = logging.getLogger(__name__)
_LINE_END = b"\n"


@dataclass(frozen=True, slots=True)
class Rules:
    """What rows of a table must fulfil.

    Attributes:
        schema: The columns.
        key: The declared key.
        violations: Finds rows that break a CHECK constraint.
        known_key: Tells why the table's declared key forbids appending some rows; None if it does not.
        allow_missing: Whether a header may leave nullable columns out.
    """

    schema: pa.Schema
    key: tuple[str, ...]
    violations: Violations | None
    known_key: Callable[[pa.Table], str | None]
    allow_missing: bool = False


class Arrivals:
    """Checks one draft against the content that it changes, in the order of the file, each byte once if possible."""

    def __init__(self, base: Content, names: Sequence[str], rules: Rules) -> None:
        self._base = base
        self._names = tuple(names)
        self._rules = rules
        self._whole_base = not base.size or joined(base, base.size - 1, 1) == _LINE_END
        self._touched = base.size
        self._equal = base.size
        self._diverged = False
        self._is_cut = False
        self._begin()

    def touch(self, offset: int) -> None:
        """Note that the draft changed from an offset on."""
        self._touched = min(self._touched, offset)
        if offset <= self._equal:
            self._equal = offset
            self._diverged = False
        if offset < self._at:
            self._begin()

    def cut(self, size: int) -> None:
        """Note that the draft was cut."""
        self._is_cut = self._is_cut or size < self._base.size
        self.touch(size)

    def look(self, draft: Overlay) -> Shape:
        """Check what is new and return what the draft looks like now.

        Raises:
            RowError: A row is wrong.
            DuplicateKeyError: A row that is appended has a key that the table holds.
        """
        self._compare(draft)
        if self._is_patch:
            return self._patch_shape(draft)
        try:
            self._check(draft)
        except RowError as error:
            raise _placed(draft, error) from error
        return self._shape(draft)

    # ── Comparing ─────────────────────────────────────────────────────────────────────────────────

    def _compare(self, draft: Overlay) -> None:
        if self._diverged:
            return
        known = min(draft.known_until(self._equal), self._base.size)
        self._equal = max(self._equal, equal_until(self._base, draft, self._equal, known))
        self._diverged = self._equal < known

    def _is_append(self, draft: Overlay) -> bool:
        return self._whole_base and self._equal >= self._base.size < draft.size

    @property
    def is_cut(self) -> bool:
        """Whether the draft was cut inside of its base."""
        return self._is_cut

    @property
    def _is_patch(self) -> bool:
        """Whether the base still shines through behind the first change: only touched rows are then checked."""
        return not self._is_cut and self._equal < self._base.size

    # ── Checking in order ─────────────────────────────────────────────────────────────────────────

    def _check(self, draft: Overlay) -> None:
        known = draft.known_until(self._at)
        trusted = min(known, self._equal)
        for data in chunks(draft, self._at, trusted):
            self._feed(data, trusted=True)
        for data in chunks(draft, self._at, known):
            self._feed(data, trusted=False)

    def _begin(self) -> None:
        """Begin at the end of the base if that is still there, else at the header."""
        self._splitter = RowSplitter()
        rules = self._rules
        appends = self._touched >= self._base.size and self._whole_base and self._base.size > 0
        self._at = self._base.size if appends else 0
        self._checker = RowChecker(
            rules.schema,
            rules.key,
            rules.violations,
            self._names if appends else None,
            allow_missing=rules.allow_missing,
            first_offset=self._at,
        )

    def _feed(self, data: bytes, *, trusted: bool) -> None:
        at = self._at
        self._at += len(data)
        self._checker.feed(data, trusted=trusted)
        rows = self._splitter.feed(data)
        if rows and self._rules.key and at >= self._base.size <= self._equal:
            self._check_known_keys(rows)

    def _check_known_keys(self, rows: bytes) -> None:
        names = self.names
        sound = without_blank_end(rows, len(names))
        if not sound:
            return
        keys = parse_columns(sound, names, self._rules.schema, self._rules.key)
        try:
            reason = self._rules.known_key(keys)
        except InfrastructureError:
            _LOG.warning("keys are checked when the rows are published: the storage does not answer")
            return
        if reason:
            raise DuplicateKeyError(reason)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of the draft's lines, as far as they are known."""
        return self._checker.names or self._names

    # ── Shapes ────────────────────────────────────────────────────────────────────────────────────

    def _shape(self, draft: Overlay) -> Shape:
        is_append = self._is_append(draft)
        is_prefix = draft.size < self._base.size and self._equal >= draft.size
        ending = self._ending(draft)
        return Shape(
            is_append=is_append,
            size=draft.size,
            ending=ending,
            has_rows=is_append and self._rows_end() > self._base.size,
            added=draft.size - self._base.size if is_append else 0,
            is_cautious=is_prefix or (not is_append and self._is_header_only()),
            cuts_row=is_prefix
            and ending is Ending.TAIL
            and not _ends_line(joined(self._base, draft.size, 2)),
        )

    def rows_end(self) -> int:
        """Return where the whole rows of an append end."""
        return max(self._rows_end(), self._base.size)

    def _rows_end(self) -> int:
        return self._at - self._splitter.rest_size

    def _is_header_only(self) -> bool:
        return self._checker.rows == 0 and (self._checker.names is None or self._splitter.is_whole)

    def _ending(self, draft: Overlay) -> Ending:
        if draft.known_until(self._at) < draft.size:
            return Ending.BROKEN
        if self._splitter.is_whole:
            return Ending.WHOLE
        return self._tail_ending(self._splitter.rest, self._checker.names)

    def _tail_ending(self, rest: bytes, names: Sequence[str] | None) -> Ending:
        rules = self._rules
        trial = RowChecker(rules.schema, (), rules.violations, names, allow_missing=rules.allow_missing)
        try:
            trial.feed(rest)
            trial.finish()
        except RowError:
            return Ending.BROKEN
        return Ending.TAIL

    def _patch_shape(self, draft: Overlay) -> Shape:
        if draft.known_until(self._equal) < draft.size:
            return Shape(is_append=False, size=draft.size, ending=Ending.BROKEN)
        whole = joined(draft, draft.size - 1, 1) == _LINE_END
        return Shape(
            is_append=False,
            size=draft.size,
            ending=Ending.WHOLE if whole else self._tail_ending(_last_line(draft), self._names),
        )

    def check_patch(self, draft: Overlay, start: int, stop: int) -> None:
        """Check the rows that lie wholly in a WRITE into the midst of the file.

        Rows at its edges may get the rest of their bytes from other WRITEs. Where there are quotes, line ends alone
        do not tell rows, and the publication checks.

        Raises:
            RowError: A row is wrong.
        """
        if not self._is_patch:
            return
        start = max(start, _header_size(self._base))
        before = joined(draft, start - 1, 1) if start else _LINE_END
        data = joined(draft, start, stop - start)
        first = 0 if before == _LINE_END else data.find(_LINE_END) + 1
        rows = data[first : data.rfind(_LINE_END) + 1] if first or before == _LINE_END else b""
        if not rows or b'"' in data:
            return
        rules = self._rules
        checker = RowChecker(rules.schema, (), rules.violations, self._names, first_offset=start + first)
        try:
            checker.feed(rows)
        except RowError as error:
            raise _placed(draft, error) from error


def _header_size(content: Content) -> int:
    start = joined(content, 0, 1 << 16)
    return start.find(_LINE_END) + 1


def _placed(content: Content, error: RowError) -> RowError:
    """Return the error with its line in the whole content, which is counted only now."""
    line = 1 + sum(data.count(_LINE_END) for data in chunks(content, 0, error.offset))
    return RowError(line, error.column, error.reason, error.offset)


def _ends_line(data: bytes) -> bool:
    return data.startswith(_LINE_END) or data == b"\r\n"


def _last_line(content: Content) -> bytes:
    data = joined(content, max(0, content.size - (1 << 16)), 1 << 16)
    return data[data.rfind(_LINE_END) + 1 :]
