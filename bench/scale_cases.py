"""Size: a table of 5 000 commits, beside the same table when it was young."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from bench.data import SCHEMA, row, rows
from bench.pairs import ONE_ROW, Pair
from bench.workshop import Case, Workshop, linked_copy, pair

_CHECKPOINT_EVERY = 100  # as the engine and the store do unless told otherwise


def _old_table(workshop: Workshop, commits: int) -> tuple[str, Any]:
    raw, ours = workshop.place / "raw", workshop.place / "ours"
    table_of_commits(raw, commits)
    linked_copy(raw, ours)
    return str(raw), workshop.store().table("ours")


def table_of_commits(path: Path, commits: int) -> None:
    """Make a table with so many appends of one row.

    The engine makes the first commits and all checkpoints. The others are copies of its own, which takes seconds
    where appending takes minutes.
    """
    write_deltalake(path, rows(1))
    write_deltalake(path, rows(1), mode="append")
    log = path / "_delta_log"
    template = (log / f"{1:020}.json").read_text(encoding="utf-8").splitlines()
    add = next(json.loads(line)["add"] for line in template if '"add"' in line)
    for version in range(2, commits):
        name = f"part-{version:05}.parquet"
        os.link(path / add["path"], path / name)
        entry = "\n".join(template).replace(json.dumps(add["path"]), json.dumps(name)) + "\n"
        (log / f"{version:020}.json").write_text(entry, encoding="utf-8")
        if (version + 1) % _CHECKPOINT_EVERY == 0:
            DeltaTable(path).create_checkpoint()


def _open(workshop: Workshop, commits: int) -> Pair:
    raw, ours = _old_table(workshop, commits)
    return pair(lambda: DeltaTable(raw).version(), ours.version)


def _append(workshop: Workshop, commits: int) -> Pair:
    raw, ours = _old_table(workshop, commits)
    added = row(1)
    return pair(
        lambda: write_deltalake(raw, pa.Table.from_pylist([added], schema=SCHEMA), mode="append"),
        lambda: ours.append([added]),
    )


def _read(workshop: Workshop, commits: int) -> Pair:
    raw, ours = _old_table(workshop, commits)
    return pair(lambda: pa.table(cast("Any", DeltaTable(raw).scan())), lambda: ours.scan().to_arrow())


def _history(workshop: Workshop, commits: int) -> Pair:
    """Only informs: the store reads 100 entries more on purpose, to even out clocks that were set back."""
    raw, ours = _old_table(workshop, commits)
    return pair(lambda: DeltaTable(raw).history(10), lambda: ours.history(10))


def scale_cases(commits: tuple[int, ...]) -> tuple[Case, ...]:
    """Return the cases for tables of so many commits each."""
    return tuple(case for count in commits for case in _cases(count))


def _cases(commits: int) -> tuple[Case, ...]:
    about = f"{commits:,} commits".replace(",", " ")
    return (
        Case(f"open, {about}", lambda shop: _open(shop, commits), 31, ONE_ROW),
        Case(f"append of one row, {about}", lambda shop: _append(shop, commits), 31, ONE_ROW),
        Case(f"read, {about}", lambda shop: _read(shop, commits), 11),
        Case(f"newest 10 of the history, {about}", lambda shop: _history(shop, commits), 11, None),
    )
