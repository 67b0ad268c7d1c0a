"""Table properties: which may be set, with which values, and the defaults of new tables.

The engine accepts unknown keys and rubbish values, and some features it can switch on but not off or write to
afterwards (deltalake 1.6.6); so only what is listed here passes.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa

from lakehouse_platform.errors import InvalidPropertyError
from lakehouse_platform.settings import LakehouseConfig

PRIMARY_KEY = "lakehouse.primaryKey"
STATISTICS_COLUMNS = "delta.dataSkippingStatsColumns"
CHANGE_DATA_FEED = "delta.enableChangeDataFeed"
APPEND_ONLY = "delta.appendOnly"
LOG_RETENTION = "delta.logRetentionDuration"
FILE_RETENTION = "delta.deletedFileRetentionDuration"
CHECKPOINT_INTERVAL = "delta.checkpointInterval"
TARGET_FILE_SIZE = "delta.targetFileSize"
ALLOW_EVOLUTION = "lakehouse.allowEvolution"
ALLOW_MISSING_COLUMNS = "lakehouse.allowMissingColumns"

_INTERVAL = re.compile(r"interval \d{1,6} (?:second|minute|hour|day|week)s?")
_COUNT = re.compile(r"[1-9]\d{0,8}")
_INDEXED = re.compile(r"-1|\d{1,5}")
_SIZE = re.compile(r"[1-9]\d{0,14}")


def _matches(pattern: re.Pattern[str]) -> Callable[[str], bool]:
    return lambda value: pattern.fullmatch(value) is not None


_BOOLEAN = (_matches(re.compile("true|false")), "true or false")
_DURATION = (_matches(_INTERVAL), "an interval such as 'interval 7 days'")
_ALLOWED: Mapping[str, tuple[Callable[[str], bool], str]] = {
    APPEND_ONLY: _BOOLEAN,
    CHANGE_DATA_FEED: _BOOLEAN,
    ALLOW_EVOLUTION: _BOOLEAN,
    ALLOW_MISSING_COLUMNS: _BOOLEAN,
    CHECKPOINT_INTERVAL: (_matches(_COUNT), "a number of commits from 1"),
    LOG_RETENTION: _DURATION,
    FILE_RETENTION: _DURATION,
    "delta.enableExpiredLogCleanup": _BOOLEAN,
    TARGET_FILE_SIZE: (_matches(_SIZE), "a number of bytes"),
    "delta.dataSkippingNumIndexedCols": (_matches(_INDEXED), "a number of columns, or -1 for all"),
    STATISTICS_COLUMNS: (lambda value: bool(value.strip()), "column names separated by commas"),
    "delta.checkpoint.writeStatsAsJson": _BOOLEAN,
    "delta.checkpoint.writeStatsAsStruct": _BOOLEAN,
}


def check_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties unchanged if each is known and its value allowed.

    Raises:
        InvalidPropertyError: Otherwise; the message says what is allowed.
    """
    for key, value in properties.items():
        if key not in _ALLOWED:
            raise InvalidPropertyError(
                f"Table property {key!r} cannot be set; these can: {', '.join(sorted(_ALLOWED))}.",
                property=key,
            )
        accepts, allowed = _ALLOWED[key]
        if not accepts(value):
            raise InvalidPropertyError(
                f"Table property {key} is {value!r}; allowed is {allowed}.", property=key
            )
    return dict(properties)


def new_table_properties(config: LakehouseConfig) -> dict[str, str]:
    """Return the properties that a new table gets unless its creator sets them."""
    return {
        CHECKPOINT_INTERVAL: str(config.checkpoint_interval),
        LOG_RETENTION: f"interval {config.log_retention_hours} hours",
        FILE_RETENTION: f"interval {config.vacuum_retention_hours} hours",
    }


def exact_statistics(schema: pa.Schema, partition_by: Sequence[str]) -> dict[str, str]:
    """Return the property that keeps columns with long decimals out of file statistics; nothing if there are none.

    The engine writes their smallest and largest values as floats (deltalake 1.6.6). From the rounded values it would
    skip files that hold a row looked for, and even read a column whose value is the same in a whole file.
    """
    if not any(has_long_decimal(field.type) for field in schema):
        return {}
    exact = [
        field.name for field in schema if field.name not in partition_by and not has_long_decimal(field.type)
    ]
    return {STATISTICS_COLUMNS: ",".join("`" + name.replace("`", "``") + "`" for name in exact)}


def has_long_decimal(kind: pa.DataType) -> bool:
    """Tell whether a type holds, at any depth, decimals with more digits than a float keeps."""
    if pa.types.is_decimal(kind):
        return kind.precision > sys.float_info.dig
    return any(has_long_decimal(kind.field(index).type) for index in range(kind.num_fields))


def primary_key_property(columns: Sequence[str]) -> dict[str, str]:
    """Return the property that declares a primary key; JSON, because names may hold commas."""
    return {PRIMARY_KEY: json.dumps(list(columns))}


def declared_key(properties: Mapping[str, str | None]) -> tuple[str, ...]:
    """Return the declared primary key's columns; empty if none is declared."""
    return tuple(json.loads(properties.get(PRIMARY_KEY) or "[]"))


def allows_evolution(properties: Mapping[str, str | None]) -> bool:
    """Tell whether the table adds new columns on append without being asked each time."""
    return properties.get(ALLOW_EVOLUTION) == "true"


def allows_missing_columns(properties: Mapping[str, str | None]) -> bool:
    """Tell whether a file written through the mount may leave nullable columns out, which makes them NULL."""
    return properties.get(ALLOW_MISSING_COLUMNS) == "true"
