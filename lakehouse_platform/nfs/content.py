"""Bytes that can be read at any place: an image of a table, a draft, a scratch file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeAlias

Buffer: TypeAlias = bytes | memoryview


class Content(Protocol):
    """Readable bytes that do not change while they are held."""

    @property
    def size(self) -> int:
        """How many bytes there are."""
        ...

    def read(self, offset: int, count: int) -> Sequence[Buffer]:
        """Return the bytes of a range, cut at the end, in order and without copying where possible. May block."""
        ...
