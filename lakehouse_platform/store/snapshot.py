"""What one opened version of a table says about itself: columns, properties, key, live files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from lakehouse_platform.errors import UnsupportedFeatureError
from lakehouse_platform.model.results import ColumnInfo
from lakehouse_platform.model.schema import type_text
from lakehouse_platform.store.cast import plain_type
from lakehouse_platform.store.properties import declared_key

_CONSTRAINT_PREFIX = "delta.constraints."
# What the engine leaves as it is in a path, and the "%XX" that it makes itself (deltalake 1.6.6, tried with each byte).
_USUAL_PATH = (
    r"^(?:[!$&'()+,\-./0-9:;=@A-Z_a-z~]"
    r"|%(?:[01][0-9A-F]|2[0235A]|3[CEF]|5[BCDE]|60|7[BCDF]|[89A-F][0-9A-F]))*$"
)


@dataclass(frozen=True, slots=True)
class DataFile:
    """One live data file.

    Attributes:
        path: Relative to the table.
        size: Bytes.
        rows: Rows, or None if the writer recorded no statistics.
        modified: When it was written (UTC).
    """

    path: str
    size: int
    rows: int | None
    modified: datetime


def arrow_schema(table: DeltaTable) -> pa.Schema:
    """Return the columns in plain Arrow types, with their metadata."""
    raw = cast("pa.Schema", pa.schema(cast("Any", table.schema().to_arrow())))
    return pa.schema([pa.field(f.name, plain_type(f.type), f.nullable, f.metadata) for f in raw])


def column_infos(schema: pa.Schema) -> tuple[ColumnInfo, ...]:
    """Return the columns as people read them."""
    return tuple(
        ColumnInfo(name=field.name, type=type_text(field.type), nullable=field.nullable) for field in schema
    )


def properties(table: DeltaTable) -> Mapping[str, str]:
    """Return the table's properties."""
    return {key: str(value) for key, value in table.metadata().configuration.items()}


def constraints(table: DeltaTable) -> Mapping[str, str]:
    """Return the CHECK constraints by name."""
    return {
        key.removeprefix(_CONSTRAINT_PREFIX): value
        for key, value in properties(table).items()
        if key.startswith(_CONSTRAINT_PREFIX)
    }


def primary_key(table: DeltaTable) -> tuple[str, ...]:
    """Return the declared primary key; empty if none is declared."""
    return declared_key(table.metadata().configuration)


def data_files(table: DeltaTable) -> list[DataFile]:
    """Return the live data files, oldest first."""
    actions = add_actions(table)
    rows = actions.column("num_records").to_pylist() if "num_records" in actions.column_names else None
    files = [
        DataFile(unquote(path), size, rows[number] if rows else None, datetime.fromtimestamp(ms / 1000, UTC))
        for number, (path, size, ms) in enumerate(
            zip(
                actions.column("path").to_pylist(),
                actions.column("size_bytes").to_pylist(),
                actions.column("modification_time").cast(pa.int64()).to_pylist(),
                strict=True,
            )
        )
    ]
    return sorted(files, key=lambda file: (file.modified, file.path))


def add_actions(table: DeltaTable) -> pa.Table:
    """Return the live files' add actions, one row each."""
    return pa.table(cast("Any", table.get_add_actions(flatten=True)))


def has_deletion_vectors(table: DeltaTable) -> bool:
    """Tell whether some live row is hidden by a deletion vector."""
    if "deletionVectors" not in (table.protocol().reader_features or []):
        return False
    return pa.table(cast("Any", table.deletion_vectors())).num_rows > 0


def uses_column_mapping(table: DeltaTable) -> bool:
    """Tell whether columns in the files have other names than in the schema."""
    return properties(table).get("delta.columnMapping.mode", "none") != "none"


def require_plain_columns(table: DeltaTable, operation: str, name: str) -> None:
    """Refuse an operation that the engine cannot do on a table with column mapping.

    Raises:
        UnsupportedFeatureError: The table uses column mapping.
    """
    if uses_column_mapping(table):
        raise UnsupportedFeatureError(
            f"Table {name} uses column mapping (delta.columnMapping.mode), on which {operation} is not supported: "
            "run it in the system that wrote the table.",
            table=name,
            feature="columnMapping",
        )


def require_known_paths(table: DeltaTable, operation: str, name: str) -> None:
    """Refuse to take files out of a table whose log writes their paths in another way than the engine does.

    The engine encodes each path anew in the entry that removes a file (deltalake 1.6.6). If the writer of the table
    left "ü" as it is, as Spark does in partition directories, that entry names no file, and the old rows stay.

    Raises:
        UnsupportedFeatureError: A live file has such a path.
    """
    paths = add_actions(table).column("path")
    usual = pc.call_function("match_substring_regex", [paths], pc.MatchSubstringOptions(_USUAL_PATH))
    if pc.call_function("all", [usual]).as_py() is False:
        raise UnsupportedFeatureError(
            f"Table {name} has data file paths that only the system that wrote them can remove, for example "
            f"{paths.filter(pc.call_function('invert', [usual]))[0].as_py()!r}: use that system for {operation}, "
            "or copy the table's rows into a new table.",
            table=name,
        )
