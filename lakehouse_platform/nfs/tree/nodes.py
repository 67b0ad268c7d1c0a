"""Where things stand in the tree: which names a directory always has, and what may be done with each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lakehouse_platform.nfs.tree.handles import Handle, Kind
from lakehouse_platform.nfs.tree.image import Form

_FORMS: Mapping[bytes, Kind] = {b"data.csv": Kind.CSV, b"data.json": Kind.JSON, b"data.jsonl": Kind.JSONL}

LAYOUT: Mapping[Kind, Mapping[bytes, Kind]] = {
    Kind.TABLE: {
        b"data": Kind.DATA,
        b"schema.sql": Kind.SCHEMA,
        b".query": Kind.QUERY,
        b".query.d": Kind.QUERIES,
        b".history": Kind.HISTORY,
        b".stats": Kind.STATS,
        b".last_error": Kind.LAST_ERROR,
        b".errors": Kind.ERRORS,
        b".rejected": Kind.REJECTED,
        b".versions": Kind.VERSIONS,
        b".at": Kind.TIMES,
    },
    Kind.DATA: _FORMS,
    Kind.VERSION: {**_FORMS, b"schema.sql": Kind.SCHEMA},
    Kind.TIME: {**_FORMS, b"schema.sql": Kind.SCHEMA},
}
"""The names that directories of each kind always have; scratch files cannot take them."""

SYSTEM_LAYOUT: Mapping[Kind, Mapping[bytes, Kind]] = {
    Kind.TABLE: {b"data": Kind.DATA, b"schema.sql": Kind.SCHEMA},
    Kind.DATA: _FORMS,
}
"""The same for the platform's own tables: nothing that would show what is secret in them."""

PARENTS: Mapping[Kind, Kind] = {
    Kind.TABLE: Kind.LAKE,
    Kind.DATA: Kind.TABLE,
    Kind.VERSIONS: Kind.TABLE,
    Kind.VERSION: Kind.VERSIONS,
    Kind.TIMES: Kind.TABLE,
    Kind.TIME: Kind.TIMES,
    Kind.QUERIES: Kind.TABLE,
    Kind.ERRORS: Kind.TABLE,
    Kind.REJECTED: Kind.TABLE,
}

DIRECTORIES = frozenset({Kind.LAKE, *PARENTS})
SCRATCH_ROOTS = frozenset({Kind.LAKE, Kind.TABLE, Kind.DATA, Kind.QUERIES})
FORMS: Mapping[Kind, Form] = {Kind.CSV: Form.CSV, Kind.JSON: Form.JSON, Kind.JSONL: Form.JSONL}
TEXTS = frozenset({Kind.SCHEMA, Kind.HISTORY, Kind.STATS})
LIVE = 0
"""The parameter of a view that follows the table; that of a view of version N is N + 1."""


@dataclass(frozen=True, slots=True)
class ViewKey:
    """One client's sight of one view: what is pinned, told and drafted is kept under it.

    Attributes:
        mount: The client.
        kind: Which view.
        table: Of which table.
    """

    mount: bytes
    kind: Kind
    table: bytes

    @classmethod
    def of(cls, handle: Handle) -> ViewKey:
        """Return the key of the view that a handle names."""
        return cls(handle.mount, handle.kind, handle.table)


def is_editable(handle: Handle) -> bool:
    """Tell whether the bytes of a view may be changed."""
    return handle.kind in {Kind.CSV, Kind.QUERY} and handle.param == LIVE


def version_of(handle: Handle) -> int | None:
    """Return the version that a view shows, None if it follows the table."""
    return None if handle.param == LIVE else handle.param - 1


def version_param(version: int) -> int:
    """Return the parameter of a view of a version."""
    return version + 1
