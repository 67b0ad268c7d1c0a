"""Checkpoints and compacted logs of `HandmadeTable`s, in every layout the protocol allows."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lakehouse_platform_tests.support.handmade import Action, HandmadeTable

_TEXTS = pa.map_(pa.string(), pa.string())
_DELETION_VECTOR = pa.struct(
    {
        "storageType": pa.string(),
        "pathOrInlineDv": pa.string(),
        "offset": pa.int32(),
        "sizeInBytes": pa.int32(),
        "cardinality": pa.int64(),
    }
)
_FILE_ACTIONS = {
    "add": pa.struct(
        {
            "path": pa.string(),
            "partitionValues": _TEXTS,
            "size": pa.int64(),
            "modificationTime": pa.int64(),
            "dataChange": pa.bool_(),
            "stats": pa.string(),
            "deletionVector": _DELETION_VECTOR,
        }
    ),
    "remove": pa.struct(
        {
            "path": pa.string(),
            "deletionTimestamp": pa.int64(),
            "dataChange": pa.bool_(),
            "extendedFileMetadata": pa.bool_(),
            "partitionValues": _TEXTS,
            "size": pa.int64(),
            "deletionVector": _DELETION_VECTOR,
        }
    ),
}
_CLASSIC = {
    "txn": pa.struct({"appId": pa.string(), "version": pa.int64(), "lastUpdated": pa.int64()}),
    "protocol": pa.struct(
        {
            "minReaderVersion": pa.int32(),
            "minWriterVersion": pa.int32(),
            "readerFeatures": pa.list_(pa.string()),
            "writerFeatures": pa.list_(pa.string()),
        }
    ),
    "metaData": pa.struct(
        {
            "id": pa.string(),
            "format": pa.struct({"provider": pa.string(), "options": _TEXTS}),
            "schemaString": pa.string(),
            "partitionColumns": pa.list_(pa.string()),
            "configuration": _TEXTS,
            "createdTime": pa.int64(),
        }
    ),
    **_FILE_ACTIONS,
}
_V2 = {
    **_CLASSIC,
    "checkpointMetadata": pa.struct({"version": pa.int64(), "tags": _TEXTS}),
    "sidecar": pa.struct(
        {"path": pa.string(), "sizeInBytes": pa.int64(), "modificationTime": pa.int64(), "tags": _TEXTS}
    ),
}


def classic_checkpoint(table: HandmadeTable, version: int, *, parts: int = 1) -> None:
    """Write a checkpoint of the versions up to `version` in one file, or in several."""
    actions = _state(table, version)
    stem = f"{version:020}.checkpoint"
    if parts == 1:
        _write(table.log / f"{stem}.parquet", actions, _CLASSIC)
    for part in range(1, parts + 1 if parts > 1 else 0):
        _write(table.log / f"{stem}.{part:010}.{parts:010}.parquet", actions[part - 1 :: parts], _CLASSIC)
    hint = {"parts": parts} if parts > 1 else {}
    _hint(table, version, len(actions), **hint)


def v2_checkpoint(table: HandmadeTable, version: int, *, manifest: str, sidecars: int) -> None:
    """Write a V2 checkpoint: a `json` or `parquet` manifest, file actions in it or in sidecar files."""
    actions = _state(table, version)
    files = [action for action in actions if "add" in action or "remove" in action]
    others = [action for action in actions if action not in files]
    top = [{"checkpointMetadata": {"version": version}}, *others]
    top += [_sidecar(table, files[n::sidecars]) for n in range(sidecars)] if sidecars else files
    path = table.log / f"{version:020}.checkpoint.{uuid.uuid4()}.{manifest}"
    if manifest == "json":
        path.write_text("".join(json.dumps(action) + "\n" for action in top))
    else:
        _write(path, top, _V2)


def compacted_log(table: HandmadeTable, first: int, last: int) -> None:
    """Write the log compaction file of a range of versions."""
    name = f"{first:020}.{last:020}.compacted.json"
    actions = _reconciled(table.actions(range(first, last + 1)))
    (table.log / name).write_text("".join(json.dumps(action) + "\n" for action in actions))


def forget_commits(table: HandmadeTable, up_to: int) -> None:
    """Delete the log entries that a checkpoint has made unnecessary."""
    for version in range(up_to + 1):
        (table.log / f"{version:020}.json").unlink()


def _state(table: HandmadeTable, version: int) -> list[Action]:
    return _reconciled(table.actions(range(version + 1)))


def _reconciled(actions: Sequence[Action]) -> list[Action]:
    """Return the last word on each file (with its deletion vector), on the metadata and on the protocol."""
    latest: dict[Any, Action] = {}
    for action in actions:
        ((kind, body),) = action.items()
        vector = body.get("deletionVector") or {}
        key = (body["path"], vector.get("pathOrInlineDv")) if kind in _FILE_ACTIONS else kind
        latest.pop(key, None)
        latest[key] = action
    return [action for action in latest.values() if "cdc" not in action]


def _sidecar(table: HandmadeTable, files: list[Action]) -> Action:
    directory = table.log / "_sidecars"
    directory.mkdir(exist_ok=True)
    path = directory / f"{uuid.uuid4()}.parquet"
    _write(path, files, _FILE_ACTIONS)
    return {
        "sidecar": {
            "path": path.name,
            "sizeInBytes": path.stat().st_size,
            "modificationTime": 1_700_000_000_000,
        }
    }


def _write(path: Path, actions: Sequence[Action], kinds: dict[str, pa.DataType]) -> None:
    columns = {kind: pa.array([_cell(action, kind) for action in actions], kinds[kind]) for kind in kinds}
    pq.write_table(pa.table(columns), path)


def _cell(action: Action, kind: str) -> dict[str, Any] | None:
    body = action.get(kind)
    return None if body is None else {key: _pairs(value, key) for key, value in body.items()}


def _pairs(value: Any, key: str) -> Any:
    """Return maps as the pairs that Arrow builds them from."""
    if key in ("partitionValues", "configuration", "tags", "options"):
        return list(value.items())
    return {**value, "options": list(value["options"].items())} if key == "format" else value


def _hint(table: HandmadeTable, version: int, size: int, **more: int) -> None:
    (table.log / "_last_checkpoint").write_text(json.dumps({"version": version, "size": size, **more}))
