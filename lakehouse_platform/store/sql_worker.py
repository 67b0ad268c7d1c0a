"""A process that runs one SQL query after another for its parent, which may end it at any moment.

Started as `python -m lakehouse_platform.store.sql_worker`; see `sql_frames` for what it reads and writes. Where tables
are, and the secrets to open them, come over standard input, so that no list of processes shows them.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
from collections.abc import Iterator
from typing import Any, BinaryIO

import pyarrow as pa
from deltalake import DeltaTable

from lakehouse_platform.errors import InvalidSqlError, LakehouseError, TableNotFoundError
from lakehouse_platform.store.engine import open_table
from lakehouse_platform.store.location import Location
from lakehouse_platform.store.sql_frames import error_to_bytes, read_frame, write_frame
from lakehouse_platform.store.sql_plan import plan_query
from lakehouse_platform.store.sql_run import SqlLimits, execute


class _Worker:
    def __init__(self, requests: BinaryIO, replies: BinaryIO) -> None:
        self._requests = requests
        self._replies = replies
        self._inbox: queue.SimpleQueue[tuple[bytes, bytes]] = queue.SimpleQueue()

    def run(self) -> None:
        threading.Thread(target=self._listen, daemon=True).start()
        while True:
            _, body = self._inbox.get()
            self._answer(json.loads(body))

    def _listen(self) -> None:
        """Notice the parent's end at once, even while the engine computes."""
        try:
            while True:
                self._inbox.put(read_frame(self._requests.read))
        except EOFError:
            os._exit(0)

    def _answer(self, query: dict[str, Any]) -> None:
        limits = SqlLimits(query["max_rows"], query["memory_mb"])
        try:
            for letter, body in self._result(query["text"], limits):
                write_frame(self._replies, letter, body)
        except LakehouseError as error:
            write_frame(self._replies, b"E", error_to_bytes(error))
        except Exception as error:  # noqa: BLE001 - reported to the parent, whatever it is
            failure = InvalidSqlError(f"The query failed in a way that has no name yet: {error}.")
            write_frame(self._replies, b"E", error_to_bytes(failure))

    def _result(self, text: str, limits: SqlLimits) -> Iterator[tuple[bytes, pa.Buffer | bytes]]:
        hidden: dict[str, list[str]] = {}
        plan = plan_query(text, lambda name: self._open(name, hidden), lambda name: hidden.get(name, ()))
        reader = execute(plan, limits)
        yield b"S", reader.schema.serialize()
        for batch in reader:
            yield b"B", batch.serialize()
        yield b"D", b""

    def _open(self, name: str, hidden: dict[str, list[str]]) -> DeltaTable:
        write_frame(self._replies, b"N", name.encode())
        _, body = self._inbox.get()
        place = json.loads(body)
        if place is None:
            raise TableNotFoundError(f"Table {name!r} is unknown.", table=name)
        hidden[name] = place["hidden"]
        return open_table(Location(place["uri"], place["options"]), place["version"])


def main() -> None:
    """Serve the parent until it closes our standard input."""
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "wb", buffering=0)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # whatever a library prints must not enter the frames
    _Worker(sys.stdin.buffer, replies).run()


if __name__ == "__main__":
    main()
