"""Appends to one table from many processes: nothing lost, nothing doubled.

`python -m lakehouse_platform_tests.campaigns.appends --processes 8 --appends 200 [--s3]`
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform_tests.support.processes import Job, Outcome, run_together
from lakehouse_platform_tests.support.s3_server import s3_server
from lakehouse_platform_tests.support.tables import PEOPLE, ids


@dataclass(frozen=True, slots=True)
class Report:
    """What a campaign found.

    Attributes:
        successes: Appends that were acknowledged.
        failures: Appends that were refused.
        problems: Sentences on what is wrong; empty if all is well.
        seconds: How long it took.
    """

    successes: int
    failures: list[Outcome]
    problems: list[str]
    seconds: float


def append_from_many(store: DeltaStore, name: str, *, processes: int, appends: int) -> Report:
    """Append `appends` rows from each of several processes and check every one of them."""
    start = time.monotonic()
    jobs = [
        Job("append", {"name": name, "keys": list(range(n * appends, (n + 1) * appends))})
        for n in range(processes)
    ]
    outcomes = [outcome for told in run_together(store.config, jobs) for outcome in told]
    seconds = time.monotonic() - start
    done = [outcome for outcome in outcomes if outcome.error is None]
    failures = [outcome for outcome in outcomes if outcome.error is not None]
    return Report(len(done), failures, _problems(store, name, done), seconds)


def _problems(store: DeltaStore, name: str, done: list[Outcome]) -> list[str]:
    acknowledged = Counter(outcome.key for outcome in done)
    found = Counter(ids(store, name))
    versions = Counter(outcome.version for outcome in done)
    problems = {
        "lost rows": acknowledged - found,
        "rows nobody was told of": found - acknowledged,
        "versions claimed twice": {version: times for version, times in versions.items() if times > 1},
    }
    return [f"{what}: {which}" for what, which in problems.items() if which]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--appends", type=int, default=200, help="appends of each process")
    parser.add_argument("--s3", action="store_true", help="on an S3 server instead of the disk")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        report = _run(arguments, Path(directory))
    sys.stdout.write(
        f"{report.successes} appends acknowledged, {len(report.failures)} refused in {report.seconds:.1f} s; "
        f"{'; '.join(report.problems) or 'nothing lost, nothing doubled'}\n"
    )
    return 1 if report.problems or report.failures else 0


def _run(arguments: argparse.Namespace, directory: Path) -> Report:
    if not arguments.s3:
        return _on(LakehouseConfig(base_path=str(directory / "lake")), arguments)
    with s3_server(directory) as server:
        return _on(
            LakehouseConfig(base_path=server.fresh_uri(), storage_options=dict(server.options)), arguments
        )


def _on(config: LakehouseConfig, arguments: argparse.Namespace) -> Report:
    store = DeltaStore(config)
    store.create("people", PEOPLE)
    return append_from_many(store, "people", processes=arguments.processes, appends=arguments.appends)


if __name__ == "__main__":
    sys.exit(main())
