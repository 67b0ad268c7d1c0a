"""The command: `python -m bench store`, and `scale`, `nfs` and `identity` in its place."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from bench.identity_cases import identity_cases
from bench.nfs_cases import nfs_cases
from bench.pairs import Result, measure
from bench.read_cases import READ_CASES
from bench.report import as_json, print_peaks, print_results
from bench.scale_cases import scale_cases
from bench.streams import TASKS, measure_peaks
from bench.workshop import QUICK, Case, Sizes, Workshop
from bench.write_cases import WRITE_CASES

_PLAIN_WIDTH = 160
STORE_CASES = (*WRITE_CASES, *READ_CASES)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmarks that the arguments name and return the exit status.

    It is 0 whatever the figures say, unless `--check` asks for them; a case that cannot run ends the program.
    """
    options = _parser().parse_args(arguments)
    sizes = QUICK if options.quick else Sizes(pairs=options.pairs)
    console = _console(options.json)
    cases = _cases(options.what, sizes)
    tasks = list(TASKS) if options.what == "scale" else []
    results = [_run(case, sizes, options.dir, console) for case in cases if _wanted(case.name, options.only)]
    peaks = measure_peaks(
        [task for task in tasks if _wanted(task, options.only)], sizes.stream_rows, options.dir
    )
    if options.json:
        sys.stdout.write(as_json(results, peaks) + "\n")
    else:
        print_results(results, console)
        print_peaks(peaks, sizes.stream_rows, console)
    missed = [result for result in results if result.verdict == "missed"]
    return 1 if options.check and missed else 0


def _console(to_stderr: bool) -> Console:
    console = Console(stderr=to_stderr)
    # A pipe has no width; the table needs this much.
    return console if console.is_terminal else Console(stderr=to_stderr, width=_PLAIN_WIDTH)


def _cases(what: str, sizes: Sizes) -> Sequence[Case]:
    if what == "scale":
        return scale_cases(sizes.commits)
    if what == "identity":
        return identity_cases(sizes)
    return STORE_CASES if what == "store" else nfs_cases(sizes)


def _wanted(name: str, parts: Sequence[str] | None) -> bool:
    return not parts or any(part in name for part in parts)


def _run(case: Case, sizes: Sizes, base: Path | None, console: Console) -> Result:
    with tempfile.TemporaryDirectory(prefix="bench-", dir=base) as place, console.status(case.name):
        workshop = Workshop(Path(place), sizes)
        with workshop.cleanup:
            pair = case.prepare(workshop)
            pairs = max(1, round(case.pairs * sizes.pairs))
            return measure(case.name, pair, pairs, pair.target or case.target)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description="Measures the platform against the raw libraries, in pairs and in one run.",
    )
    parser.add_argument(
        "what",
        choices=["store", "scale", "nfs", "identity"],
        help="every operation; long logs and 10 M rows; the mount; or sign-ins, audit log and HTTP",
    )
    parser.add_argument(
        "--only", action="append", metavar="TEXT", help="cases whose name contains this; repeatable"
    )
    parser.add_argument(
        "--pairs", type=float, default=1.0, metavar="FACTOR", help="factor on the number of pairs"
    )
    parser.add_argument(
        "--quick", action="store_true", help="tiny sizes: does it run? The figures say nothing"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a target is missed")
    parser.add_argument(
        "--dir", type=Path, metavar="DIR", help="where to work (default: the system's temporary directory)"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
