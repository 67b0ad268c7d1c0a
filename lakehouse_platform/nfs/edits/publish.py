"""A draft made one commit: rows appended, or a difference spliced into the newest version. Blocks: call in a thread."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import pyarrow as pa

from lakehouse_platform.errors import CommitConflictError, ConstraintViolationError, InvalidRowsError
from lakehouse_platform.nfs.content import Content
from lakehouse_platform.nfs.edits.changes import GhostImage, plan_changes
from lakehouse_platform.nfs.edits.draft import equal_until, joined
from lakehouse_platform.nfs.edits.edit import Publication
from lakehouse_platform.nfs.edits.explain import explained
from lakehouse_platform.nfs.edits.locate import locate
from lakehouse_platform.nfs.edits.permits import Tell, untold
from lakehouse_platform.nfs.edits.rows import RowSplitter
from lakehouse_platform.nfs.edits.view import View
from lakehouse_platform.nfs.tree.image import Image
from lakehouse_platform.text.csv_edit import parse_lines

# Between a look at the newest version and the commit, others commit; so often in a row is a table under siege.
_ATTEMPTS = 8
# Appends up to here are parsed at once and can be repeated; larger ones are streamed in steps of so many bytes.
_AT_ONCE = 64 << 20
_STEP = 8 << 20

Base: TypeAlias = Image | GhostImage


def publish(view: View, publication: Publication, image: Image, tell: Tell = untold) -> int:
    """Commit a publication and return the version that holds it; none is made if nothing changes.

    Args:
        view: The table.
        publication: What to commit.
        image: Any image that the base's rows are rows of, for the columns and the key.
        tell: Takes how many rows are added, changed and deleted.

    Raises:
        RowError, ConstraintViolationError, DuplicateKeyError, SchemaMismatchError: A row does not fit.
        CommitConflictError: Others changed the same rows.
        InfrastructureError, CommitOutcomeUnknownError: The storage failed; repeating is safe.
    """
    base, new = publication.base, publication.new
    try:
        if _is_append(base, new):
            return _append(view, publication, image, tell)
        return _rewrite(view, publication, _as_base(base, image), tell)
    except (InvalidRowsError, ConstraintViolationError) as error:
        raise explained(error, new, image, allow_missing=publication.allow_missing) from error


def _is_append(base: Content, new: Content) -> bool:
    if new.size <= base.size or (base.size and joined(base, base.size - 1, 1) != b"\n"):
        return False
    return base.size > 0 and equal_until(base, new, 0, base.size) == base.size


def _as_base(base: Content, image: Image) -> Base:
    if base is image:
        return image
    return GhostImage(base, image.schema, tuple(image.key))


def _append(view: View, publication: Publication, image: Image, tell: Tell) -> int:
    start, stop = publication.base.size, publication.new.size
    if stop - start <= _AT_ONCE:
        data = joined(publication.new, start, stop - start)
        rows = parse_lines(data, publication.names, image.schema, first_offset=start)
        version = view.table.append(rows, transaction=publication.transaction)
        tell(rows.num_rows)
        return version
    for attempt in range(_ATTEMPTS):
        counted = _Counted()
        batches = counted.through(_batches(publication, image.schema))
        reader = pa.RecordBatchReader.from_batches(image.schema, batches)
        try:
            version = view.table.append(reader, transaction=publication.transaction)
            tell(counted.rows)
            return version
        except CommitConflictError:
            if attempt + 1 == _ATTEMPTS:
                raise
    raise AssertionError("an append is attempted at least once")


class _Counted:
    """Counts rows on their way."""

    def __init__(self) -> None:
        self.rows = 0

    def through(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            self.rows += batch.num_rows
            yield batch


def _batches(publication: Publication, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    splitter = RowSplitter()
    at, stop = publication.base.size, publication.new.size
    while at < stop:
        offset = splitter.offset
        data = joined(publication.new, at, min(_STEP, stop - at))
        at += len(data)
        rows = splitter.feed(data) + (splitter.finish() if at >= stop else b"")
        yield from parse_lines(
            rows, publication.names, schema, first_offset=publication.base.size + offset
        ).to_batches()


def _rewrite(view: View, publication: Publication, base: Base, tell: Tell) -> int:
    changes = plan_changes(base, publication.new, allow_missing=publication.allow_missing)
    if changes.is_empty:
        tell(0)
        return view.table.version()
    for attempt in range(_ATTEMPTS):
        head = view.images.refresh()
        splices = locate(changes, head)
        try:
            version = view.table.splice(
                head.version,
                splices.files,
                splices.appended,
                transaction=publication.transaction,
                counts=splices.counts,
            ).version
            tell(splices.counts.inserted + splices.counts.updated + splices.counts.deleted)
            return version
        except CommitConflictError:
            if attempt + 1 == _ATTEMPTS:
                raise
    raise AssertionError("a rewrite is attempted at least once")
