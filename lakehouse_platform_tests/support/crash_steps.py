"""Changes that a process repeats until it is killed, and what the table holds after each of them.

The rows of every change are known from its number, so that after a crash a table is right only if it holds
exactly the rows of the last acknowledged change, or of the one after it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.csv as pacsv

from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.store.engine import open_table
from lakehouse_platform.store.files import file_paths
from lakehouse_platform.store.importing import append_from_source, csv_import
from lakehouse_platform.store.splice import Cut, FileSplices

TABLE = "t"
SCHEMA = pa.schema([("id", pa.int64()), ("batch", pa.int64())])
_SHARED = 50  # ids 0 to 49 are rewritten by every merge
_SMALL, _LARGE = 200, 20_000


@dataclass(frozen=True, slots=True)
class Step:
    """One kind of change.

    Attributes:
        apply: Makes change number n on the store.
        size: Rows that each change brings.
        keeps: Whether the rows of earlier changes stay.
        shared: How many ids each change rewrites.
    """

    apply: Callable[[DeltaStore, int], object]
    size: int = _SMALL
    keeps: bool = True
    shared: int = 0

    def rows_after(self, number: int) -> pl.DataFrame:
        """Return the rows after change `number`, by id."""
        first = 1 if self.keeps else max(number, 1)
        own = pl.int_range(_ids(first, self.size).start, _ids(number, self.size).stop, eager=True)
        shared = pl.int_range(0, self.shared if number else 0, eager=True)
        return pl.concat(
            [
                pl.select(id=shared, batch=pl.lit(number, pl.Int64)),
                pl.select(id=own, batch=(own - _SHARED) // self.size),
            ]
        )


def _ids(number: int, size: int) -> range:
    return range(_SHARED + number * size, _SHARED + (number + 1) * size)


def batch(number: int, size: int = _SMALL, shared: int = 0) -> pa.Table:
    """Return the rows that change `number` brings."""
    ids = [*range(shared), *_ids(number, size)]
    return pa.table({"id": ids, "batch": [number] * len(ids)}, schema=SCHEMA)


def _import(store: DeltaStore, number: int) -> object:
    path = Path(store.config.base_path).parent / f"{number}.csv"
    pacsv.write_csv(batch(number, _LARGE), path)
    return append_from_source(store.table(TABLE), csv_import(path, into=SCHEMA))


def _transaction(store: DeltaStore, number: int) -> None:
    with store.transaction(TABLE) as tx:
        tx.append(batch(number))
        tx.delete(f"batch < {number}")


def _splice(store: DeltaStore, number: int) -> object:
    """Rewrite the shared rows, which stay the first ones of the first file, and add the change's own."""
    table, rows = store.table(TABLE), batch(number, shared=_SHARED)
    shared, own = rows.slice(0, _SHARED), rows.slice(_SHARED)
    first = file_paths(open_table(table.location))[:1]
    if not first:
        return table.splice(0, [], rows)
    return table.splice(0, [FileSplices(first[0], (Cut(0, _SHARED, shared),))], own)


def _append_then(maintain: Callable[[DeltaStore], object]) -> Callable[[DeltaStore, int], object]:
    def step(store: DeltaStore, number: int) -> object:
        store.append(TABLE, batch(number))
        return maintain(store)

    return step


def _compact_and_vacuum(store: DeltaStore) -> None:
    store.compact(TABLE)
    store.vacuum(TABLE, retention_hours=0)


STEPS: dict[str, Step] = {
    "append": Step(lambda store, n: store.append(TABLE, batch(n))),
    "merge": Step(lambda store, n: store.merge(TABLE, batch(n, shared=_SHARED), on=["id"]), shared=_SHARED),
    "import": Step(_import, size=_LARGE),
    "overwrite": Step(lambda store, n: store.overwrite(TABLE, batch(n)), keeps=False),
    "transaction": Step(_transaction, keeps=False),
    "splice": Step(_splice, shared=_SHARED),
    "compact": Step(_append_then(lambda store: store.compact(TABLE))),
    "z_order": Step(_append_then(lambda store: store.z_order(TABLE, ["id", "batch"]))),
    "vacuum": Step(_append_then(_compact_and_vacuum)),
}


def main() -> None:
    """Repeat a step, from the given number on, and say the number of each one that was acknowledged."""
    base_path, name, first = sys.argv[1:]
    store = DeltaStore(LakehouseConfig(base_path=base_path))
    number = int(first)
    os.write(1, b"ready\n")
    while True:
        STEPS[name].apply(store, number)
        # Straight into the pipe: what stands there survives this process.
        os.write(1, f"{number}\n".encode())
        number += 1


if __name__ == "__main__":
    main()
