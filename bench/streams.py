"""Ten million rows through scan, export and import, each in a process of its own, so that its peak is its own."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake

from bench.data import CSV_SCHEMA, csv_rows, write_csv
from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.store.exporting import export
from lakehouse_platform.store.importing import create_from_source, csv_import, parquet_import

_CHUNK = 1_000_000


@dataclass(frozen=True, slots=True)
class Peak:
    """What one child process took.

    Attributes:
        task: What it did.
        seconds: How long, without its start.
        base_mb: Memory once everything was imported and nothing done.
        peak_mb: The most memory it ever held.
    """

    task: str
    seconds: float
    base_mb: float
    peak_mb: float


def _store(place: Path) -> DeltaStore:
    return DeltaStore(LakehouseConfig.model_validate({"base_path": str(place), "durability": "os"}))


def _raw_scan(place: Path) -> int:
    return sum(batch.num_rows for batch in pa.RecordBatchReader.from_stream(_stream(place)))


def _scan(place: Path) -> int:
    return sum(batch.num_rows for batch in _store(place).scan("table").reader())


def _raw_export_csv(place: Path) -> int:
    raw = pa.RecordBatchReader.from_stream(_stream(place)).cast(CSV_SCHEMA)
    count = 0
    with pa_csv.CSVWriter(place / "out.csv", CSV_SCHEMA) as writer:
        for batch in raw:
            writer.write_batch(batch)
            count += batch.num_rows
    return count


def _export_csv(place: Path) -> int:
    return export(_store(place).scan("table").reader(), place / "out.csv")


def _raw_export_parquet(place: Path) -> int:
    raw = pa.RecordBatchReader.from_stream(_stream(place))
    count = 0
    with pq.ParquetWriter(place / "out.parquet", raw.schema) as writer:
        for batch in raw:
            writer.write_batch(batch)
            count += batch.num_rows
    return count


def _export_parquet(place: Path) -> int:
    return export(_store(place).scan("table").reader(), place / "out.parquet")


def _raw_import_csv(place: Path) -> int:
    write_deltalake(place / "new", pa_csv.open_csv(place / "rows.csv"))
    return _count(place)


def _raw_import_whole_csv(place: Path) -> int:
    write_deltalake(place / "new", pa_csv.read_csv(place / "rows.csv"))
    return _count(place)


def _import_csv(place: Path) -> int:
    create_from_source(_store(place).table("new"), csv_import(place / "rows.csv"))
    return _count(place)


def _raw_import_parquet(place: Path) -> int:
    with pq.ParquetFile(place / "rows.parquet") as file:
        batches = file.iter_batches()
        write_deltalake(place / "new", pa.RecordBatchReader.from_batches(file.schema_arrow, batches))
    return _count(place)


def _import_parquet(place: Path) -> int:
    create_from_source(_store(place).table("new"), parquet_import(place / "rows.parquet"))
    return _count(place)


TASKS: Mapping[str, Callable[[Path], int]] = {
    "scan, raw stream": _raw_scan,
    "scan": _scan,
    "export to CSV, raw scan and pyarrow": _raw_export_csv,
    "export to CSV": _export_csv,
    "export to Parquet, raw scan and pyarrow": _raw_export_parquet,
    "export to Parquet": _export_parquet,
    "import of CSV, pyarrow streaming and write_deltalake": _raw_import_csv,
    "import of CSV, pyarrow at once and write_deltalake": _raw_import_whole_csv,
    "import of CSV": _import_csv,
    "import of Parquet, pyarrow and write_deltalake": _raw_import_parquet,
    "import of Parquet": _import_parquet,
}


def measure_peaks(tasks: Sequence[str], count: int, base: Path | None) -> list[Peak]:
    """Run the tasks over so many rows."""
    if not tasks:
        return []
    with tempfile.TemporaryDirectory(prefix="bench-", dir=base) as directory:
        place = Path(directory)
        _make_inputs(place, count)
        return [_in_child(task, place, count) for task in tasks]


def _make_inputs(place: Path, count: int) -> None:
    write_csv(place / "rows.csv", count)
    parts = [(first, min(_CHUNK, count - first)) for first in range(0, count, _CHUNK)]
    with pq.ParquetWriter(place / "rows.parquet", CSV_SCHEMA) as writer:
        for first, length in parts:
            writer.write_table(csv_rows(length, first))
    batches = (batch for first, length in parts for batch in csv_rows(length, first).to_batches())
    write_deltalake(place / "table", pa.RecordBatchReader.from_batches(CSV_SCHEMA, batches))


def _in_child(task: str, place: Path, count: int) -> Peak:
    shutil.rmtree(place / "new", ignore_errors=True)
    command = [sys.executable, "-m", "bench.streams", task, str(place)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{task} failed: {done.stderr}")
    answer = json.loads(done.stdout)
    if answer.pop("rows") != count:
        raise RuntimeError(f"{task} handled another number of rows")
    return Peak(task=task, **answer)


def run_task(task: str, place: Path) -> Mapping[str, Any]:
    """Do one task in this process and return what it took."""
    base = _memory_mb("VmRSS")
    start = time.perf_counter()
    count = TASKS[task](place)
    seconds = time.perf_counter() - start
    return {"rows": count, "seconds": seconds, "base_mb": base, "peak_mb": _memory_mb("VmHWM")}


def _memory_mb(line: str) -> float:
    # getrusage would count the parent's memory too: Linux carries ru_maxrss over exec.
    status = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    kilobytes = next(entry.split()[1] for entry in status if entry.startswith(line))
    return int(kilobytes) / 1024


def _stream(place: Path) -> Any:
    return cast("Any", DeltaTable(place / "table").scan())


def _count(place: Path) -> int:
    return DeltaTable(place / "new").count()


if __name__ == "__main__":
    sys.stdout.write(json.dumps(run_task(sys.argv[1], Path(sys.argv[2]))))
