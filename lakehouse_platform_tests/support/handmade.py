"""Delta tables written by hand, action by action, as the protocol says and as other writers do.

Nothing here uses the engine: a `HandmadeTable` writes JSON and Parquet, so that the tests see what our store
makes of tables it did not write.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

Action = dict[str, dict[str, Any]]
_COMMIT_TIME = 1_700_000_000_000  # ms; each version one second later

_PRIMITIVES: dict[pa.DataType, str] = {
    pa.int8(): "byte",
    pa.int16(): "short",
    pa.int32(): "integer",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.bool_(): "boolean",
    pa.date32(): "date",
    pa.binary(): "binary",
    pa.timestamp("us", "UTC"): "timestamp",
    pa.timestamp("us"): "timestamp_ntz",
}


@dataclass(frozen=True, slots=True)
class Protocol:
    """The `protocol` action; `features` are table features for readers and writers alike."""

    reader: int = 1
    writer: int = 2
    reader_features: Sequence[str] = ()
    writer_features: Sequence[str] = ()

    @classmethod
    def with_features(cls, *both: str, writer_only: Sequence[str] = ()) -> Protocol:
        """Return version (3, 7), or (1, 7) if no feature concerns readers."""
        return cls(3 if both else 1, 7, both, (*both, *writer_only))

    def action(self) -> Action:
        body: dict[str, Any] = {"minReaderVersion": self.reader, "minWriterVersion": self.writer}
        if self.reader == 3:
            body["readerFeatures"] = list(self.reader_features)
        if self.writer == 7:
            body["writerFeatures"] = list(self.writer_features)
        return {"protocol": body}


@dataclass(frozen=True, slots=True)
class HandmadeTable:
    """A table directory that is filled by hand."""

    path: Path

    @property
    def log(self) -> Path:
        return self.path / "_delta_log"

    def create(
        self,
        fields: Sequence[dict[str, Any]],
        *actions: Action,
        protocol: Protocol | None = None,
        partition_by: Sequence[str] = (),
        configuration: Mapping[str, str] | None = None,
    ) -> HandmadeTable:
        """Commit version 0: protocol, metadata and then `actions`."""
        self.log.mkdir(parents=True)
        metadata = metadata_action(fields, partition_by, configuration or {})
        return self.commit(0, (protocol or Protocol()).action(), metadata, *actions)

    def commit(self, version: int, *actions: Action, operation: str = "WRITE") -> HandmadeTable:
        """Write one log entry."""
        info = {
            "timestamp": _COMMIT_TIME + 1_000 * version,
            "operation": operation,
            "operationParameters": {},
        }
        lines = [json.dumps(action) for action in ({"commitInfo": info}, *actions)]
        (self.log / f"{version:020}.json").write_text("\n".join(lines) + "\n")
        return self

    def actions(self, versions: Sequence[int]) -> list[Action]:
        """Return what the given log entries say, without their `commitInfo`."""
        texts = [(self.log / f"{version:020}.json").read_text() for version in versions]
        actions = [json.loads(line) for text in texts for line in text.splitlines()]
        return [action for action in actions if "commitInfo" not in action]

    def add(
        self,
        data: pa.Table,
        *,
        name: str | None = None,
        log_path: str | None = None,
        partition_values: Mapping[str, str | None] | None = None,
        stats: Mapping[str, Any] | None = None,
        deletion_vector: Mapping[str, Any] | None = None,
        **parquet_options: Any,
    ) -> Action:
        """Write a data file and return the `add` action for it.

        Args:
            data: The rows, with the columns as they stand in the file.
            name: Path of the file below the table.
            log_path: What the log calls it, if that is not `name` itself (it is a URI: percent-encoded).
            partition_values: As the log keeps them: text or None.
            stats: File statistics; by default only the number of rows.
            deletion_vector: Descriptor of the rows that are gone.
            parquet_options: Passed to the Parquet writer.
        """
        name = name or f"part-{uuid.uuid4()}.parquet"
        target = self.path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(data, target, **parquet_options)
        body: dict[str, Any] = {
            "path": log_path or name,
            "partitionValues": dict(partition_values or {}),
            "size": target.stat().st_size,
            "modificationTime": _COMMIT_TIME,
            "dataChange": True,
            "stats": json.dumps(stats if stats is not None else {"numRecords": data.num_rows}),
        }
        if deletion_vector is not None:
            body["deletionVector"] = dict(deletion_vector)
        return {"add": body}


def remove(add: Action) -> Action:
    """Return the `remove` action that takes an added file away again."""
    body = add["add"]
    kept = {key: body[key] for key in ("path", "partitionValues", "size", "deletionVector") if key in body}
    return {
        "remove": {
            **kept,
            "deletionTimestamp": _COMMIT_TIME,
            "dataChange": True,
            "extendedFileMetadata": True,
        }
    }


def metadata_action(
    fields: Sequence[dict[str, Any]], partition_by: Sequence[str], configuration: Mapping[str, str]
) -> Action:
    """Return a `metaData` action."""
    return {
        "metaData": {
            "id": str(uuid.uuid4()),
            "format": {"provider": "parquet", "options": {}},
            "schemaString": json.dumps({"type": "struct", "fields": list(fields)}),
            "partitionColumns": list(partition_by),
            "configuration": dict(configuration),
            "createdTime": _COMMIT_TIME,
        }
    }


def column(name: str, data_type: pa.DataType, *, nullable: bool = True, **metadata: Any) -> dict[str, Any]:
    """Return a field of the Delta schema; write `__` for the dots in metadata keys."""
    plain = {key.replace("__", "."): value for key, value in metadata.items()}
    return {"name": name, "type": delta_type(data_type), "nullable": nullable, "metadata": plain}


def mapped(name: str, data_type: pa.DataType, number: int, physical: str) -> dict[str, Any]:
    """Return a field as column mapping wants it: with an id and a physical name."""
    return column(
        name, data_type, delta__columnMapping__id=number, delta__columnMapping__physicalName=physical
    )


def delta_type(data_type: pa.DataType) -> Any:
    """Return an Arrow type as the Delta schema writes it."""
    if name := _PRIMITIVES.get(data_type):
        return name
    if pa.types.is_decimal(data_type):
        return f"decimal({data_type.precision},{data_type.scale})"
    if pa.types.is_list(data_type):
        return {"type": "array", "elementType": delta_type(data_type.value_type), "containsNull": True}
    if pa.types.is_map(data_type):
        pair = {"keyType": delta_type(data_type.key_type), "valueType": delta_type(data_type.item_type)}
        return {"type": "map", **pair, "valueContainsNull": True}
    assert pa.types.is_struct(data_type), data_type
    return {"type": "struct", "fields": [column(field.name, field.type) for field in data_type]}
