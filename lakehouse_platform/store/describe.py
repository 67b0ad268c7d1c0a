"""A table at one version, described."""

from __future__ import annotations

from collections.abc import Collection

from deltalake import DeltaTable

from lakehouse_platform.model.results import TableInfo
from lakehouse_platform.model.times import from_epoch_ms
from lakehouse_platform.store.history import last_modified
from lakehouse_platform.store.location import Location
from lakehouse_platform.store.scan import without
from lakehouse_platform.store.snapshot import (
    arrow_schema,
    column_infos,
    constraints,
    data_files,
    has_deletion_vectors,
    primary_key,
    properties,
)


def describe(location: Location, table: DeltaTable, hidden: Collection[str] = ()) -> TableInfo:
    """Return everything worth knowing about an opened version, without its hidden columns."""
    metadata, protocol, files = table.metadata(), table.protocol(), data_files(table)
    return TableInfo(
        name=location.name,
        uri=location.uri,
        version=table.version(),
        created=from_epoch_ms(metadata.created_time) if metadata.created_time else None,
        modified=last_modified(table, location),
        rows=_row_count(table, [file.rows for file in files]),
        files=len(files),
        bytes=sum(file.size for file in files),
        primary_key=primary_key(table),
        partition_columns=tuple(metadata.partition_columns),
        properties=properties(table),
        constraints=constraints(table),
        description=metadata.description or "",
        reader_features=tuple(protocol.reader_features or ()),
        writer_features=tuple(protocol.writer_features or ()),
        columns=column_infos(without(arrow_schema(table), hidden)),
    )


def _row_count(table: DeltaTable, counts: list[int | None]) -> int | None:
    # The log's counts include rows that a deletion vector hides.
    if has_deletion_vectors(table) or any(count is None for count in counts):
        return None
    return sum(count or 0 for count in counts)
