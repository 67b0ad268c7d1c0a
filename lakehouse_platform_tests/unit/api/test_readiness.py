"""Readiness is tried when asked for, and at most once a second."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from lakehouse_platform.api import readiness
from lakehouse_platform.api.readiness import Readiness
from lakehouse_platform.services.lakehouse import Lakehouse


def test_the_parts_that_do_not_work_are_named(lake: Lakehouse) -> None:
    with lake:
        assert asyncio.run(Readiness(lake).failing()) == []
        shutil.rmtree(lake.config.base_path)
        shutil.rmtree(Path(lake.config.state_path or "") / "audit")
        assert asyncio.run(Readiness(lake).failing()) == ["store", "audit journal"]


def test_who_asks_often_gets_the_same_answer_for_a_second(
    lake: Lakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = 0.0
    monkeypatch.setattr(readiness, "time", SimpleNamespace(monotonic=lambda: seconds))

    async def main() -> None:
        nonlocal seconds
        asked = Readiness(lake)
        assert await asked.failing() == []
        shutil.rmtree(lake.config.base_path)
        seconds = 0.9
        assert await asyncio.gather(*(asked.failing() for _ in range(20))) == [[]] * 20
        seconds = 1.0
        assert await asked.failing() == ["store"]

    with lake:
        assert lake.accounts is not None
        asyncio.run(main())
