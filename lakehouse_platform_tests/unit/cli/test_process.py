"""What only a real process shows: terminals, pipes, signals."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import shlex
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

import pytest

from lakehouse_platform.cli.exits import ExitStatus

PROGRAM = [sys.executable, "-m", "lakehouse_platform"]
SIXTY_SECONDS = 60.0


def on_a_terminal(
    words: Sequence[str], directory: Path, answer: str = "", columns: int = 100
) -> tuple[int, str]:
    """Run the program on a pseudo-terminal; `answer` is typed at once. Returns exit status and screen."""
    master, slave = pty.openpty()
    env = {**os.environ, "TERM": "xterm", "COLUMNS": str(columns)}
    process = subprocess.Popen(
        [*PROGRAM, *words], cwd=directory, stdin=slave, stdout=slave, stderr=slave, env=env
    )
    os.close(slave)
    os.write(master, answer.encode())
    screen = b""
    deadline = time.monotonic() + SIXTY_SECONDS
    while time.monotonic() < deadline:
        if not select.select([master], [], [], 1.0)[0]:
            continue
        try:
            part = os.read(master, 65536)
        except OSError:  # the other side is closed: the program ended
            break
        if not part:
            break
        screen += part
    os.close(master)
    return process.wait(SIXTY_SECONDS), screen.decode()


def test_rows_on_a_terminal_are_a_table_with_null_in_another_style(workplace: Path) -> None:
    status, screen = on_a_terminal(["query", "customers", "SELECT * FROM data ORDER BY id"], workplace)
    assert status == 0
    assert "Alice A." in screen
    assert "\x1b[2;3mNULL" in screen  # dim italic
    assert "(4 rows)" in screen


def test_a_long_result_on_a_terminal_is_cut_with_a_note(workplace: Path) -> None:
    words = ["query", "customers", "SELECT id FROM data", "--max-rows", "3"]
    assert "… 1 more row " in on_a_terminal(words, workplace)[1]


def test_columns_that_do_not_fit_are_named(workplace: Path) -> None:
    names = ", ".join(f"'{'v' * 20}' AS column_number_{number}" for number in range(9))
    screen = on_a_terminal(["sql", f"SELECT {names}"], workplace, columns=80)[1]
    assert "more columns:" in screen
    assert "column_number_8" in screen


def test_listings_on_a_terminal_are_tables(workplace: Path) -> None:
    status, screen = on_a_terminal(["tables"], workplace, columns=160)
    assert status == 0
    assert "customers" in screen
    assert "name,rows" not in screen


def test_binary_rows_are_kept_off_the_terminal(workplace: Path) -> None:
    status, screen = on_a_terminal(["sql", "SELECT 1 AS n", "--format", "parquet"], workplace)
    assert status == 2
    assert "binary" in screen


def test_json_on_a_terminal_is_indented_and_complete(workplace: Path) -> None:
    screen = on_a_terminal(["describe", "customers", "--json"], workplace)[1]
    assert json.loads(screen)["rows"] == 4
    assert '\r\n  "name"' in screen


@pytest.mark.parametrize(("answer", "status", "left"), [("y\n", 0, False), ("n\n", 1, True)])
def test_a_question_is_asked_on_a_terminal(workplace: Path, answer: str, status: int, left: bool) -> None:
    assert on_a_terminal(["drop", "orders"], workplace, answer)[0] == status
    assert (workplace / "lakehouse" / "orders").exists() is left


def test_insert_without_rows_on_a_terminal_does_not_wait(workplace: Path) -> None:
    status, screen = on_a_terminal(["insert", "customers"], workplace)
    assert status == 2
    assert "--file" in screen


def in_a_pipe(*words: str, directory: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*PROGRAM, *words], cwd=directory, capture_output=True, text=True, check=False)


def test_a_pipe_gets_no_colours_and_no_progress(workplace: Path) -> None:
    done = in_a_pipe("export", "orders", "orders2.csv", directory=workplace)
    assert "\x1b" not in done.stdout + done.stderr
    assert done.stderr == ""


def test_a_reader_that_leaves_ends_the_program_quietly(workplace: Path) -> None:
    # Far more than the 64 KB that a pipe holds.
    (workplace / "big.csv").write_text("n\n" + "".join(f"{number}\n" for number in range(300_000)))
    assert in_a_pipe("create", "big", "--from-csv", "big.csv", directory=workplace).returncode == 0
    program = " ".join(
        map(shlex.quote, [*PROGRAM, "query", "big", "SELECT * FROM data", "--format", "jsonl"])
    )
    script = f"{program} | head -n 1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", script], cwd=workplace, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1] == str(ExitStatus.BROKEN_PIPE.value)
    assert done.stderr == ""


# A test run in the background ignores SIGINT and its children inherit that; in the foreground they do not.
FOREGROUND = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler);"
    "from lakehouse_platform.cli.main import main; main()"
)


def started(*words: str, directory: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", FOREGROUND, *words]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=directory, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def wait_until(reached: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + SIXTY_SECONDS
    while not reached():
        assert time.monotonic() < deadline
        with suppress(subprocess.TimeoutExpired):
            raise AssertionError(f"ended early with {process.wait(0.02)}")


def unread_bytes(stream: IO[str]) -> int:
    return int.from_bytes(fcntl.ioctl(stream, termios.FIONREAD, b"\0" * 4), sys.byteorder)


def cpu_seconds(process: subprocess.Popen[str]) -> float:
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) / os.sysconf("SC_CLK_TCK")


def test_ctrl_c_while_reading_input_is_130_and_changes_nothing(workplace: Path) -> None:
    process = started("insert", "customers", directory=workplace)
    stdin = process.stdin
    assert stdin
    stdin.write('{"id": 99, "name": "half')
    stdin.flush()
    wait_until(lambda: unread_bytes(stdin) == 0, process)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=SIXTY_SECONDS)
    assert (process.returncode, errors.split()[-1]) == (ExitStatus.INTERRUPTED, "Interrupted.")
    assert "Traceback" not in errors
    count = in_a_pipe("query", "customers", "SELECT count(*) FROM data", directory=workplace).stdout
    assert count.split()[-1] == "4"


def test_ctrl_c_ends_a_query_that_the_engine_is_computing(workplace: Path) -> None:
    tables = ", ".join(f"data t{number}" for number in range(20))
    process = started(
        "query", "customers", f"SELECT count(*) FROM {tables} WHERE t0.id < t19.id", directory=workplace
    )
    wait_until(lambda: cpu_seconds(process) > 4, process)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=10)
    assert (process.returncode, errors.split()[-1]) == (ExitStatus.INTERRUPTED, "Interrupted.")
