from __future__ import annotations

from collections.abc import Generator

import pytest

from lakehouse_platform.client.retrying import RetryPolicy
from lakehouse_platform.client.sync import LakehouseClient
from lakehouse_platform.model.actors import Role
from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform_tests.support.cutting_wire import CuttingWire, cutting_wire
from lakehouse_platform_tests.support.http_server import LiveHttp, http_server

# So that a test which waits for a repetition does not wait long.
QUICK = RetryPolicy(attempts=4, budget_seconds=20, first_seconds=0.02, longest_seconds=0.1)


@pytest.fixture
def live(config: LakehouseConfig) -> Generator[LiveHttp]:
    """A live server."""
    with http_server(config) as live:
        yield live


@pytest.fixture
def wire(live: LiveHttp) -> Generator[CuttingWire]:
    """A proxy in front of it that can break connections."""
    with cutting_wire(live.base_url) as wire:
        yield wire


@pytest.fixture
def root(live: LiveHttp, wire: CuttingWire) -> Generator[LakehouseClient]:
    """A client of a superadmin, through the proxy."""
    token = live.person("root", Role.SUPERADMIN).tokens.access_token
    with LakehouseClient(wire.base_url, token=token, retries=QUICK) as client:
        yield client
