"""The benchmarks run, on sizes too small to say anything about speed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bench.pairs import Target
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


@pytest.mark.slow
def test_every_case_of_the_mount_is_measured_on_both_sides(tmp_path: Path) -> None:
    results = _bench("nfs", "--dir", str(tmp_path))["results"]
    names = " ".join(result["case"] for result in results)
    for operation in (
        "warm read",
        "cold read",
        "append of one line",
        "key",
        "sed -i",
        "stat",
        "small operations",
    ):
        assert operation in names
    assert all(result["raw"]["median_ms"] > 0 and result["ours"]["median_ms"] > 0 for result in results)
    assert all(result["target"] for result in results)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_every_case_of_identity_is_measured_on_both_sides(tmp_path: Path) -> None:
    results = _bench("identity", "--dir", str(tmp_path))["results"]
    names = " ".join(result["case"] for result in results)
    for operation in ("token checks", "new tokens", "sign-in", "promised", "batches", "table", "HTTP scan"):
        assert operation in names
    assert all(result["raw"]["median_ms"] > 0 and result["ours"]["median_ms"] > 0 for result in results)
    assert list(tmp_path.iterdir()) == []


def test_a_limit_is_met_by_a_share_of_the_raw_time_or_by_the_time_itself() -> None:
    target = Target(ratio=1.5, overhead_ms=0, limit_ms=100)
    assert target.is_met(raw_ms=200, overhead_ms=99)
    assert target.is_met(raw_ms=20, overhead_ms=80)
    assert not target.is_met(raw_ms=100, overhead_ms=51)
    assert str(target) == "≤ 1.50 × or in 100 ms"


def test_an_unknown_benchmark_is_refused() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bench", "nothing"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "store" in done.stderr
