"""Which keys a table's data files hold, as sorted hashes on the local disk: one small file beside each data file.

Data files never change, so an entry is made once, when it is first needed, and found again by the data file's path and
size. A hash that is there says that the key may be, and the data file itself is asked; one that is not says that the
key is not. Entries may be deleted at any time, and several processes may use one directory.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from deltalake import DeltaTable

from lakehouse_platform.store.files import FileReader
from lakehouse_platform.store.key_entries import Hashes, entries_in
from lakehouse_platform.store.location import Location
from lakehouse_platform.store.partitions import partition_values
from lakehouse_platform.store.snapshot import (
    add_actions,
    arrow_schema,
    has_deletion_vectors,
    uses_column_mapping,
)

_SUFFIX = ".keys"
# Files of fewer keys are asked together.
_TINY = 1_000
# Building one entry keeps no two cores busy, and an object store answers slowly.
_BUILDERS = 2
_REMOTE_BUILDERS = 16


@dataclass(frozen=True, slots=True)
class KeyIndex:
    """The entries of one table's data files.

    Attributes:
        directory: On the local disk; holds the entries of all tables.
        location: The table.
    """

    directory: Path
    location: Location

    def serves(self, table: DeltaTable) -> bool:
        """Tell whether the rows of a table's files are what the files alone say."""
        return not uses_column_mapping(table) and not has_deletion_vectors(table)

    def duplicates(self, files: KeyFiles, keys: pa.Table) -> dict[str, Any] | None:
        """Return the first key found that the table already holds; None if it holds none of them.

        Args:
            files: The files of the snapshot to look in; see `serves`.
            keys: The key columns in the table's types, in the order of the declared key.
        """
        wanted = np.unique(_hashed(keys))
        folder, entries = self.directory / files.digest, entries_in(self.directory)
        paths = {_entry_name(path, size): path for path, size in files.sizes.items()}
        threads = _BUILDERS if self.location.is_local else _REMOTE_BUILDERS
        held = entries.get_all(folder, paths, lambda name: files.hashes(paths[name]), threads)
        entries.sweep(folder, set(paths))
        found = (files.find(paths[name], keys) for name in _suspects(wanted, held))
        return next((taken for taken in found if taken is not None), None)


@dataclass(frozen=True, slots=True)
class KeyFiles:
    """The key columns of one snapshot's live files.

    Attributes:
        reader: Reads them.
        table_id: The id in the table's metadata.
        sizes: Size of each file, by path.
        partitions: Its partition values, as far as they are part of the key.
    """

    reader: FileReader
    table_id: str
    sizes: Mapping[str, int]
    partitions: Mapping[str, Mapping[str, pa.Scalar]]

    @classmethod
    def of(cls, location: Location, table: DeltaTable, key: Sequence[str]) -> KeyFiles:
        """Return the files of an opened table."""
        actions = add_actions(table)
        paths: list[str] = actions.column("path").to_pylist()
        sizes: list[int] = actions.column("size_bytes").to_pylist()
        table_id = str(table.metadata().id)
        return cls(
            reader=key_reader(location, arrow_schema(table), table_id, key),
            table_id=table_id,
            sizes=dict(zip(paths, sizes, strict=True)),
            partitions=_partitions(table, paths, key),
        )

    @property
    def digest(self) -> str:
        """Names the table, its key and the way of hashing."""
        columns = [(field.name, str(field.type)) for field in self.reader.schema]
        return _digest((self.table_id, columns, pl.__version__))

    def hashes(self, path: str) -> Hashes:
        """Return the sorted hashes of a file's keys."""
        parts = [_hashed(pa.Table.from_batches([batch])) for batch in self._read(path)]
        hashes = np.concatenate(parts) if parts else np.empty(0, np.uint64)
        hashes.sort()
        return hashes

    def find(self, path: str, keys: pa.Table) -> dict[str, Any] | None:
        """Return the first row of a file that has one of the keys."""
        wanted = pl.DataFrame(pl.from_arrow(keys))
        for batch in self._read(path):
            found = pl.DataFrame(pl.from_arrow(batch)).join(wanted, on=keys.column_names, how="semi")
            if found.height:
                return found.row(0, named=True)
        return None

    def _read(self, path: str) -> Iterator[pa.RecordBatch]:
        return self.reader.read(path, self.partitions.get(path, {}), None)


def key_reader(location: Location, schema: pa.Schema, table_id: str, key: Sequence[str]) -> FileReader:
    """Return the reader of a table's key columns."""
    return FileReader.of(location, pa.schema([schema.field(name) for name in key]), table_id)


def _partitions(
    table: DeltaTable, paths: Sequence[str], key: Sequence[str]
) -> Mapping[str, Mapping[str, pa.Scalar]]:
    named = [column for column in table.metadata().partition_columns if column in key]
    if not named:
        return {}
    values = partition_values(table)
    return {path: {name: values.column(name)[row] for name in named} for row, path in enumerate(paths)}


def _hashed(keys: pa.Table) -> Hashes:
    return pl.DataFrame(pl.from_arrow(keys)).hash_rows(seed=0).to_numpy()


def _suspects(wanted: Hashes, held: Mapping[str, Hashes]) -> Iterator[str]:
    """Yield the entries that have one of the wanted hashes."""
    tiny = [hashes for hashes in held.values() if len(hashes) <= _TINY]
    # Asked together, a thousand files of one row each take a tenth of the time.
    least = 0 if tiny and _any_in(wanted, np.sort(np.concatenate(tiny))) else _TINY + 1
    for name, hashes in held.items():
        if len(hashes) >= least and _any_in(wanted, hashes):
            yield name


def _any_in(some: Hashes, others: Hashes) -> bool:
    """Tell whether two sorted arrays have a value in common."""
    few, many = (some, others) if len(some) <= len(others) else (others, some)
    places = np.searchsorted(many, few)
    inside = places < len(many)
    return bool(np.any(many[places[inside]] == few[inside]))


@lru_cache(maxsize=100_000)
def _entry_name(path: str, size: int) -> str:
    return _digest((path, size)) + _SUFFIX


def _digest(identity: object) -> str:
    return hashlib.blake2b(repr(identity).encode(), digest_size=16).hexdigest()
