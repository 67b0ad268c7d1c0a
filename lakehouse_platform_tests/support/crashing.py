"""Kills a process with SIGKILL while it changes a table, and looks at what is left."""

from __future__ import annotations

import random
import subprocess
import threading
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform_tests.support.crash_steps import SCHEMA, STEPS, TABLE
from lakehouse_platform_tests.support.processes import python_module

_LONGEST_LIFE_S = 0.4  # several steps of every kind


@dataclass
class CrashRun:
    """A table that one kind of change is killed on, again and again.

    Attributes:
        step: The kind of change, a key of `STEPS`.
        directory: Where the store stands.
        seed: Decides when each process is killed.
        state: Number of the change whose rows the table holds.
        torn: How often the kill came between a commit and its acknowledgement.
    """

    step: str
    directory: Path
    seed: int
    state: int = 0
    torn: int = 0
    _random: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._store().create(TABLE, SCHEMA)

    def round(self) -> int:
        """Kill one process, check the table, write on; return how many changes had been acknowledged.

        Raises:
            AssertionError: The table is not what it must be.
        """
        acknowledged = self._kill_one()
        last = acknowledged[-1] if acknowledged else self.state
        found = self._store().scan(TABLE).to_polars().sort("id")
        landed = [number for number in (last, last + 1) if found.equals(self._expected(number))]
        assert landed, f"seed {self.seed}, {self.step}: after change {last} the table holds {_summary(found)}"
        self.torn += landed[0] > last
        self.state = landed[0] + 1
        STEPS[self.step].apply(self._store(), self.state)
        return len(acknowledged)

    def _kill_one(self) -> list[int]:
        life = self._random.uniform(0, _LONGEST_LIFE_S)
        arguments = [self._base_path, self.step, str(self.state + 1)]
        with python_module("lakehouse_platform_tests.support.crash_steps", *arguments) as process:
            assert process.stdout is not None
            if process.stdout.readline() != b"ready\n":
                raise AssertionError(process.communicate()[1].decode())
            return _acknowledged_until_killed(process, life)

    def _expected(self, number: int) -> pl.DataFrame:
        return STEPS[self.step].rows_after(number)

    def _store(self) -> DeltaStore:
        return DeltaStore(LakehouseConfig(base_path=self._base_path))

    @property
    def _base_path(self) -> str:
        return str(self.directory / "lake")


def _acknowledged_until_killed(process: subprocess.Popen[bytes], life: float) -> list[int]:
    killer = threading.Timer(life, process.kill)
    killer.start()
    told, complaints = process.communicate()
    killer.join()
    assert not complaints, complaints.decode()
    return [int(line) for line in told.splitlines()]


def _summary(found: pl.DataFrame) -> str:
    per_batch = found.group_by("batch").agg(pl.len(), pl.col("id").n_unique().alias("ids")).sort("batch")
    return f"{found.height} rows: {per_batch.rows()}"
