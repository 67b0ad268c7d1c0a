"""What every start of the program pays."""

from __future__ import annotations

import resource
import subprocess
import sys

HEAVY = ("pyarrow", "deltalake", "datafusion", "polars", "pydantic", "dagster", "rich")


def started(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, check=True)


def test_help_imports_no_engine() -> None:
    script = (
        "import sys; from lakehouse_platform.cli.main import cli\n"
        "try: cli.main(['--help'], 'lakehouse')\n"
        f"except SystemExit: print([name for name in {HEAVY} if name in sys.modules], file=sys.stderr)"
    )
    assert started("-c", script).stderr.strip() == "[]"


def test_help_of_every_command_imports_no_engine() -> None:
    script = (
        "import sys; from lakehouse_platform.cli.main import cli\n"
        "for name in cli.commands:\n"
        "    try: cli.main([name, '--help'], 'lakehouse')\n"
        "    except SystemExit as end: assert end.code == 0, name\n"
        f"print([name for name in {HEAVY} if name in sys.modules], file=sys.stderr)"
    )
    assert started("-c", script).stderr.strip() == "[]"


def test_help_appears_at_once() -> None:
    def cpu_seconds(*words: str) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        started(*words)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    # Processor time, which a busy machine does not change; measured: 0.14 s.
    assert min(cpu_seconds("-m", "lakehouse_platform", "--help") for _ in range(3)) < 0.25
