"""Runs queries in worker processes that are ended when their time is over; idle workers wait for the next query."""

from __future__ import annotations

import atexit
import fcntl
import json
import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, NoReturn

import pyarrow as pa
from deltalake import DeltaTable

from lakehouse_platform.errors import LakehouseError, QueryLimitError
from lakehouse_platform.store.sql_frames import error_from_bytes, read_frame, write_frame
from lakehouse_platform.store.sql_plan import Hidden, nothing_hidden
from lakehouse_platform.store.sql_run import SqlLimits

_MODULE = "lakehouse_platform.store.sql_worker"
_SOURCE = Path(__file__).resolve().parents[2]
_MAX_IDLE = 2  # a warm worker answers within milliseconds and holds some 150 MB

Opener = Callable[[str], DeltaTable]


def execute_apart(
    text: str, tables: Opener, limits: SqlLimits, hidden: Hidden = nothing_hidden
) -> pa.RecordBatchReader:
    """Run a query in a worker and return its rows as a stream; see `sql.run_sql` for what it raises.

    Time counts only while a reader waits for the worker, so that a slow reader loses no query.
    """
    worker = _pool.take()
    try:
        schema = worker.begin(text, tables, limits, hidden)
    except BaseException:
        _pool.give_back(worker)
        raise
    return pa.RecordBatchReader.from_batches(schema, _Batches(worker, schema))


def idle_processes() -> list[int]:
    """Return the process ids of the workers that wait for a query."""
    return _pool.processes()


def end_idle_workers() -> None:
    """End the workers that wait for a query; the next query starts a new one."""
    _pool.end_all()


class _Batches:
    """The rows of a running query; a result that is dropped half-read ends its worker."""

    def __init__(self, worker: _Worker, schema: pa.Schema) -> None:
        self._worker = worker
        self._schema = schema

    def __iter__(self) -> _Batches:
        return self

    def __next__(self) -> pa.RecordBatch:
        if not self._worker.busy:
            raise StopIteration
        try:
            letter, body = self._worker.reply()
        finally:
            if not self._worker.busy:
                _pool.give_back(self._worker)
        if letter == b"D":
            raise StopIteration
        return pa.ipc.read_record_batch(pa.py_buffer(body), self._schema)

    def __del__(self) -> None:
        if self._worker.busy:
            self._worker.end()


class _Worker:
    """One process.

    Attributes:
        busy: Whether a query runs on it.
    """

    def __init__(self) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - our own module
            [sys.executable, "-m", _MODULE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=_SOURCE,  # where `-m` finds this package, however the parent found it
            start_new_session=True,  # Ctrl-C in a terminal is for the parent, which decides
            bufsize=0,
        )
        _widen(self._process.stdout)
        self.busy = False
        self._seconds_left = 0.0
        self._seconds = 0.0

    @property
    def alive(self) -> bool:
        """Whether the process still runs."""
        return self._process.poll() is None

    @property
    def process_id(self) -> int:
        """The id of the process."""
        return self._process.pid

    def begin(self, text: str, tables: Opener, limits: SqlLimits, hidden: Hidden) -> pa.Schema:
        """Start a query and return its schema."""
        self._seconds = self._seconds_left = limits.timeout_seconds or 0.0
        self.busy = True
        query = {"text": text, "max_rows": limits.max_rows, "memory_mb": limits.memory_mb}
        self._send(b"Q", query)
        failure: LakehouseError | None = None
        while True:
            try:
                letter, body = self.reply()
            except LakehouseError:
                if failure:
                    raise failure from None  # it says which tables there are; the worker cannot know
                raise
            if letter == b"S":
                return pa.ipc.read_schema(pa.py_buffer(body))
            place, failure = _place(body.decode(), tables, hidden)
            self._send(b"T", place)

    def reply(self) -> tuple[bytes, bytes]:
        """Return the next frame; an error frame is raised, and the end of the query frees the worker."""
        try:
            letter, body = read_frame(self._read)
        except EOFError:
            self._fail_ended()
        if letter in b"DE":
            self.busy = False
        if letter == b"E":
            raise error_from_bytes(body)
        return letter, body

    def end(self) -> None:
        """End the process, whatever it is doing, and leave nothing of it behind."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe:
                pipe.close()
        self.busy = False

    def _send(self, letter: bytes, value: object) -> None:
        assert self._process.stdin  # noqa: S101 - opened as a pipe
        try:
            write_frame(self._process.stdin, letter, json.dumps(value).encode())
        except BrokenPipeError:
            self._fail_ended()

    def _read(self, size: int) -> bytes:
        assert self._process.stdout  # noqa: S101 - opened as a pipe
        descriptor = self._process.stdout.fileno()
        parts = bytearray()
        while len(parts) < size:
            self._wait(descriptor)
            part = os.read(descriptor, min(size - len(parts), 1 << 20))
            if not part:
                break
            parts += part
        return bytes(parts)

    def _wait(self, descriptor: int) -> None:
        started = time.monotonic()
        ready, _, _ = select.select([descriptor], [], [], max(self._seconds_left, 0))
        self._seconds_left -= time.monotonic() - started
        if not ready:
            self.end()
            raise QueryLimitError(
                f"The query took longer than {self._seconds:g} s and was ended: narrow it, or raise the limit.",
                timeout_seconds=self._seconds,
            )

    def _fail_ended(self) -> NoReturn:
        self.end()
        raise QueryLimitError(
            f"The process of the query ended by itself (exit code {self._process.returncode}), as it does when it runs "
            "out of memory: simplify the query, or lower sql_memory_mb below the machine's free memory.",
            exit_code=self._process.returncode,
        )


class _Pool:
    def __init__(self) -> None:
        self._idle: list[_Worker] = []
        self._lock = threading.Lock()

    def take(self) -> _Worker:
        with self._lock:
            while self._idle:
                worker = self._idle.pop()
                if worker.alive:
                    return worker
                worker.end()
        return _Worker()

    def give_back(self, worker: _Worker) -> None:
        with self._lock:
            if not worker.busy and worker.alive and len(self._idle) < _MAX_IDLE:
                self._idle.append(worker)
                return
        worker.end()

    def processes(self) -> list[int]:
        with self._lock:
            return [worker.process_id for worker in self._idle]

    def end_all(self) -> None:
        with self._lock:
            workers, self._idle = self._idle, []
        for worker in workers:
            worker.end()


_pool = _Pool()
atexit.register(_pool.end_all)


def _widen(pipe: IO[bytes] | None) -> None:
    """Let 1 MB wait in the pipe instead of 64 KB, where the system can: fewer changes between the processes."""
    if pipe and hasattr(fcntl, "F_SETPIPE_SZ"):
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, 1 << 20)


def _place(
    name: str, tables: Opener, hidden: Hidden
) -> tuple[dict[str, object] | None, LakehouseError | None]:
    try:
        table = tables(name)
    except LakehouseError as error:  # perhaps the name of a table function: the worker decides
        return None, error
    options: dict[str, str] | None = table._storage_options  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
    return {
        "uri": table.table_uri,
        "version": table.version(),
        "options": options or {},
        "hidden": list(hidden(name)),
    }, None
