from __future__ import annotations

import random
from pathlib import Path

import pytest

from lakehouse_platform_tests.support.audit_crashing import AuditCrashRun


@pytest.mark.slow
def test_every_acknowledged_entry_is_there_once_after_its_writers_were_killed(tmp_path: Path) -> None:
    """A failure names the seed; `campaigns.audit_kill9 --seed` kills at about the same moments again."""
    run = AuditCrashRun(tmp_path, seed=random.randrange(2**32))
    for writers in (1, 2, 1, 2):
        run.round(writers)
    run.check()
    assert run.kills == 6
    assert run.acknowledged
