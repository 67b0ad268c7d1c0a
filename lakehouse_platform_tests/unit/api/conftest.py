"""A live server for each test that asks for one, and one for all tests that leave nothing behind."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform_tests.support.http_server import LiveHttp, http_server


@pytest.fixture
def live(config: LakehouseConfig) -> Iterator[LiveHttp]:
    """A server over a lakehouse of the test's own."""
    with http_server(config) as server:
        yield server


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveHttp]:
    """A server for tests that make no accounts and change nothing."""
    place = tmp_path_factory.mktemp("shared")
    config = LakehouseConfig(base_path=str(place / "lake"), state_path=str(place / "state"), durability="os")
    with http_server(config) as server:
        yield server
