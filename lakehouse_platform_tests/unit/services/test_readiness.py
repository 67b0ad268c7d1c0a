"""A lakehouse knows which of its parts do not work."""

from __future__ import annotations

import shutil
from pathlib import Path

from lakehouse_platform.audit.entries import AuditEntry
from lakehouse_platform.model.actions import ActionType
from lakehouse_platform.services.lakehouse import Lakehouse
from lakehouse_platform.services.readiness import failing_parts, waiting_entries


def test_a_whole_lakehouse_has_no_failing_part(lake: Lakehouse) -> None:
    with lake:
        assert failing_parts(lake) == []


def test_a_store_that_is_gone_is_named(lake: Lakehouse) -> None:
    with lake:
        assert lake.accounts is not None
        shutil.rmtree(lake.config.base_path)
        assert failing_parts(lake) == ["store"]


def test_a_journal_that_takes_nothing_is_named(lake: Lakehouse) -> None:
    with lake:
        assert failing_parts(lake) == []
        shutil.rmtree(Path(lake.config.state_path or "") / "audit")
        assert failing_parts(lake) == ["audit journal"]


def test_trying_the_journal_leaves_nothing_behind(lake: Lakehouse) -> None:
    with lake:
        before = waiting_entries(lake)
        assert failing_parts(lake) == []
        assert waiting_entries(lake) == before == 0
        assert not list((Path(lake.config.state_path or "") / "audit").glob("*.probe"))


def test_entries_that_wait_for_the_table_are_counted(lake: Lakehouse) -> None:
    with lake:
        lake.accounts.audit.log(AuditEntry(action=ActionType.CUSTOM, user_id="owner"))
        assert waiting_entries(lake) <= 1
        lake.accounts.audit.flush()
        assert waiting_entries(lake) == 0
