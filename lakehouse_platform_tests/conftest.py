"""Fixtures for every test: settings, stores and places on disk and on a real S3 server."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform_tests.support.s3_server import S3Server, s3_server

if TYPE_CHECKING:
    from lakehouse_platform.services.lakehouse import Lakehouse
    from lakehouse_platform.store.delta_store import DeltaStore
    from lakehouse_platform.store.location import Location

# The engine's calls vary too much in time for a deadline per example.
_BASE = settings(deadline=None, print_blob=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
# The same examples each time: a red run is about the change. The long profile looks for new ones.
settings.register_profile("ci", _BASE, max_examples=50, derandomize=True)
settings.register_profile("long", _BASE, max_examples=5_000)
settings.load_profile("ci")


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Hide the developer's own settings, state and cloud credentials: all would change what a test does."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.getbasetemp() / "state-home"))
    for variable in list(os.environ):
        if variable.upper().startswith(("LAKEHOUSE_", "AWS_", "AZURE_")):
            monkeypatch.delenv(variable)


@pytest.fixture
def config(tmp_path: Path) -> LakehouseConfig:
    """Settings of a lakehouse on disk that does not exist yet."""
    return LakehouseConfig(
        base_path=str(tmp_path / "lake"), state_path=str(tmp_path / "state"), durability="os"
    )


@pytest.fixture
def store(config: LakehouseConfig) -> DeltaStore:
    """An empty store."""
    # Here, not at the top: tests of the pure packages start without loading the engine.
    from lakehouse_platform.store.delta_store import DeltaStore

    return DeltaStore(config)


@pytest.fixture
def lake(config: LakehouseConfig) -> Lakehouse:
    """An initialised lakehouse with its system tables."""
    from lakehouse_platform.services.lakehouse import Lakehouse

    lakehouse = Lakehouse.open(config)
    lakehouse.init()
    return lakehouse


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """A real S3 server, one for each test process: it starts in half a second and takes 120 MB."""
    with s3_server(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture(params=["disk", pytest.param("s3", marks=pytest.mark.object_store)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Location:
    """A location that nothing has used yet: a test that asks for it runs on disk and on S3."""
    from lakehouse_platform.store.location import Location

    if request.param == "disk":
        return Location(str(tmp_path / "place"), {})
    server: S3Server = request.getfixturevalue("s3")
    return Location(server.fresh_uri(), server.options)
