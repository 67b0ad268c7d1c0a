from __future__ import annotations

import random
from pathlib import Path

import pytest

from lakehouse_platform_tests.support.crash_steps import STEPS
from lakehouse_platform_tests.support.crashing import CrashRun


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS)
def test_a_killed_process_leaves_whole_changes_only(step: str, tmp_path: Path) -> None:
    """A failure names the seed; `campaigns.kill9 --seed` kills at the same moments again."""
    run = CrashRun(step, tmp_path, seed=random.randrange(2**32))
    acknowledged = [run.round() for _ in range(3)]
    assert run.state >= sum(acknowledged)
