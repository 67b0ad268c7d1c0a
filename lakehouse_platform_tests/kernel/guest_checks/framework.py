"""Names checks, runs each in a directory of its own and prints what came of it, one line each."""

from __future__ import annotations

import errno
import os
import stat
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any

Checks = dict[str, Callable[[], None]]
LONG = "n" * 255
TOO_LONG = "n" * 256
# PATH_MAX is 4096 with the NUL.
LONG_PATH = "./" * 2000 + "x" * 96
# Linux itself drops the fraction in the first and the last second that a file system can tell (`timestamp_truncate`).
SECOND = 1_000_000_000
# What the kernel hands on for NFS3ERR_NOTSUPP: its own ENOTSUPP, which no C library knows.
NOTSUPP = 524
REFUSED = (errno.EPERM, errno.EOPNOTSUPP, NOTSUPP)


def add(checks: Checks) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Register a check by its function's name, in words."""

    def register(function: Callable[[], None]) -> Callable[[], None]:
        checks[function.__name__.replace("_", " ")] = function
        return function

    return register


def succeeds(call: Callable[..., Any], *arguments: Any) -> bool:
    """Make a call and tell whether it was the first: another may have made or taken the name."""
    try:
        call(*arguments)
    except (FileExistsError, FileNotFoundError):
        return False
    return True


def fails(codes: int | tuple[int, ...], call: Callable[..., Any], *arguments: Any, **named: Any) -> None:
    """Assert that a system call is refused with one of these errors."""
    expected = (codes,) if isinstance(codes, int) else codes
    try:
        result: object = call(*arguments, **named)
    except OSError as error:
        if error.errno in expected:
            return
        result = error
    raise AssertionError(f"{call.__name__}{arguments!r:.100} gave {result!r}, not {expected}")


def equal(found: object, wanted: object) -> None:
    """Assert that two things are equal, and say so shortly if not."""
    assert found == wanted, f"{found!r:.200} is not {wanted!r:.200}"


def put(path: str | bytes, data: bytes = b"") -> None:
    """Write a file."""
    with open(path, "wb") as file:
        file.write(data)


def get(path: str | bytes) -> bytes:
    """Read a file."""
    with open(path, "rb") as file:
        return file.read()


def soon_listed(names: list[str]) -> None:
    """Assert that the working directory has these entries, once Linux has removed what was unlinked while open.

    It does so without making close(2) wait (`nfs_complete_unlink`).
    """
    deadline = time.monotonic() + 10
    while sorted(os.listdir()) != names and time.monotonic() < deadline:
        time.sleep(0.02)
    equal(sorted(os.listdir()), names)


def in_parallel(*calls: Callable[[], None]) -> None:
    """Run calls in processes of their own, all at once, and assert that all succeed."""
    children: list[int] = []
    for call in calls:
        child = os.fork()
        if child == 0:
            status = 1
            try:
                call()
                status = 0
            finally:
                os._exit(status)
        children.append(child)
    results = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    equal(results, [0] * len(calls))


def mode_of(path: str) -> int:
    """Return permission bits."""
    return stat.S_IMODE(os.lstat(path).st_mode)


def make_each() -> tuple[str, ...]:
    """Make an entry of each type and return the names."""
    put("file", b"text")
    os.mkdir("directory")
    os.symlink("file", "link")
    os.symlink("nowhere", "dangling")
    return ("file", "directory", "link", "dangling")


def wait_for_clock() -> None:
    """Wait until a later change must have a later time."""
    time.sleep(0.02)


def changes_times(names: tuple[str, ...], path: str, call: Callable[..., Any], *arguments: Any) -> None:
    """Assert that a call changes these times of a path."""
    before = os.lstat(path)
    wait_for_clock()
    call(*arguments)
    after = os.lstat(path)
    for name in names:
        assert getattr(after, name) > getattr(before, name), f"{name} of {path} did not change"


def main(checks: Checks) -> None:
    """Run checks in new directories below the one given, and print `ok` or `FAILED`, seconds, name and why."""
    base = os.path.abspath(sys.argv[1])
    for number, (name, check) in enumerate(checks.items()):
        directory = f"{base}/{os.path.basename(sys.argv[0])}.{number}"
        os.mkdir(directory)
        os.chdir(directory)
        os.umask(0o022)
        started, result, why = time.monotonic(), "ok", ""
        try:
            check()
        except (OSError, AssertionError, ValueError) as error:
            line = traceback.extract_tb(error.__traceback__)[1].lineno
            result, why = "FAILED", f"line {line}: {error!r}".replace("\t", " ")
        print(result, f"{time.monotonic() - started:.2f}", name, why, sep="\t", flush=True)
        os.chdir(base)
