"""`python -m lakehouse_platform.demo [--dir DIRECTORY]`: runs the tour in a fresh directory."""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from lakehouse_platform.demo.show import Show
from lakehouse_platform.demo.tour import run

# Only what the tour made is ever replaced.
_MARK = ".made-by-the-demo"


def main(arguments: list[str]) -> None:
    """Run the tour; an earlier tour in the same directory is replaced."""
    parser = argparse.ArgumentParser(prog="python -m lakehouse_platform.demo", description=__doc__)
    parser.add_argument(
        "--dir", type=Path, default=Path("demo"), help="where to put everything (default: demo)"
    )
    directory: Path = parser.parse_args(arguments).dir
    _make_fresh(directory)
    run(directory, Show())


def _make_fresh(directory: Path) -> None:
    if directory.exists():
        is_ours = (directory / _MARK).is_file()
        if not is_ours and (not directory.is_dir() or any(directory.iterdir())):
            sys.exit(f"{directory} is not empty and was not made by the demo: name another place with --dir.")
        shutil.rmtree(directory)
    directory.mkdir(parents=True)
    (directory / _MARK).touch()


if __name__ == "__main__":
    main(sys.argv[1:])
