"""The server of the mount is killed at any moment: what it acknowledged is in the table exactly once."""

from __future__ import annotations

import asyncio
import random
import threading
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform_tests.support.edit_steps import STEPS, TABLE, bench
from lakehouse_platform_tests.support.processes import python_module

SCHEMA = pa.schema([("id", pa.int64()), ("step", pa.string()), ("one", pa.int32())])
LONGEST_LIFE_S = 0.6


def _acknowledged_until_killed(directory: Path, step: str, first: int, life: float) -> list[int]:
    arguments = [str(directory), step, str(first)]
    with python_module("lakehouse_platform_tests.support.edit_steps", *arguments) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        if process.stdout.readline() != b"ready\n":
            raise AssertionError(process.communicate()[1].decode())
        killer = threading.Timer(life, process.kill)
        killer.start()
        # Not `communicate`, which forgets what was read ahead with the first line.
        told = process.stdout.read()
        complaints = process.stderr.read()
        killer.join()
        assert not complaints, complaints.decode()
        return [int(line) for line in told.splitlines()]


def _after_a_restart(directory: Path) -> tuple[Counter[int], str]:
    async def whole() -> tuple[Counter[int], str]:
        async with bench(directory, wakes_itself=False).running() as run:
            for _ in range(3):
                await run.wait(61)
            found = Counter(row["id"] for row in run.view.table.scan().to_pylist())
            return found, run.last_error()

    return asyncio.run(whole())


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS)
def test_a_killed_server_keeps_what_it_acknowledged(step: str, tmp_path: Path) -> None:
    DeltaStore(LakehouseConfig(base_path=str(tmp_path / "lake"))).create(TABLE, SCHEMA)
    seed = random.randrange(2**32)
    chance, number, expected = random.Random(seed), 1, Counter[int]()
    for _ in range(4):
        life = chance.uniform(0, LONGEST_LIFE_S)
        acknowledged = _acknowledged_until_killed(tmp_path, step, number, life)
        expected.update(acknowledged)
        found, error = _after_a_restart(tmp_path)
        number = max(acknowledged, default=number - 1) + 1
        if found[number]:
            expected[number] += 1  # killed between the log and the acknowledgement
            number += 1
        assert found == expected, f"seed {seed}: {error}"
        number += 1
