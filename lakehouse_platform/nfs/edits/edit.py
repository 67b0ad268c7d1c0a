"""One client's edit of one table: its log, its draft, and how far it is in the table. Blocking: call in a thread."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa

from lakehouse_platform.nfs.content import Buffer, Content
from lakehouse_platform.nfs.edits.arrivals import Arrivals, Rules
from lakehouse_platform.nfs.edits.classify import new_part
from lakehouse_platform.nfs.edits.constraints import violations_of
from lakehouse_platform.nfs.edits.draft import Draft, Overlay, chunks, joined, shared_until
from lakehouse_platform.nfs.edits.session import Shape
from lakehouse_platform.nfs.edits.spool import RecordKind, Spool, SpoolLog
from lakehouse_platform.nfs.edits.view import View
from lakehouse_platform.nfs.operations import NfsError, Status
from lakehouse_platform.nfs.tree.image import Image
from lakehouse_platform.store.commit import AppTransaction
from lakehouse_platform.store.new_keys import find_duplicate_key
from lakehouse_platform.store.pinned import Pinned
from lakehouse_platform.store.properties import allows_missing_columns

_APP = "lakehouse-nfs-"


@dataclass(frozen=True, slots=True)
class Publication:
    """What is to become one commit.

    Attributes:
        base: What the client saw.
        names: The columns of its lines.
        new: What it wants to see.
        transaction: Makes the commit at most once.
        allow_missing: Whether the header may leave nullable columns out.
    """

    base: Content
    names: tuple[str, ...]
    new: Content
    transaction: AppTransaction
    allow_missing: bool = False


class Edit:
    """A draft with its log; goes on after a publication, then counted from what was published.

    Attributes:
        version: The version of the last publication, None before the first.
        image: What shines through the draft.
        base: What the next changes are counted from: the image, or what was published last.
        sequence: How often it was published, and other edits with the same log before.
        attempt: What was to be published, while it is not known whether it was.
        is_uncommitted: Whether there are unstable WRITEs that the client may send again.
        awaits_commit: Whether there are unstable WRITEs that no COMMIT has followed yet: the client has not closed.
    """

    def __init__(self, log: SpoolLog, image: Image, view: View, quota: int) -> None:
        self.log = log
        self.image = image
        self.base: Content = image
        self.draft = Draft(image, log)
        self.version: int | None = None
        self.sequence = log.count
        self.attempt: Overlay | None = None
        self.is_uncommitted = False
        self.awaits_commit = False
        self._view = view
        self._quota = quota
        self._is_noted = True
        self._names = tuple(image.schema.names)
        self._rules = _rules(view, image)
        self._arrivals = Arrivals(image, self._names, self._rules)

    @classmethod
    def begin(cls, spool: Spool, mount: bytes, view: View, image: Image) -> Edit:
        """Open an edit of what a client saw.

        Raises:
            NfsError: The spool is full (NOSPC).
        """
        log = spool.take()
        facts = {"mount": mount.hex(), "view": view.key.hex(), "version": image.version, "size": image.size}
        try:
            log.note(RecordKind.OPEN, facts=facts)
        except NfsError:
            log.drop()
            raise
        return cls(log, image, view, spool.quota_bytes)

    @property
    def content(self) -> Overlay:
        """The draft as it is now, to be read while it may change."""
        return self.draft.freeze()

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of the lines of the base."""
        return self._names

    @property
    def rows_end(self) -> int:
        """Where the whole rows of an append end."""
        return self._arrivals.rows_end()

    # ── Changing ──────────────────────────────────────────────────────────────────────────────────

    def write(self, offset: int, data: memoryview, *, stable: bool = True) -> Shape | None:
        """Take a WRITE and return what the draft looks like then; None if nothing changed.

        Raises:
            NfsError: It is too large (FBIG) or the spool is full (NOSPC); nothing changed.
            RowError, DuplicateKeyError: A row is wrong; its bytes are in the draft.
        """
        if offset + len(data) > self.base.size + self._quota:
            raise NfsError(Status.FBIG, "the edit is larger than the spool")
        part = new_part(offset, data, self.draft.peek())
        if part is None:
            return None
        start, new = part
        self.note_published()
        place = self.log.write(start, new, stable=stable)
        self.awaits_commit = self.awaits_commit or not stable
        self.draft.write(start, len(new), place)
        self._arrivals.touch(start)
        shape = self.look()
        changed = start + len(new) - offset
        self._arrivals.check_patch(self.draft.peek(), offset, offset + _line_end(data, changed))
        return shape

    def commit(self) -> None:
        """Make unstable WRITEs durable, on behalf of the client.

        Raises:
            NfsError: The spool is full (NOSPC) or its disk refused (IO).
        """
        if self.awaits_commit:
            self.log.note(RecordKind.COMMITTED)
            self.awaits_commit = False
        self.log.sync()

    def truncate(self, size: int) -> Shape:
        """Cut the draft.

        Raises:
            NfsError: The spool is full (NOSPC); nothing changed.
            RowError, DuplicateKeyError: A row is wrong.
        """
        self.note_published()
        self.log.note(RecordKind.TRUNCATE, size)
        self.apply_truncate(size)
        return self.look()

    @property
    def is_clean(self) -> bool:
        """Whether the draft is what was published last, or nothing was changed yet."""
        draft = self.draft.peek()
        return draft.size == self.base.size and _same_all(self.base, draft)

    @property
    def ends_line(self) -> bool:
        """Whether what was published last ends with a line end, as the table will show it."""
        return joined(self.base, self.base.size - 1, 1) == b"\n"

    def look(self) -> Shape:
        """Check what is new in the draft; see `Arrivals.look`."""
        return self._arrivals.look(self.draft.peek())

    def ends_row(self, size: int) -> bool:
        """Tell whether the draft could be cut at a size without cutting a row."""
        draft = self.draft.peek()
        if size == 0:
            return True
        return joined(draft, size - 1, 1) == b"\n" and not _is_quoted(draft, size)

    # ── Publishing ────────────────────────────────────────────────────────────────────────────────

    @property
    def app_id(self) -> str:
        """What the edit's commits are known by."""
        return f"{_APP}{self.log.id}"

    def publication(self, stop: int) -> Publication:
        """Return what is to be committed of the draft up to `stop`.

        The commit itself tells that everything in the log is published. If something stays, the log says so first.

        Raises:
            NfsError: The spool is full (NOSPC).
        """
        transaction = AppTransaction(self.app_id, self.sequence + 1)
        if stop < self.draft.size:
            self.note_published()
            self.log.note(RecordKind.INTENT, stop, {"sequence": transaction.version})
            self.log.sync()
        self.attempt = _cut(self.draft.freeze(), stop)
        return Publication(self.base, self._names, self.attempt, transaction, self._rules.allow_missing)

    def published(self, version: int) -> Shape | None:
        """Count further changes from what was attempted; return what the rest looks like, None if there is none."""
        assert self.attempt is not None  # noqa: S101 - a publication goes before
        self.sequence += 1
        self._is_noted = False
        self.awaits_commit = self.awaits_commit and self.draft.size > self.attempt.size
        self._rebase(self.attempt, version)
        self.attempt = None
        return self.look() if self.draft.size > self.base.size else None

    def not_published(self) -> None:
        """The attempt has certainly not landed."""
        self.attempt = None

    def note_published(self) -> None:
        """Log that everything so far is published, before anything else is logged."""
        if not self._is_noted:
            facts = {"sequence": self.sequence, "version": self.version}
            self.log.note(RecordKind.PUBLISHED, self.base.size, facts)
            self._is_noted = True

    def note_created(self, mount: bytes) -> None:
        """Log that something takes the place of what a client has removed.

        Raises:
            NfsError: The spool is full (NOSPC).
        """
        self.note_published()
        self.log.note(RecordKind.CREATED, facts={"mount": mount.hex()})

    def revert(self) -> None:
        """Go back to what was published last.

        Raises:
            NfsError: The spool is full (NOSPC); nothing changed.
        """
        self.note_published()
        self.log.note(RecordKind.REVERTED)
        self.apply_reverted()

    def drop(self) -> None:
        """Give the edit up. An attempt may have landed, so it counts."""
        self.log.drop(self.sequence + 1)

    # ── What is kept of a refused edit ────────────────────────────────────────────────────────────

    def parts(self) -> Iterator[Buffer]:
        """Yield the bytes that the client wrote: all of a rewritten file, else what was added or changed."""
        draft = self.draft.peek()
        at = 0
        while at < draft.size:
            known = at if self._arrivals.is_cut or at >= self.base.size else _same(self.base, draft, at)
            if known > at:
                at = known
                continue
            piece = next(draft.pieces(at, draft.size))
            yield from chunks(draft, at, piece.stop)
            at = piece.stop

    # ── Recovery ──────────────────────────────────────────────────────────────────────────────────

    def apply_write(self, offset: int, length: int, place: int, *, stable: bool) -> None:
        """Repeat a logged WRITE, which its client may not know to be done and send again."""
        self.awaits_commit = self.awaits_commit or not stable
        self.draft.write(offset, length, place)
        self._arrivals.touch(offset)
        self.is_uncommitted = True

    def apply_committed(self) -> None:
        """Repeat a logged COMMIT."""
        self.awaits_commit = False

    def apply_truncate(self, size: int) -> None:
        """Repeat a logged cut."""
        self.draft.truncate(size)
        self._arrivals.cut(size)

    def apply_reverted(self) -> None:
        """Repeat a logged revert."""
        self.awaits_commit = False
        if isinstance(self.base, Overlay):
            self.draft.restore(self.base)
        self._arrivals = Arrivals(self.base, self._names, self._rules)

    def apply_published(self, stop: int, sequence: int, version: int) -> None:
        """Repeat a logged publication."""
        self.awaits_commit = self.awaits_commit and stop < self.draft.size
        self.sequence = sequence
        self._rebase(_cut(self.draft.freeze(), stop), version)

    def _rebase(self, published: Overlay, version: int) -> None:
        self.base = published
        self.version = version
        self._names = self._arrivals.names
        self._arrivals = Arrivals(self.base, self._names, self._rules)


def _line_end(data: memoryview, at: int) -> int:
    """Return the end of the line that holds the byte before `at`.

    What follows is as it was. If the change made the file shorter, that is the rest of a row which is cut next.
    """
    return bytes(data).find(b"\n", at - 1) + 1 or len(data)


def _is_quoted(content: Content, at: int) -> bool:
    """Tell whether a place lies inside a quoted field, where a line end is only a part of a value."""
    return sum(data.count(b'"') for data in chunks(content, 0, at)) % 2 == 1


def _same(base: Content, draft: Overlay, start: int) -> int:
    return shared_until(base, draft, start, min(base.size, draft.size))


def _same_all(base: Content, draft: Overlay) -> bool:
    at = 0
    while at < draft.size:
        known = shared_until(base, draft, at, draft.size)
        if known == at:
            return False
        at = known
    return True


def _cut(overlay: Overlay, size: int) -> Overlay:
    return overlay if size >= overlay.size else replace(overlay, size=size, floor=min(overlay.floor, size))


def _rules(view: View, image: Image) -> Rules:
    violations = violations_of(image.constraints, image.schema) if image.constraints else None
    return Rules(
        image.schema,
        tuple(image.key),
        violations,
        partial(_known_key, view),
        allow_missing=allows_missing(view),
    )


def _known_key(view: View, rows: pa.Table) -> str | None:
    pinned = view.images.pinned
    pinned = Pinned.open(view.table) if pinned is None else pinned.newer()
    return find_duplicate_key(pinned, rows)


def allows_missing(view: View) -> bool:
    """Tell whether a header may leave nullable columns of a table out."""
    pinned = view.images.pinned
    return pinned is not None and allows_missing_columns(pinned.properties)
