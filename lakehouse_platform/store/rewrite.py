"""New data files whose rows stand in a given order, written in bounded memory.

The engine mixes up the batches of a stream (deltalake 1.6.6), so Arrow writes these files; their statistics are the
engine's all the same, for it is made to adopt the files as a table of their own.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable, convert_to_deltalake

from lakehouse_platform.store.engine import translated
from lakehouse_platform.store.location import Location
from lakehouse_platform.store.log import read_commit
from lakehouse_platform.store.properties import STATISTICS_COLUMNS
from lakehouse_platform.store.snapshot import properties

_STATISTICS_PROPERTIES = (STATISTICS_COLUMNS, "delta.dataSkippingNumIndexedCols")
# The engine's own row groups and compression (deltalake 1.6.6).
_ROW_GROUP_ROWS = 1 << 20
_BATCH_ROWS = 1 << 15
_COMPRESSION = "snappy"
# The engine cuts texts in statistics to 64 bytes; data belongs into data files, not into the log.
_LONGEST_TEXT = 64
_SUCCESSOR = re.compile(r"(?P<stem>.*?)(?:\.splice-[0-9a-f]{32})?(?:\.parquet)?", re.DOTALL)
# File names may have 255 bytes; what is added to the stem has 48.
_LONGEST_STEM = 200


def successor_path(path: str) -> str:
    """Return a new path for what a data file becomes, which sorts among other files as the old one does.

    The order of rows is that of the files' modification times, which stay, and for equal ones that of their paths.
    """
    folder, slash, name = path.rpartition("/")
    found = _SUCCESSOR.fullmatch(name)
    stem = (found["stem"] if found else name).encode()[:_LONGEST_STEM].decode(errors="ignore")
    return f"{folder}{slash}{stem}.splice-{uuid.uuid4().hex}.parquet"


def write_rows(place: Location, name: str, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> int:
    """Write rows to a new file and return their number; no file if there are none.

    Args:
        place: The directory, which exists.
        name: The file's name there.
        batches: Rows that have at least the columns of the schema.
        schema: The columns to write.
    """
    written = 0
    gathered = _gathered(batches)
    first = next(gathered, None)
    if first is None:
        return 0
    with (
        place.filesystem().open_output_stream(name) as sink,
        pq.ParquetWriter(
            sink,
            schema,
            compression=_COMPRESSION,
            use_dictionary=cast("Any", _repetitive(first, schema)),
            store_schema=False,
            write_page_index=True,
        ) as writer,
    ):
        for batch in chain([first], gathered):
            columns = [batch.column(field.name) for field in schema]
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema), _ROW_GROUP_ROWS)
            written += batch.num_rows
    return written


def adopt(place: Location, like: DeltaTable) -> dict[str, Mapping[str, Any]]:
    """Make the data files of a directory a table of their own and return its add actions by file name.

    Args:
        place: The directory.
        like: The table whose properties say of which columns there are statistics.
    """
    chosen = {key: value for key, value in properties(like).items() if key in _STATISTICS_PROPERTIES}
    with translated(place):
        convert_to_deltalake(place.uri, configuration=chosen, storage_options=place.storage_options)
    adds = [cast("Mapping[str, Any]", a["add"]) for a in read_commit(place, 0) if "add" in a]
    return {add["path"]: {**add, "stats": _shortened(add["stats"])} for add in adds}


def _repetitive(sample: pa.RecordBatch, schema: pa.Schema) -> list[str] | bool:
    """Return the columns for which a dictionary pays: one of distinct values takes a third of the time to write."""
    if any(pa.types.is_nested(field.type) for field in schema):
        return True
    distinct = {f.name: pc.call_function("count_distinct", [sample.column(f.name)]).as_py() for f in schema}
    return [name for name, count in distinct.items() if count * 2 <= sample.num_rows]


def _gathered(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the same rows without tiny batches, of which many cuts make many; each costs as much as a thousand rows."""
    some: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        if batch.num_rows:
            some.append(batch)
            rows += batch.num_rows
        if rows >= _BATCH_ROWS:
            yield from _as_one(some)
            some, rows = [], 0
    if some:
        yield from _as_one(some)


def _as_one(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    return batches if len(batches) == 1 else pa.Table.from_batches(batches).combine_chunks().to_batches()


def _shortened(statistics: str | None) -> str:
    """Return statistics without long texts: the beginning of one is a lower bound, but no upper one."""
    values: dict[str, Any] = json.loads(statistics or "{}")
    if "minValues" in values:
        values["minValues"] = _map_texts(values["minValues"], cut=True)
        values["maxValues"] = _map_texts(values["maxValues"], cut=False)
    return json.dumps(values)


def _map_texts(values: Mapping[str, Any], *, cut: bool) -> dict[str, Any]:
    kept = {name: _bounded(value, cut=cut) for name, value in values.items()}
    return {name: value for name, value in kept.items() if value is not None}


def _bounded(value: Any, *, cut: bool) -> Any:
    if isinstance(value, dict):
        return _map_texts(cast("Mapping[str, Any]", value), cut=cut)
    if isinstance(value, str) and len(value) > _LONGEST_TEXT:
        return value[:_LONGEST_TEXT] if cut else None
    return value
