"""What an older version of the platform made, brought up to what the registry says now."""

from __future__ import annotations

import pyarrow as pa

from lakehouse_platform.errors import SchemaMismatchError
from lakehouse_platform.store.engine import open_table
from lakehouse_platform.store.snapshot import arrow_schema
from lakehouse_platform.store.table import Table
from lakehouse_platform.store.tables import TableSpec


def complete(table: Table, spec: TableSpec) -> Table:
    """Give a platform table the nullable columns and the properties that it lacks, and return it.

    A registered column that no older row can have, and a property with another value, stay as they are: the
    schema check of the table's asset names the first, and somebody has set the second.
    """
    missing = _missing_columns(table, spec)
    if missing.names:
        try:
            table.add_columns(missing)
        except SchemaMismatchError:
            # Another process may have done the same at this moment; what is still missing is a true mismatch.
            if _missing_columns(table, spec).names:
                raise
    if spec.append_only:
        _set_missing_properties(table, spec)
    return table


def _missing_columns(table: Table, spec: TableSpec) -> pa.Schema:
    present = set(arrow_schema(open_table(table.location)).names)
    return pa.schema([field for field in spec.schema if field.nullable and field.name not in present])


def _set_missing_properties(table: Table, spec: TableSpec) -> None:
    present = open_table(table.location).metadata().configuration
    missing = {key: value for key, value in spec.properties().items() if key not in present}
    if missing:
        table.set_properties(missing)
