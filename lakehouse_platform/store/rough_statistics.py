"""Tables whose file statistics are wrong for long decimals, and how to read them all the same.

The engine writes the smallest and largest value of a decimal as a float (deltalake 1.6.6). From the rounded values it
skips files that hold a row looked for, and reads a column whose value is the same in a whole file from them. Tables
made here keep such columns out of the statistics (`properties.exact_statistics`); foreign ones, and columns that were
added later, may have them.
"""

from __future__ import annotations

import pyarrow as pa
from deltalake import DeltaTable

from lakehouse_platform.errors import UnsupportedFeatureError
from lakehouse_platform.store.predicates import Predicate
from lakehouse_platform.store.properties import STATISTICS_COLUMNS, has_long_decimal
from lakehouse_platform.store.snapshot import add_actions, arrow_schema

# A limit that is never reached keeps conditions, and with them the statistics, away from the scan.
_BARRIER = "(SELECT * FROM t LIMIT 9223372036854775807)"


def rough_columns(table: DeltaTable) -> frozenset[str]:
    """Return the columns with long decimals for which some file has statistics."""
    suspects = [field.name for field in arrow_schema(table) if has_long_decimal(field.type)]
    if not suspects:
        return frozenset()
    actions = add_actions(table)
    return frozenset(name for name in suspects if _has_statistics(actions, name))


def source_of(table: DeltaTable) -> str:
    """Return what a query over the table, registered as `t`, must read from so that its conditions hold exactly."""
    return _BARRIER if rough_columns(table) else "t"


def require_exact(table: DeltaTable, condition: Predicate, name: str) -> None:
    """Refuse a change whose rows are chosen by a column with wrong statistics.

    Raises:
        UnsupportedFeatureError: The condition reads such a column.
    """
    rough = sorted(rough_columns(table) & condition.columns)
    if rough:
        raise UnsupportedFeatureError(
            f"Column {rough[0]!r} of {name} holds long decimals whose file statistics are rounded, so the engine would "
            f"miss rows. Set {STATISTICS_COLUMNS} to the other columns and Z-order the table once, or choose the rows "
            "by another column.",
            table=name,
            column=rough[0],
        )


def _has_statistics(actions: pa.Table, name: str) -> bool:
    columns = [c for c in actions.column_names if c == f"min.{name}" or c.startswith(f"min.{name}.")]
    return any(actions.column(column).null_count < actions.num_rows for column in columns)
