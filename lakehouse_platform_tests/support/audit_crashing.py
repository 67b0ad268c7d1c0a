"""Kills processes with SIGKILL while they write the audit log, and looks at what is left."""

from __future__ import annotations

import os
import random
import subprocess
import threading
from collections import Counter
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from lakehouse_platform.audit.log import AuditLog
from lakehouse_platform.audit.verify import verify
from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform_tests.support.processes import python_module

_READY = b"ready\n"
_LONGEST_LIFE_S = 0.8  # many commits, and time to move what the process before left


@dataclass
class AuditCrashRun:
    """A lakehouse whose audit log is written by processes that are killed, several at once on one state directory.

    Attributes:
        directory: Where the lakehouse and the state are.
        seed: Decides when each process is killed.
        kills: How many were killed so far.
        acknowledged: The ids of all entries that were acknowledged.
        unacknowledged: How many entries landed that nobody was told of, at the last check.
    """

    directory: Path
    seed: int
    kills: int = 0
    acknowledged: list[str] = field(default_factory=list[str])
    unacknowledged: int = 0
    _random: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self.store = DeltaStore(LakehouseConfig(base_path=str(self.directory / "lake")))

    def round(self, writers: int) -> None:
        """Start so many processes at once and kill each in its own moment."""
        with ExitStack() as stack:
            running = [stack.enter_context(self._writer()) for _ in range(writers)]
            for process in running:
                _expect_ready(process)
            killers = [threading.Timer(self._random.uniform(0, _LONGEST_LIFE_S), one.kill) for one in running]
            for killer in killers:
                killer.start()
            for process in running:
                self.acknowledged += _told(process)
            for killer in killers:
                killer.join()
        self.kills += writers

    def check(self) -> None:
        """Move what the last processes left, and look whether all is as it must be.

        Raises:
            AssertionError: An acknowledged entry is missing, an entry is doubled, or the chain is broken.
        """
        state = self.directory / "state"
        with AuditLog(self.store, state) as log:
            log.flush()
            remembered = log.remembered.read()
        # Of writers that were killed the names are left, for the next ones.
        left = {path.suffix for path in state.iterdir()}
        assert left == {"", ".lock"}, f"seed {self.seed}: a journal is left in {state}"
        for table, column in (("audit_log", "audit_id"), ("user_actions", "action_id")):
            rows = self.store.scan(table, [column]).to_arrow().column(0).to_pylist()
            counts = Counter(rows)
            lost = [audit_id for audit_id in self.acknowledged if not counts[audit_id]]
            doubled = [audit_id for audit_id, count in counts.items() if count > 1]
            assert (lost, doubled) == ([], []), f"seed {self.seed}, {table}: {lost}, {doubled}"
            self.unacknowledged = len(counts) - len(self.acknowledged)
        result = verify(self.store.table("audit_log"), remembered)
        assert result.is_whole, f"seed {self.seed}: {result.problems}"

    def maintain(self) -> None:
        """Compact the tables, as maintenance does between writers."""
        for table in ("audit_log", "user_actions"):
            self.store.compact(table)

    def _writer(self) -> AbstractContextManager[subprocess.Popen[bytes]]:
        places = (str(self.directory / name) for name in ("lake", "state"))
        seed = str(self._random.randrange(2**32))
        return python_module("lakehouse_platform_tests.support.audit_writer", *places, seed)


def _expect_ready(process: subprocess.Popen[bytes]) -> None:
    assert process.stdout is not None
    # Not `readline`, which takes more out of the pipe than it returns, where `communicate` does not find it.
    if os.read(process.stdout.fileno(), len(_READY)) != _READY:
        raise AssertionError(process.communicate()[1].decode())


def _told(process: subprocess.Popen[bytes]) -> list[str]:
    told, complaints = process.communicate()
    assert not complaints, complaints.decode()
    # The last line may be torn in the middle, and then it was told to nobody.
    return [line.decode().strip() for line in told.splitlines(keepends=True) if line.endswith(b"\n")]
