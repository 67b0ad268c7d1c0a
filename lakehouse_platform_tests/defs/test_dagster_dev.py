"""`dagster dev` as a user starts it: from the project's root, with nothing set."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from time import monotonic
from typing import Any

import httpx
import pytest

from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform_tests.defs import graphql
from lakehouse_platform_tests.support.ports import reserved_ports
from lakehouse_platform_tests.support.tables import PEOPLE, people

PROJECT = Path(__file__).parents[2]
_STARTS_WITHIN_S = 180
_ENDS_WITHIN_S = 60

Process = subprocess.Popen[bytes]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def eventually(holds: Callable[[], Any], within: float, process: Process | None = None) -> Any:
    """Ask again and again until the answer is true, the process is gone, or the time is over."""
    pause, deadline = Event(), monotonic() + within
    while monotonic() < deadline:
        assert process is None or process.poll() is None, "dagster dev has ended"
        if answer := holds():
            return answer
        pause.wait(0.5)
    raise AssertionError(f"not within {within} seconds")


def asked(client: httpx.Client, query: str, variables: dict[str, Any] | None = None) -> dict[str, Any]:
    answer = client.post("/graphql", json={"query": query, "variables": variables or {}}).json()
    assert "errors" not in answer, answer
    return answer["data"]


def serves(client: httpx.Client) -> bool:
    try:
        return client.get("/server_info").status_code == 200
    except httpx.TransportError:
        return False


# A shell without job control hands down ignored signals, and Dagster would keep them ignored.
_AS_FROM_A_TERMINAL = """
import runpy, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGTERM, signal.SIG_DFL)
runpy.run_module("dagster", run_name="__main__", alter_sys=True)
"""


@contextmanager
def dagster_dev(root: Path, port: int) -> Iterator[Process]:
    clean = {
        name: value for name, value in os.environ.items() if not name.startswith(("LAKEHOUSE", "DAGSTER"))
    }
    with (root / "dev.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", _AS_FROM_A_TERMINAL, "dev", "-h", "127.0.0.1", "-p", str(port)],
            cwd=root,
            env={**clean, "PYTHONPATH": str(PROJECT)},
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project's root as a clone has it, with a lakehouse of one user table beside."""
    for name in ("workspace.yaml", "dagster.yaml", "pyproject.toml"):
        shutil.copy(PROJECT / name, tmp_path)
    store = DeltaStore(LakehouseConfig(base_path=str(tmp_path / "lakehouse"), durability="os"))
    store.create("orders", PEOPLE)
    store.append("orders", people(1, 2, 3))
    return tmp_path


def test_it_serves_the_tables_runs_a_job_and_stops_clean(root: Path) -> None:
    with (
        reserved_ports(1) as (port,),
        dagster_dev(root, port) as process,
        httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30) as client,
    ):
        eventually(lambda: serves(client), _STARTS_WITHIN_S, process)
        nodes = eventually(lambda: asked(client, graphql.CATALOG)["assetNodes"], _STARTS_WITHIN_S, process)
        assert ["lakehouse", "orders"] in [node["assetKey"]["path"] for node in nodes]

        launched = asked(client, graphql.LAUNCH, graphql.launch_variables("refresh_tables"))["launchRun"]
        assert launched["__typename"] == "LaunchRunSuccess", launched
        run = {"id": launched["run"]["runId"]}
        status = eventually(lambda: _ended(client, run), _STARTS_WITHIN_S, process)
        assert status == "SUCCESS", (root / "dev.log").read_text()[-5000:]
        assert _shown(client, "orders")["dagster/row_count"] == 3

        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(_ENDS_WITHIN_S) == 0
        eventually(lambda: _all_gone(process.pid), _ENDS_WITHIN_S)
    assert (root / "lakehouse" / "users" / "_delta_log").is_dir()


def _ended(client: httpx.Client, run: dict[str, str]) -> str | None:
    status = asked(client, graphql.RUN, run)["runOrError"]["status"]
    return status if status in {"SUCCESS", "FAILURE", "CANCELED"} else None


def _shown(client: httpx.Client, table: str) -> dict[str, Any]:
    asset = asked(client, graphql.ASSET, {"key": {"path": ["lakehouse", table]}})["assetOrError"]
    entries = asset["assetMaterializations"][0]["metadataEntries"]
    return {entry["label"]: entry.get("intValue", entry.get("mdStr")) for entry in entries}


def _all_gone(group: int) -> bool:
    """Tell whether every process of the group has ended; those only waiting to be reaped count as ended."""
    return all(
        state == "Z"
        for state, its_group in map(_state_and_group, Path("/proc").glob("[0-9]*/stat"))
        if its_group == group
    )


def _state_and_group(stat: Path) -> tuple[str, int]:
    try:
        state, _, group = stat.read_text().rpartition(")")[2].split()[:3]
    except OSError:  # it ended between the listing and the reading
        return "Z", 0
    return state, int(group)
