"""XDR as a client packs and unpacks it, written apart from the server's so that one mistake cannot hide in both."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TypeVar

from lakehouse_platform.nfs.operations import Attributes, FileType, ServerTime, SetAttributes

_T = TypeVar("_T")
_SECOND = 1_000_000_000


def u32(*values: int) -> bytes:
    """Pack unsigned 32-bit numbers."""
    return struct.pack(f">{len(values)}I", *values)


def u64(value: int) -> bytes:
    """Pack an unsigned 64-bit number."""
    return struct.pack(">Q", value)


def opaque(data: bytes | memoryview) -> bytes:
    """Pack bytes of a variable length."""
    return u32(len(data)) + bytes(data) + bytes(-len(data) % 4)


def sattr(new: SetAttributes) -> bytes:
    """Pack sattr3."""
    numbers = [_optional(value, u32) for value in (new.mode, new.uid, new.gid)]
    size = _optional(new.size, u64)
    return b"".join([*numbers, size, _set_time(new.atime), _set_time(new.mtime)])


def _optional(value: int | None, pack: Callable[[int], bytes]) -> bytes:
    return u32(0) if value is None else u32(1) + pack(value)


def _set_time(time: int | ServerTime | None) -> bytes:
    if time is None:
        return u32(0)
    if isinstance(time, ServerTime):
        return u32(1)
    return u32(2, *divmod(time, _SECOND))


class Reader:
    """Takes a reply apart from its front."""

    def __init__(self, data: bytes | memoryview) -> None:
        self._data = memoryview(data)
        self._at = 0

    @property
    def position(self) -> int:
        """How many bytes were taken."""
        return self._at

    def take(self, size: int) -> bytes:
        """Return the next bytes."""
        if self._at + size > len(self._data):
            raise AssertionError(f"reply ends early: {size} bytes wanted at {self._at} of {len(self._data)}")
        start, self._at = self._at, self._at + size
        return bytes(self._data[start : self._at])

    def u32(self) -> int:
        """Return an unsigned 32-bit number."""
        return struct.unpack(">I", self.take(4))[0]

    def u64(self) -> int:
        """Return an unsigned 64-bit number."""
        return struct.unpack(">Q", self.take(8))[0]

    def flag(self) -> bool:
        """Return a boolean, which must be 0 or 1."""
        value = self.u32()
        if value > 1:
            raise AssertionError(f"{value} is no boolean")
        return bool(value)

    def opaque(self) -> bytes:
        """Return bytes of a variable length."""
        size = self.u32()
        data = self.take(size)
        if any(self.take(-size % 4)):
            raise AssertionError("padding is not zero")
        return data

    def maybe(self, read: Callable[[], _T]) -> _T | None:
        """Return an optional value."""
        return read() if self.flag() else None

    def rest(self) -> bytes:
        """Return all that is left."""
        return self.take(len(self._data) - self._at)

    def is_at_end(self) -> bool:
        """Tell whether everything was taken."""
        return self._at == len(self._data)

    def end(self) -> None:
        """Check that nothing is left."""
        if not self.is_at_end():
            raise AssertionError(f"{len(self._data) - self._at} bytes too many")

    def time_ns(self) -> int:
        """Return nfstime3 in nanoseconds."""
        return self.u32() * _SECOND + self.u32()

    def attributes(self) -> Attributes:
        """Return fattr3."""
        kind, mode, nlink, uid, gid = (self.u32() for _ in range(5))
        size, used, _device, fsid, fileid = (self.u64() for _ in range(5))
        atime, mtime, ctime = (self.time_ns() for _ in range(3))
        return Attributes(
            type=FileType(kind), mode=mode, nlink=nlink, uid=uid, gid=gid, size=size, used=used, fsid=fsid,
            fileid=fileid, atime_ns=atime, mtime_ns=mtime, ctime_ns=ctime,
        )  # fmt: skip

    def post_op(self) -> Attributes | None:
        """Return post_op_attr."""
        return self.maybe(self.attributes)

    def wcc(self) -> Attributes | None:
        """Return wcc_data's second half; the first half must be absent."""
        if self.flag():
            raise AssertionError("attributes from before the change cannot be told from another client's")
        return self.post_op()
