"""Which new row is the changed form of which removed row."""

from __future__ import annotations

from typing import cast

import numpy as np
import polars as pl
import pyarrow as pa

from lakehouse_platform.store.keys import inferred_key
from lakehouse_platform.text.csv_lines import Offsets


def pairing_key(schema: pa.Schema) -> tuple[str, ...]:
    """Return the column that names rows where no key is declared; empty if none can."""
    name = inferred_key(schema)
    return () if name is None else (name,)


def paired_by_key(removed: pa.Table, added: pa.Table, *, declared: bool) -> Offsets | None:
    """Return for each added row the removed row with the same key, or -1; None if the key does not tell rows apart.

    Args:
        removed: The key columns of the removed rows.
        added: The key columns of the added rows.
        declared: Whether the key is declared, and so checked elsewhere.
    """
    old, new = (cast(pl.DataFrame, pl.from_arrow(rows)) for rows in (removed, added))
    key = old.columns
    if not declared and any(
        rows.null_count().sum_horizontal()[0] or rows.is_duplicated().any() for rows in (old, new)
    ):
        return None
    old = old.with_row_index("__old").unique(subset=key, keep="first", maintain_order=True)
    joined = new.join(old, on=key, how="left", maintain_order="left")
    pairs = joined.get_column("__old").cast(pl.Int64).fill_null(-1).to_numpy()
    return _each_once(pairs.astype(np.int64))


def paired_by_place(removed_hunks: Offsets, added_hunks: Offsets) -> Offsets:
    """Return for the k-th added row of each hunk its k-th removed row, or -1.

    Args:
        removed_hunks: The hunk of each removed row, growing.
        added_hunks: The hunk of each added row, growing.
    """
    rank = np.arange(len(added_hunks)) - np.searchsorted(added_hunks, added_hunks, side="left")
    slot = np.searchsorted(removed_hunks, added_hunks, side="left") + rank
    paired = slot < np.searchsorted(removed_hunks, added_hunks, side="right")
    return np.where(paired, slot, -1).astype(np.int64)


def _each_once(pairs: Offsets) -> Offsets:
    """Return the pairs without those that would use a removed row twice."""
    _, first = np.unique(pairs, return_index=True)
    once = np.full(len(pairs), -1, np.int64)
    once[first] = pairs[first]
    return once
