"""The server is killed again and again while programs edit; the client carries on and nothing is lost."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from lakehouse_platform_tests.campaigns import mount_kill9
from lakehouse_platform_tests.support.kernel_guest import KernelGuest

KILLS = 6


@pytest.mark.slow
def test_a_killed_server_loses_and_doubles_nothing(guest: KernelGuest, tmp_path: Path) -> None:
    """A failure names the seed; `campaigns.mount_kill9 --seed` kills after the same pauses again."""
    seed = random.randrange(2**32)
    try:
        mount_kill9.run(tmp_path, guest, KILLS, "sync", random.Random(seed))
    except AssertionError as error:
        raise AssertionError(f"seed {seed}: {error}") from error
