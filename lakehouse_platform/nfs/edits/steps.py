"""The steps of an edit that block: they run in threads, and what they return is applied on the event loop."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from uuid import uuid4

from lakehouse_platform.errors import (
    AuditError,
    CommitConflictError,
    CommitOutcomeUnknownError,
    InfrastructureError,
    LakehouseError,
    RowError,
)
from lakehouse_platform.nfs.content import Content
from lakehouse_platform.nfs.edits.classify import classify
from lakehouse_platform.nfs.edits.client import CACHED_S, Client
from lakehouse_platform.nfs.edits.draft import chunks, equal_until, shared_until
from lakehouse_platform.nfs.edits.edit import Edit, Publication, allows_missing
from lakehouse_platform.nfs.edits.gaps import Gap
from lakehouse_platform.nfs.edits.landing import landed_sequence, resolve
from lakehouse_platform.nfs.edits.permits import OWNERS, Commit, Permits, Tell
from lakehouse_platform.nfs.edits.publish import publish
from lakehouse_platform.nfs.edits.rejected import Refusal, Rejected
from lakehouse_platform.nfs.edits.session import Hole, Shape
from lakehouse_platform.nfs.edits.spool import RecordKind, Spool
from lakehouse_platform.nfs.edits.view import View
from lakehouse_platform.nfs.operations import NfsError, Status
from lakehouse_platform.nfs.tree.calls import current_call
from lakehouse_platform.nfs.tree.handles import owned
from lakehouse_platform.nfs.tree.image import Image
from lakehouse_platform.store.commit import AppTransaction

_LOG = logging.getLogger(__name__)
# A writer that keeps the file open would fill the spool with what is published.
_LONG_LOG = 64 << 20


@dataclass(frozen=True, slots=True)
class Taken:
    """What a change has made.

    Attributes:
        edit: The edit that it went into.
        shape: What its draft looks like; None if nothing changed.
        error: Why the change is refused, and the edit with it.
        published: Whether an attempt of before was found to have landed.
    """

    edit: Edit
    shape: Shape | None = None
    error: LakehouseError | NfsError | None = None
    published: bool = False


@dataclass(frozen=True, slots=True)
class Published:
    """A publication that has landed.

    Attributes:
        rest: What is left of the draft.
        image: The image that the client's file now equals, if that was looked for: the log can go.
        is_shown: Whether the table's images hold it; if not, its client sees what it wrote, and need not wait.
        untold: Why the audit log does not have it, if it does not.
    """

    rest: Shape | None
    image: Image | None = None
    is_shown: bool = True
    untold: Untold | None = None


@dataclass(frozen=True, slots=True)
class Untold:
    """A commit that the audit log does not have, though it belongs there.

    Attributes:
        commit: The commit.
        error: Why.
    """

    commit: Commit
    error: LakehouseError


@dataclass(frozen=True, slots=True)
class Replaced:
    """A file that took the place of the view.

    Attributes:
        image: The newest image, which holds it; None if the storage does not answer now.
        untold: Why the audit log does not have it, if it does not.
    """

    image: Image | None
    untold: Untold | None = None


@dataclass(frozen=True, slots=True)
class Failed:
    """A publication that has not landed, as far as is known.

    Attributes:
        error: Why.
        may_pass: Whether to try again.
    """

    error: LakehouseError | NfsError
    may_pass: bool


@dataclass(frozen=True, slots=True)
class Steps:
    """The steps, for the clients of one server; each is called while the client's lock is held.

    Attributes:
        spool: Where logs are made.
        rejected: Where refused bytes are kept.
        now_ns: Nanoseconds since 1970.
        permits: As whom edits become commits, and whether they may.
    """

    spool: Spool
    rejected: Rejected
    now_ns: Callable[[], int]
    permits: Permits = OWNERS

    # ── Changing ──────────────────────────────────────────────────────────────────────────────────

    def write(self, client: Client, offset: int, data: memoryview, now: float, stable: bool) -> Taken | None:
        """Take a WRITE, on the disk if it is to be stable; None if it changes nothing.

        Raises:
            NfsError: FBIG, NOSPC, JUKEBOX; nothing changed.
        """
        taken = self._written(client, offset, data, now, stable)
        edit = taken.edit if taken else client.edit if client.is_open else None
        if not stable or edit is None or (taken and taken.error):
            return taken
        try:
            edit.log.sync()
        except NfsError as error:
            return Taken(edit, error=error, published=taken is not None and taken.published)
        return taken

    def _written(
        self, client: Client, offset: int, data: memoryview, now: float, stable: bool
    ) -> Taken | None:
        landed = resolve(client)
        # The beginning of a row that is left of what has landed is in the same draft.
        goes_on = client.is_open and (landed is None or landed.rest is not None)
        published = landed is not None
        edit = client.edit if goes_on else self._opened(client, offset, data, now)
        if edit is None:
            return None
        try:
            return Taken(edit, edit.write(offset, data, stable=stable), published=published)
        except LakehouseError as error:
            return Taken(edit, error=error, published=published)
        except NfsError as error:
            if goes_on:
                # Half a file must not be published.
                return Taken(edit, error=error)
            if edit is not client.edit:
                edit.drop()
            raise

    def truncate(self, client: Client, size: int, now: float) -> Taken | None:
        """Cut the file; None if it has this size already.

        Raises:
            NfsError: INVAL, NOSPC; nothing changed.
        """
        published = resolve(client) is not None
        # What overwrites a file was made from what was read; opening it told its size only by the way.
        before = client.ghost if size else client.unread_edit(now)
        known = client.edit if client.is_open else before
        content = known.draft.peek() if known else self.told(client)
        if size == content.size:
            return None
        if size > content.size:
            raise NfsError(Status.INVAL, "the file can only grow by writing rows")
        seen = self._before_eyes(client, now) if size == 0 else self.told(client)
        edit = known or Edit.begin(self.spool, client.mount, client.view, seen)
        if not edit.ends_row(size):
            if edit is not known:
                edit.drop()
            raise NfsError(Status.INVAL, f"a file of {size} bytes would end in the middle of a row")
        return _cut(edit, size, published)

    def fill(self, client: Client, gap: Gap, now: float) -> Taken:
        """Begin to overwrite what was removed or moved away."""
        if gap.hole.mount == client.mount:
            edit = gap.edit or Edit.begin(self.spool, client.mount, client.view, gap.image)
        else:
            edit = Edit.begin(self.spool, client.mount, client.view, self._before_eyes(client, now))
        if gap.edit is not None:
            gap.edit.note_created(gap.hole.mount)
        taken = _cut(edit, 0, published=False)
        edit.log.sync()
        if gap.edit is not None and gap.edit is not edit:
            gap.edit.drop()
        return taken

    def _opened(self, client: Client, offset: int, data: memoryview, now: float) -> Edit | None:
        """Return the edit that a WRITE outside a draft goes into; None if it changes nothing."""
        sights = client.sights(self.told(client), now)
        opened = classify(offset, data, [sight for sight, _ in sights])
        if opened is None:
            return None
        based_on = sights[opened.index][1]
        if isinstance(based_on, Edit):
            return based_on
        if not opened.is_append and opened.index == 0:
            based_on = client.patched(based_on, now)
        return Edit.begin(self.spool, client.mount, client.view, based_on)

    def told(self, client: Client) -> Image:
        """Return the image that a client was told last, the newest if that is not known."""
        if client.told is not None:
            return client.told
        images = client.view.images
        newest = images.current() or images.refresh()
        if client.told_version is None or client.told_version == newest.version:
            return newest
        return self.image(client.view, client.told_version) or newest

    def image(self, view: View, version: int) -> Image | None:
        """Return the image of a version that a client knows; None if it cannot be read any more."""
        newest = view.images.current()
        if newest is not None and newest.version == version:
            return newest
        try:
            return view.images.at(version)
        except LakehouseError:
            _LOG.warning("version %d that a client knows cannot be read any more", version)
            return None

    # ── Publishing ────────────────────────────────────────────────────────────────────────────────

    def publish(self, client: Client, whole_rows: bool) -> Published | Failed:
        """Commit a client's draft, or of an append only the whole rows."""
        edit = client.edit
        assert edit is not None  # noqa: S101 - a session that is open has one
        is_append = client.state.is_append
        try:
            landed = resolve(client)
            if landed is None:
                stop = edit.rows_end if whole_rows else edit.draft.size
                commit, untold = self._commit(client, edit.publication(stop), edit.image)
                rest = edit.published(commit.version)
            else:
                untold = self.write_down(Commit(client.mount, client.view, landed.version))
                rest = landed.rest
        except (InfrastructureError, CommitOutcomeUnknownError, AuditError, NfsError) as error:
            return Failed(error, may_pass=True)
        except LakehouseError as error:
            edit.not_published()
            return Failed(error, may_pass=False)
        self._note_published(client.view, edit)
        if is_append and edit.log.size <= _LONG_LOG and edit.ends_line:
            return Published(rest, is_shown=False, untold=untold)
        image = self._show(client.view)
        if rest is None and image is not None and edit.log.size > _LONG_LOG and _shows(image, edit):
            return Published(rest, image, untold=untold)
        return Published(rest, is_shown=image is not None, untold=untold)

    def replace(self, client: Client, moved: Gap | None, content: Content, now: float) -> Replaced:
        """Commit a file that takes the place of the view.

        Raises:
            LakehouseError: It does not fit, or others changed the same rows; its bytes are kept.
        """
        base, names, image = self._replaced(client, moved, now)
        if moved is not None and moved.edit is not None:
            # Otherwise a restart that comes after the commit would go on with the removal, and delete it.
            moved.edit.note_created(moved.hole.mount)
            moved.edit.log.sync()
        transaction = AppTransaction(_replace_id(), 1)
        try:
            allow_missing = allows_missing(client.view)
            publication = Publication(base, names, content, transaction, allow_missing)
            untold = self._commit(client, publication, image)[1]
        except LakehouseError as error:
            # The same call as before a restart finds its own change where it looks for the old rows.
            if isinstance(error, CommitConflictError) and landed_sequence(client.view, transaction.app_id):
                return Replaced(self._show(client.view))
            self.rejected.keep(
                client.shelf, chunks(content, 0, content.size), refusal_of(error), self.now_ns()
            )
            raise
        return Replaced(self._show(client.view), untold)

    def _replaced(
        self, client: Client, moved: Gap | None, now: float
    ) -> tuple[Content, tuple[str, ...], Image]:
        """Return what the maker of a new file had before its eyes."""
        ghost = client.unread_edit(now)
        if moved is not None and moved.hole.mount != client.mount:
            moved = None  # another client's removal says nothing of what this one has seen
        if moved is not None and moved.edit is not None:
            ghost = moved.edit
        if ghost is not None:
            return ghost.base, ghost.names, ghost.image
        image = moved.image if moved is not None else self._before_eyes(client, now)
        return image, tuple(image.schema.names), image

    def _commit(self, client: Client, publication: Publication, image: Image) -> tuple[Commit, Untold | None]:
        def act(tell: Tell) -> int:
            return publish(client.view, publication, image, tell)

        return self._permitted(client.mount, client.view, act)

    def _permitted(
        self, mount: bytes, view: View, act: Callable[[Tell], int]
    ) -> tuple[Commit, Untold | None]:
        """Commit as whoever a mount belongs to; return the commit, and why the audit log does not have it.

        Raises:
            LakehouseError: Nothing is committed, as far as is known.
        """
        rows: list[int] = []
        landed: list[Commit] = []

        def noted(tell: Tell) -> int:
            def both(count: int) -> None:
                rows.append(count)
                tell(count)

            version = act(both)
            landed.append(Commit(mount, view, version, rows[-1] if rows else None))
            return version

        try:
            self.permits.publish(mount, view, noted)
        except LakehouseError as error:
            if not landed:
                raise
            return landed[0], Untold(landed[0], error)
        return landed[0], None

    def write_down(self, commit: Commit) -> Untold | None:
        """Write down a commit that the audit log does not have; return why that cannot be, if it cannot."""
        try:
            self.permits.write_down(commit)
        except LakehouseError as error:
            return Untold(commit, error)
        return None

    def _note_published(self, view: View, edit: Edit) -> None:
        """Note a publication in the log, which can also be done later."""
        try:
            edit.note_published()
        except NfsError as error:
            _LOG.warning("after publishing %s: %s", view.table.name, error)

    def _show(self, view: View) -> Image | None:
        """Return the newest image; None if the storage does not answer now."""
        try:
            return view.images.refresh()
        except LakehouseError as error:
            _LOG.warning("after publishing %s: %s", view.table.name, error)
            return None

    # ── Refusing ──────────────────────────────────────────────────────────────────────────────────

    def reject(self, client: Client, edit: Edit, error: LakehouseError | NfsError) -> str:
        """Keep the bytes of an edit that are not published aside; return the name under which."""
        try:
            return self.rejected.keep(client.shelf, edit.parts(), refusal_of(error), self.now_ns())
        except OSError as full:
            _LOG.error("a refused edit cannot be copied (%s): it is kept in the spool", full.strerror)
            edit.log.set_aside()
            return ""

    def revert(self, edit: Edit) -> bool:
        """Go back to what an edit published last; tell whether that could be done."""
        if edit.version is None:
            return False
        try:
            edit.revert()
        except NfsError as error:
            _LOG.warning("an edit could not be reverted: %s", error)
            return False
        return True

    # ── Names ─────────────────────────────────────────────────────────────────────────────────────

    def remove(self, client: Client, now: float) -> Gap:
        """Begin to remove the view.

        Raises:
            NfsError: NOSPC.
        """
        image = self._before_eyes(client, now)
        edit = client.unread_edit(now) or Edit.begin(self.spool, client.mount, client.view, image)
        edit.note_published()
        edit.log.note(RecordKind.REMOVED, facts={"call": current_call().hex()})
        edit.log.sync()
        return Gap(client.view, Hole(client.mount, is_removed=True, since=now), image, edit)

    def move(self, client: Client, now: float) -> Gap:
        """Begin to move the view to another name."""
        image = self._before_eyes(client, now)
        return Gap(
            client.view, Hole(client.mount, is_removed=False, since=now), image, client.unread_edit(now)
        )

    def _before_eyes(self, client: Client, now: float) -> Image:
        """Return the image that a client sees, as far as it is known."""
        if client.ghost is not None:
            return client.view.images.refresh()
        if client.read is not None and now < client.read[1] + CACHED_S:
            # It read this, and was perhaps told a newer one only by the way.
            return client.read[0]
        return self.told(client)

    def delete_rows(self, gap: Gap) -> Untold | None:
        """Delete all rows of a view that was removed; return why the audit log does not have it, if it does not."""
        assert gap.edit is not None  # noqa: S101 - only a removal is followed by this
        table, transaction = gap.view.table, AppTransaction(gap.edit.app_id, gap.edit.sequence + 1)

        def delete(tell: Tell) -> int:
            deleted = table.delete_all(transaction=transaction)
            tell(deleted.rows_deleted)
            return deleted.version

        try:
            untold = self._permitted(gap.hole.mount, gap.view, delete)[1]
        except LakehouseError as error:
            self.rejected.say(
                owned(gap.hole.mount, gap.view.key),
                f"data.csv was removed, but its rows remain: {error}",
                self.now_ns(),
            )
            return None
        self._show(gap.view)
        return untold


def refusal_of(error: LakehouseError | NfsError) -> Refusal:
    """Return what is told about an error."""
    if isinstance(error, RowError):
        return Refusal(error.message, error.code, error.line, error.column)
    if isinstance(error, LakehouseError):
        return Refusal(error.message, error.code)
    return Refusal(str(error), error.status.name.lower())


def _shows(image: Image, edit: Edit) -> bool:
    """Tell whether an image is, to the byte, what an edit has appended to its own image."""
    old, base = edit.image, edit.base
    if image.size != base.size or tuple(image.segments)[: len(old.segments)] != tuple(old.segments):
        return False
    if image.schema != old.schema or shared_until(old, base, 0, old.size) != old.size:
        return False
    return equal_until(image, base, old.size, base.size) == base.size


def _cut(edit: Edit, size: int, published: bool) -> Taken:
    try:
        return Taken(edit, edit.truncate(size), published=published)
    except LakehouseError as error:
        return Taken(edit, error=error, published=published)


def _replace_id() -> str:
    """Return the id of a renaming, the same if the client asks again after a restart of the server."""
    return f"lakehouse-nfs-{current_call().hex() or uuid4().hex}"
