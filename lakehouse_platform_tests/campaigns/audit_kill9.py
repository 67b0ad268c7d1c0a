"""Kills processes that write the audit log and checks that every acknowledged entry is there exactly once.

`python -m lakehouse_platform_tests.campaigns.audit_kill9 --kills 1000 [--seed 7]`
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from pathlib import Path

from lakehouse_platform_tests.support.audit_crashing import AuditCrashRun

# A check reads both tables whole, so it is made now and then only.
_ROUNDS_BETWEEN_CHECKS = 20
_MOST_WRITERS = 4


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=1000, help="how many processes are killed")
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    arguments = parser.parse_args()
    sys.stdout.write(f"seed {arguments.seed}\n")
    with tempfile.TemporaryDirectory() as directory:
        run = AuditCrashRun(Path(directory), arguments.seed)
        while run.kills < arguments.kills:
            for number in range(_ROUNDS_BETWEEN_CHECKS):
                run.round(min(1 + number % _MOST_WRITERS, max(1, arguments.kills - run.kills)))
                if run.kills >= arguments.kills:
                    break
            run.check()
            run.maintain()
            sys.stdout.write(_report(run) + "\n")
            sys.stdout.flush()
    return 0


def _report(run: AuditCrashRun) -> str:
    return (
        f"{run.kills} kills, {len(run.acknowledged)} entries acknowledged and all there once in both tables, "
        f"{run.unacknowledged} landed whole without an acknowledgement, chain unbroken"
    )


if __name__ == "__main__":
    sys.exit(main())
