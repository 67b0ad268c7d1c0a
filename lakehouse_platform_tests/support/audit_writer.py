"""Records audit entries from several threads until it is killed, and says the id of each that was acknowledged.

Started by `support.audit_crashing`. What it says goes straight into the pipe and so survives it.
"""

from __future__ import annotations

import os
import random
import sys
import threading
from pathlib import Path

from lakehouse_platform.audit.entries import AuditEntry
from lakehouse_platform.audit.log import AuditLog
from lakehouse_platform.model.actions import ActionType
from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform.store.delta_store import DeltaStore

THREADS = 4
# Short waits and small batches: a kill then comes at every moment of a commit, not mostly between two.
_INTERVAL_S, _BATCH = 0.02, 40


def _write(log: AuditLog, chance: random.Random) -> None:
    while True:
        entries = [_entry(chance) for _ in range(chance.randint(1, 5))]
        if chance.random() < 0.2:
            ids = [promise.result() for promise in [log.submit(entry) for entry in entries]]
        else:
            ids = log.record_all(entries)
        os.write(1, "".join(f"{audit_id}\n" for audit_id in ids).encode())


def _entry(chance: random.Random) -> AuditEntry:
    return AuditEntry(
        action=ActionType.DATA_READ,
        user_id=f"user {chance.randrange(10)}",
        details="x" * chance.randrange(200),
        row_count=chance.randrange(1000),
    )


def main() -> None:
    """Open the log and write, with the place, the state directory and a seed as arguments."""
    base_path, state, seed = sys.argv[1:]
    log = AuditLog(
        DeltaStore(LakehouseConfig(base_path=base_path)),
        Path(state),
        interval_s=_INTERVAL_S,
        batch_entries=_BATCH,
    )
    os.write(1, b"ready\n")
    threads = [
        threading.Thread(target=_write, args=(log, random.Random(f"{seed} {number}")))
        for number in range(THREADS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
