"""A guest with a real kernel, and a lakehouse mounted in it with both profiles."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lakehouse_platform.store.location import Location
from lakehouse_platform_tests.support.kernel_guest import KernelGuest, guest_image, missing_programs
from lakehouse_platform_tests.support.mounted_lake import MountedLake, MountedTable
from lakehouse_platform_tests.support.s3_server import S3Server


@pytest.fixture(scope="session")
def guest() -> Iterator[KernelGuest]:
    """A running guest, one per test process."""
    if missing := missing_programs():
        pytest.skip(f"no kernel guest without {', '.join(missing)}")
    with KernelGuest(guest_image()) as running:
        yield running


@pytest.fixture(scope="session")
def lake_mounted(guest: KernelGuest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MountedLake]:
    """A lakehouse, mounted in the guest at /mnt/sync and /mnt/bulk."""
    lake = MountedLake(Path(tmp_path_factory.mktemp("mounted")))
    try:
        for profile in ("sync", "bulk"):
            lake.mount(guest, profile, f"/mnt/{profile}")
        yield lake
    finally:
        lake.close()


@pytest.fixture(scope="session")
def lake_on_s3(
    guest: KernelGuest, s3: S3Server, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[MountedLake]:
    """A lakehouse on a real S3 server, mounted in the guest at /mnt/s3."""
    place = Location(s3.fresh_uri(), s3.options)
    lake = MountedLake(Path(tmp_path_factory.mktemp("s3-state")), place)
    try:
        lake.mount(guest, "sync", "/mnt/s3")
        yield lake
    finally:
        lake.close()


@pytest.fixture(params=["sync", "bulk"])
def profile(request: pytest.FixtureRequest) -> str:
    """A mount profile."""
    return request.param


@pytest.fixture
def mounted(lake_mounted: MountedLake, guest: KernelGuest, profile: str) -> Callable[..., MountedTable]:
    """Make a table and return it as the guest sees it."""

    def make(by: str = profile, **arguments: Any) -> MountedTable:
        table = lake_mounted.table(**arguments)
        return MountedTable(table, guest, f"/mnt/{by}/{table.name}/data", by)

    return make


@pytest.fixture
def people(mounted: Callable[..., MountedTable]) -> MountedTable:
    """The three people."""
    return mounted()
