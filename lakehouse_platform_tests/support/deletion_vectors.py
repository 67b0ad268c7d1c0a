"""Deletion vectors, written from the protocol's text (section "Deletion Vector Format").

The engine never writes them, so tests that meet them need an encoder of their own. DuckDB's delta extension,
built on the protocol's reference kernel, reads what this module writes.
"""

from __future__ import annotations

import struct
import uuid
import zlib
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path

_MAGIC = 1_681_511_377  # "RoaringBitmapArray", portable form
_NO_RUN_COOKIE = 12_346  # RoaringFormatSpec: containers without run-length encoding
_ARRAY_LIMIT = 4_096  # RoaringFormatSpec: more values than this make a bitmap container
_FILE_VERSION = b"\x01"
# Z85 of ZeroMQ RFC 32.
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


def inline_vector(rows: Sequence[int]) -> dict[str, object]:
    """Return the descriptor of a vector that stands in the log itself."""
    data = encode(rows)
    return {
        "storageType": "i",
        "pathOrInlineDv": _base85(data),
        "sizeInBytes": len(data),
        "cardinality": len(set(rows)),
    }


def file_vector(table: Path, rows: Sequence[int], prefix: str = "") -> dict[str, object]:
    """Write a vector to a file of its own below `table` and return its descriptor."""
    data, name = encode(rows), uuid.uuid4()
    path = table / prefix / f"deletion_vector_{name}.bin"
    path.parent.mkdir(exist_ok=True)
    checksum = struct.pack(">I", zlib.crc32(data))
    path.write_bytes(_FILE_VERSION + struct.pack(">i", len(data)) + data + checksum)
    return {
        "storageType": "u",
        "pathOrInlineDv": prefix + _base85(name.bytes),
        "offset": len(_FILE_VERSION),
        "sizeInBytes": len(data),
        "cardinality": len(set(rows)),
    }


def encode(rows: Iterable[int]) -> bytes:
    """Return the 64-bit bitmap of row numbers: one 32-bit bitmap per high word, little-endian."""
    parts = [
        struct.pack("<I", high) + _bitmap([row & 0xFFFF_FFFF for row in group])
        for high, group in groupby(sorted(set(rows)), key=lambda row: row >> 32)
    ]
    return struct.pack("<iq", _MAGIC, len(parts)) + b"".join(parts)


def _bitmap(values: Sequence[int]) -> bytes:
    containers = [
        (high, [value & 0xFFFF for value in group])
        for high, group in groupby(values, key=lambda value: value >> 16)
    ]
    header = struct.pack("<II", _NO_RUN_COOKIE, len(containers))
    keys = b"".join(struct.pack("<HH", high, len(low) - 1) for high, low in containers)
    bodies = [_container(low) for _, low in containers]
    first = len(header) + len(keys) + 4 * len(bodies)
    offsets = [first + sum(len(body) for body in bodies[:index]) for index in range(len(bodies))]
    return header + keys + struct.pack(f"<{len(offsets)}I", *offsets) + b"".join(bodies)


def _container(values: Sequence[int]) -> bytes:
    if len(values) <= _ARRAY_LIMIT:
        return struct.pack(f"<{len(values)}H", *values)
    bits = bytearray(8_192)
    for value in values:
        bits[value >> 3] |= 1 << (value & 7)
    return bytes(bits)


def _base85(data: bytes) -> str:
    padded = data + bytes(-len(data) % 4)
    return "".join(_five_letters(word) for (word,) in struct.iter_unpack(">I", padded))


def _five_letters(word: int) -> str:
    return "".join(_Z85[word // 85**power % 85] for power in (4, 3, 2, 1, 0))
