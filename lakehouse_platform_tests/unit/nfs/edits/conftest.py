"""A table of people and a server that edits it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path

import pytest

from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.store.table import Table
from lakehouse_platform_tests.support.editing import PEOPLE, PEOPLE_ROWS, Bench, Running

Story = Callable[[Running], Coroutine[None, None, None]]


@pytest.fixture
def table(store: DeltaStore) -> Table:
    """Three people."""
    made = store.create("people", PEOPLE)
    made.append(PEOPLE_ROWS)
    return made


@pytest.fixture
def bench(table: Table, tmp_path: Path) -> Bench:
    """What the server needs."""
    return Bench(table, tmp_path / "state")


@pytest.fixture
def tell(bench: Bench) -> Callable[[Story], None]:
    """Runs a story with a server; called again, with the next server on the same state."""

    def run(story: Story) -> None:
        async def whole() -> None:
            async with bench.running() as running:
                await story(running)

        asyncio.run(whole())

    return run
