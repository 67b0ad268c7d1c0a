"""XDR, the external data representation (RFC 4506): taking arguments apart and the pieces that results are made of."""

from __future__ import annotations

from struct import Struct, error

MALFORMED = (ValueError, error)
"""What taking apart raises when bytes are missing, too many, or mean nothing."""

U32 = Struct(">I")
U64 = Struct(">Q")
PADDING = (b"", bytes(1), bytes(2), bytes(3))


class Unpacker:
    """Takes a message apart from its front; every method raises one of `MALFORMED` rather than read past the end."""

    __slots__ = ("_at", "_data")

    def __init__(self, data: bytes | bytearray | memoryview) -> None:
        self._data = memoryview(data)
        self._at = 0

    def numbers(self, layout: Struct) -> tuple[int, ...]:
        """Take several numbers at once."""
        values = layout.unpack_from(self._data, self._at)
        self._at += layout.size
        return values

    def uint(self) -> int:
        """Take an unsigned 32-bit number."""
        (value,) = U32.unpack_from(self._data, self._at)
        self._at += 4
        return value

    def hyper(self) -> int:
        """Take an unsigned 64-bit number."""
        (value,) = U64.unpack_from(self._data, self._at)
        self._at += 8
        return value

    def flag(self) -> bool:
        """Take a boolean."""
        value = self.uint()
        if value > 1:
            raise ValueError(f"{value} is no boolean")
        return value == 1

    def fixed(self, size: int) -> memoryview:
        """Take bytes of a known length, with their padding, without copying."""
        stop = self._at + size
        padded = stop + (-size & 3)
        if padded > len(self._data):
            raise ValueError(f"{size} bytes are announced, fewer follow")
        data = self._data[self._at : stop]
        self._at = padded
        return data

    def opaque(self, limit: int) -> memoryview:
        """Take bytes of a length that stands before them, without copying."""
        size = self.uint()
        if size > limit:
            raise ValueError(f"{size} bytes where at most {limit} are allowed")
        return self.fixed(size)

    def rest(self) -> memoryview:
        """Return what was not taken yet, leaving it there."""
        return self._data[self._at :]

    def finish(self) -> None:
        """Check that nothing is left."""
        if self._at != len(self._data):
            raise ValueError(f"{len(self._data) - self._at} bytes too many")


def opaque(data: bytes | memoryview) -> bytes:
    """Pack bytes with their length before them."""
    return b"".join((U32.pack(len(data)), data, PADDING[-len(data) & 3]))
