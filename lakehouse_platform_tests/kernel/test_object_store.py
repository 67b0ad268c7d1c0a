"""A lakehouse on S3 is edited through the kernel as one on disk is."""

from __future__ import annotations

import pytest

from lakehouse_platform_tests.kernel.edits import KINDS, check_edits
from lakehouse_platform_tests.support.kernel_guest import KernelGuest
from lakehouse_platform_tests.support.mounted_lake import MountedLake, MountedTable

pytestmark = pytest.mark.object_store


@pytest.mark.parametrize("kind", KINDS)
def test_an_edit_on_s3_is_one_version_and_the_next_command_sees_it(
    lake_on_s3: MountedLake, guest: KernelGuest, kind: str
) -> None:
    def people() -> MountedTable:
        table = lake_on_s3.table()
        return MountedTable(table, guest, f"/mnt/s3/{table.name}/data", "sync")

    check_edits(people, kind)
