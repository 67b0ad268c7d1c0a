"""Prints results for people and as JSON."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import version
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.pairs import Result
from bench.streams import Peak

_COLUMNS = ("raw ms", "ours ms", "overhead ms", "ratio", "cpu ratio", "target", "verdict")
_LIBRARIES = ("deltalake", "pyarrow", "polars", "datafusion")


def machine() -> Mapping[str, Any]:
    """Return what the figures depend on."""
    return {
        "processors": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "python": platform.python_version(),
        **{name: version(name) for name in _LIBRARIES},
    }


def as_json(results: Sequence[Result], peaks: Sequence[Peak]) -> str:
    """Return everything as one JSON object."""
    answer = {"machine": machine(), "results": [result.to_dict() for result in results]}
    return json.dumps(answer | ({"peaks": [asdict(peak) for peak in peaks]} if peaks else {}))


def print_peaks(peaks: Sequence[Peak], rows: int, console: Console) -> None:
    """Print one line for each task over many rows."""
    if not peaks:
        return
    table = Table("task", title=f"{rows:,} rows, each task in a process of its own".replace(",", " "))
    for column in ("seconds", "base MB", "peak MB"):
        table.add_column(column, justify="right")
    for peak in peaks:
        table.add_row(peak.task, f"{peak.seconds:.1f}", f"{peak.base_mb:.0f}", f"{peak.peak_mb:.0f}")
    console.print(table)


def print_results(results: Sequence[Result], console: Console) -> None:
    """Print one line for each case: medians, and the spread of each side below its median."""
    if not results:
        return
    table = Table("case", title=", ".join(f"{key} {value}" for key, value in machine().items()))
    for column in _COLUMNS:
        table.add_column(column, justify="right")
    for result in results:
        table.add_row(result.case, *_cells(result), style="red" if result.verdict == "missed" else None)
    console.print(table)
    console.print("Medians over pairs run in turns; in brackets the fastest and the slowest run.")


def _cells(result: Result) -> tuple[str, ...]:
    return (
        _spread(result.raw.wall, result.raw.median),
        _spread(result.ours.wall, result.ours.median),
        f"{result.overhead_ms:+.1f}",
        f"{result.ratio:.2f}",
        f"{result.cpu_ratio:.2f}",
        str(result.target or "-"),
        result.verdict,
    )


def _spread(times: Sequence[float], middle: float) -> str:
    return f"{middle:.1f} ({min(times):.1f}–{max(times):.1f})"
