"""Starts real processes that work on one store at the same time.

The engine must not be forked, so each worker is a new interpreter that runs `support.worker`. It is told over its
standard input what to do, says when it is ready, starts on a word, and answers with a line of JSON per operation.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform_tests.support.s3_server import ROOT


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one operation of a worker.

    Attributes:
        key: Which operation it was.
        error: Code of the error it ended with, or None.
        version: The version it returned, if it succeeded.
        value: What else it found out.
    """

    key: int
    error: str | None = None
    version: int | None = None
    value: int | None = None


@dataclass(frozen=True, slots=True)
class Job:
    """One worker's work: the name of a function of `support.worker` and its arguments."""

    task: str
    arguments: Mapping[str, Any]


def run_together(config: LakehouseConfig, jobs: Sequence[Job]) -> list[list[Outcome]]:
    """Run each job in a process of its own, all started at once, and return what each told."""
    with ExitStack() as stack:
        workers = [stack.enter_context(_worker(config, job)) for job in jobs]
        for worker in workers:
            _expect_ready(worker)
        for worker in workers:
            _say(worker, "go")
        return [_outcomes(worker) for worker in workers]


def settings_line(config: LakehouseConfig) -> str:
    """Return the settings that a worker needs, as one line of JSON."""
    options = config.plain_storage_options
    return json.dumps(
        {"base_path": config.base_path, "storage_options": options, "durability": config.durability}
    )


@contextmanager
def python_module(module: str, *arguments: str) -> Generator[subprocess.Popen[bytes]]:
    """Run a module of the tests; it is killed when the block ends."""
    command = [sys.executable, "-m", module, *arguments]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def _worker(config: LakehouseConfig, job: Job) -> Generator[subprocess.Popen[bytes]]:
    with python_module("lakehouse_platform_tests.support.worker") as process:
        _say(process, settings_line(config))
        _say(process, json.dumps({"task": job.task, "arguments": dict(job.arguments)}))
        yield process


def _say(process: subprocess.Popen[bytes], line: str) -> None:
    assert process.stdin is not None
    process.stdin.write(line.encode() + b"\n")
    process.stdin.flush()


def _expect_ready(process: subprocess.Popen[bytes]) -> None:
    assert process.stdout is not None
    if process.stdout.readline().strip() != b"ready":
        raise AssertionError(f"A worker did not start:\n{process.communicate()[1].decode()}")


def _outcomes(process: subprocess.Popen[bytes]) -> list[Outcome]:
    told, complaints = process.communicate()
    if process.returncode != 0:
        raise AssertionError(f"A worker failed:\n{complaints.decode()[-4000:]}")
    return [Outcome(**json.loads(line)) for line in told.splitlines()]
