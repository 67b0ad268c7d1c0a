"""What the UI asks for, answered by the real web server application without a socket."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import httpx
import pytest
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import WorkspaceFileTarget
from dagster_webserver.app import create_app_from_workspace_process_context

from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.upkeep.status import registered_tables
from lakehouse_platform_tests.defs import graphql
from lakehouse_platform_tests.support.tables import PEOPLE, people

PROJECT = Path(__file__).parents[2]

Ask = Callable[..., dict[str, Any]]

pytestmark = pytest.mark.slow


@pytest.fixture
def ask(
    tmp_path: Path, store: DeltaStore, config: LakehouseConfig, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Ask]:
    """Ask the web server about a lakehouse with one user table."""
    store.create("orders", PEOPLE)
    store.append("orders", people(1, 2, 3))
    monkeypatch.setenv("LAKEHOUSE_URI", config.base_path)
    (tmp_path / "home").mkdir()
    with (
        dg.DagsterInstance.local_temp(str(tmp_path / "home")) as instance,
        WorkspaceProcessContext(instance, WorkspaceFileTarget([str(PROJECT / "workspace.yaml")])) as context,
    ):
        transport = httpx.ASGITransport(create_app_from_workspace_process_context(context))

        async def send(question: dict[str, Any]) -> dict[str, Any]:
            async with httpx.AsyncClient(transport=transport, base_url="http://dagster") as client:
                return (await client.post("/graphql", json=question, timeout=60)).json()

        def post(query: str, variables: dict[str, Any] | None = None) -> dict[str, Any]:
            answer = asyncio.run(send({"query": query, "variables": variables or {}}))
            assert "errors" not in answer, answer["errors"]
            return answer["data"]

        yield post


def test_the_ui_shows_every_table_job_schedule_and_sensor(ask: Ask) -> None:
    nodes = {"/".join(node["assetKey"]["path"]): node for node in ask(graphql.CATALOG)["assetNodes"]}

    assert sorted(nodes) == [f"lakehouse/{name}" for name in sorted([*registered_tables(), "orders"])]
    assert all(node["isMaterializable"] and node["hasAssetChecks"] for node in nodes.values())
    assert (nodes["lakehouse/orders"]["groupName"], nodes["lakehouse/users"]["groupName"]) == (
        "user_tables",
        "system_tables",
    )
    assert {"deltalake", "table"} <= set(nodes["lakehouse/orders"]["kinds"])
    assert nodes["lakehouse/orders"]["owners"] == [{"team": "data"}]

    repository = ask(graphql.AUTOMATION)["repositoriesOrError"]["nodes"][0]
    assert {"compact_tables", "refresh_tables", "session_cleanup", "vacuum_tables", "z_order_tables"} <= {
        job["name"] for job in repository["jobs"]
    }
    assert {schedule["scheduleState"]["status"] for schedule in repository["schedules"]} == {"RUNNING"}
    assert {sensor["sensorState"]["status"] for sensor in repository["sensors"]} == {"RUNNING"}

    schema = ask(graphql.RUN_CONFIG, {"selector": graphql.job_selector("vacuum_tables")})
    assert "dry_run: true" in schema["runConfigSchemaOrError"]["rootDefaultYaml"]
