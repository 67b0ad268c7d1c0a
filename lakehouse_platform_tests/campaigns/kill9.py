"""Kills processes in the middle of changes and checks every table afterwards.

`python -m lakehouse_platform_tests.campaigns.kill9 --rounds 50 [--step append] [--seed 7]`
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from pathlib import Path

from lakehouse_platform_tests.support.crash_steps import STEPS
from lakehouse_platform_tests.support.crashing import CrashRun


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=50, help="kills for each kind of change")
    parser.add_argument("--step", choices=[*STEPS], action="append", help="kind of change; all if not given")
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    arguments = parser.parse_args()
    sys.stdout.write(f"seed {arguments.seed}\n")
    for step in arguments.step or STEPS:
        sys.stdout.write(_report(step, arguments.rounds, arguments.seed) + "\n")
        sys.stdout.flush()
    return 0


def _report(step: str, rounds: int, seed: int) -> str:
    with tempfile.TemporaryDirectory() as directory:
        run = CrashRun(step, Path(directory), seed)
        acknowledged = sum(run.round() for _ in range(rounds))
    return (
        f"{step}: {rounds} kills, {acknowledged} changes acknowledged and all there, "
        f"{run.torn} landed whole without an acknowledgement, none in part"
    )


if __name__ == "__main__":
    sys.exit(main())
