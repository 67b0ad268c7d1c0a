"""The benchmarks run, on sizes too small to say anything about speed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lakehouse_platform_tests.architecture.source import ROOT


def _bench(*arguments: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "bench", *arguments, "--quick", "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=240)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
def test_every_case_of_the_store_is_measured_on_both_sides(tmp_path: Path) -> None:
    results = _bench("store", "--dir", str(tmp_path))["results"]
    names = " ".join(result["case"] for result in results)
    for operation in ("append of one row", "append of 1 M", "scan", "SQL", "merge", "compact", "CSV"):
        assert operation in names
    assert all(result["raw"]["median_ms"] > 0 and result["ours"]["median_ms"] > 0 for result in results)
    assert {result["verdict"] for result in results} <= {"ok", "missed", "-"}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_scale_tells_the_peak_of_every_stream(tmp_path: Path) -> None:
    answer = _bench("scale", "--dir", str(tmp_path), "--only", "commits", "--only", "CSV")
    assert any("history" in result["case"] for result in answer["results"])
    assert {"export to CSV", "import of CSV"} <= {peak["task"] for peak in answer["peaks"]}
    assert all(0 < peak["base_mb"] <= peak["peak_mb"] for peak in answer["peaks"])


def test_an_unknown_benchmark_is_refused() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bench", "nothing"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "store" in done.stderr
