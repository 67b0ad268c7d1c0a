"""The language between a process and its SQL worker: frames of one letter, a length and a body.

| from | letter | body |
|---|---|---|
| parent | Q | a query: JSON with its text and limits |
| parent | T | JSON with where a table is, or null if there is none of that name |
| worker | N | a table's name: where is it? |
| worker | S | the result's schema, as an Arrow IPC message |
| worker | B | rows, as an Arrow IPC message |
| worker | D | no more rows |
| worker | E | JSON of an error; the query is over |
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from typing import IO, Any

from lakehouse_platform import errors
from lakehouse_platform.errors import LakehouseError

HEADER = struct.Struct(">cQ")
Read = Callable[[int], bytes]


def write_frame(stream: IO[bytes], letter: bytes, body: bytes | memoryview = b"") -> None:
    """Write one frame and flush it."""
    stream.write(HEADER.pack(letter, len(body)))
    stream.write(body)
    stream.flush()


def read_frame(read: Read) -> tuple[bytes, bytes]:
    """Read one frame.

    Args:
        read: Returns exactly so many bytes, or fewer at the end of the stream.

    Raises:
        EOFError: The other side is gone.
    """
    header = read(HEADER.size)
    if len(header) < HEADER.size:
        raise EOFError
    letter, length = HEADER.unpack(header)
    body = read(length)
    if len(body) < length:
        raise EOFError
    return letter, body


def error_to_bytes(error: LakehouseError) -> bytes:
    """Return an error as JSON; details that JSON does not know become their text."""
    return json.dumps(error.to_dict(), default=str).encode()


def error_from_bytes(body: bytes) -> LakehouseError:
    """Return the error that `error_to_bytes` described."""
    fields: dict[str, Any] = json.loads(body)
    kinds = {kind.code: kind for kind in vars(errors).values() if _is_error(kind)}
    return kinds[fields["code"]](fields["message"], **fields["details"])


def _is_error(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, LakehouseError)
