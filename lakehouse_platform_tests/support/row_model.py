"""What a table must hold after edits: rows with their counts, and what each edit changes in them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

Rows: TypeAlias = Counter[bytes]
HEADER = b"id,text,number\n"
_ROW = re.compile(rb'(?:[^"\n]|"[^"]*")+\n?')
_QUOTED = re.compile(r'[",\n\r]')


def line(number: int, text: str | None, value: int | None = None) -> bytes:
    """Return a row as the mount shows it."""
    shown = "" if text is None else f'"{text.replace(chr(34), chr(34) * 2)}"' if _is_quoted(text) else text
    return f"{number},{shown},{'' if value is None else value}\n".encode()


def _is_quoted(text: str) -> bool:
    return not text or bool(_QUOTED.search(text))


def rows_of(content: bytes) -> list[bytes]:
    """Return the rows of a file, without its header; the last may lack its line end."""
    assert content.startswith(HEADER), content[:40]
    return [match.group() for match in _ROW.finditer(content, len(HEADER))]


def key_of(row: bytes) -> bytes:
    """Return a row's key."""
    return row[: row.index(b",")]


@dataclass(frozen=True, slots=True)
class Edit:
    """What one client did, or somebody beside the mount.

    Attributes:
        what: For a report.
        removed: Rows that it takes away.
        added: Rows that it adds.
        deletes_all: Whether it deletes whatever is there.
        may_be_undone: Whether others may put something in the place of what was removed.
        refused: Whether the client was told that it failed.
        must_fail: Whether it is wrong whatever others do.
        repeats: Whether it adds a key that its client sees already: wrong, unless others take that row away.
        is_foreign: Whether it goes past the mount, so that it never conflicts.
        versions: How many commits it is known to have made.
        sent: Bytes of its WRITEs: whole rows in them have to be in `.rejected` if it is refused.
        client: Who did it.
        status: What a refusal said.
    """

    what: str
    removed: Rows = field(default_factory=Counter[bytes])
    added: Rows = field(default_factory=Counter[bytes])
    deletes_all: bool = False
    may_be_undone: bool = False
    refused: bool = False
    must_fail: bool = False
    repeats: bool = False
    is_foreign: bool = False
    versions: int | None = None
    sent: tuple[bytes, ...] = ()
    client: int = -1
    status: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One way in which edits may have ended.

    Attributes:
        rows: What the table holds.
        versions: How many commits were made.
        lost: Edits that changed nothing because they were refused.
    """

    rows: Rows
    versions: int
    lost: tuple[Edit, ...] = ()


def outcomes(before: Rows, edits: Sequence[Sequence[Edit]], *, is_keyed: bool) -> Iterator[Outcome]:
    """Yield every way in which clients' edits may end; each client's edits keep their order."""
    for order in _orders([list(some) for some in edits]):
        yield from _applied(Outcome(before, 0), order, is_keyed)


def _orders(edits: list[list[Edit]]) -> Iterator[list[Edit]]:
    left = [number for number, some in enumerate(edits) if some]
    if not left:
        yield []
    for number in left:
        rest = [some[1:] if at == number else some for at, some in enumerate(edits)]
        for order in _orders(rest):
            yield [edits[number][0], *order]


def _applied(so_far: Outcome, order: Sequence[Edit], is_keyed: bool) -> Iterator[Outcome]:
    if not order:
        yield so_far
        return
    for after in _after(so_far, order[0], is_keyed):
        yield from _applied(after, order[1:], is_keyed)


def _after(so_far: Outcome, edit: Edit, is_keyed: bool) -> Iterator[Outcome]:
    if edit.refused:
        yield Outcome(so_far.rows, so_far.versions, (*so_far.lost, edit))
        return
    if edit.deletes_all:
        yield _changed(so_far, edit, Counter())
        if edit.may_be_undone:
            yield so_far
        return
    conflict = Outcome(so_far.rows, so_far.versions, (*so_far.lost, edit))
    rest = (so_far.rows - edit.removed) + edit.added
    changed = _changed(so_far, edit, rest)
    if edit.is_foreign:
        yield changed
    elif edit.must_fail or (is_keyed and _doubles(rest)):
        yield conflict
    else:
        missing = edit.removed - so_far.rows
        yield from _met(missing, edit, so_far.rows - edit.removed, changed, conflict, is_keyed=is_keyed)


def _met(
    missing: Rows, edit: Edit, others: Rows, changed: Outcome, conflict: Outcome, *, is_keyed: bool
) -> Iterator[Outcome]:
    """Yield what an edit may come to whose rows others have taken away."""
    still = _keys(missing) & _keys(others)
    if not missing or not (edit.added or still):
        yield changed
        return
    yield conflict
    # Without a key nobody knows which of the rows that are gone were meant to be changed, and which to be deleted.
    if not (still and is_keyed) and not _keys(missing) & _keys(edit.added):
        yield changed


def _keys(rows: Rows) -> set[bytes]:
    return {key_of(row) for row in rows}


def _changed(so_far: Outcome, edit: Edit, rows: Rows) -> Outcome:
    made = int(rows != so_far.rows) if edit.versions is None else edit.versions
    return Outcome(rows, so_far.versions + made, so_far.lost)


def _doubles(rows: Rows) -> bool:
    keys = Counter(key_of(row) for row in rows.elements())
    return any(count > 1 for count in keys.values())
