"""Views that were removed or moved away, until something takes their place or their time is over."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from lakehouse_platform.nfs.edits.edit import Edit
from lakehouse_platform.nfs.edits.session import Hole
from lakehouse_platform.nfs.edits.view import View
from lakehouse_platform.nfs.tree.image import Image


@dataclass(slots=True)
class Gap:
    """A view that nobody sees.

    Attributes:
        view: The table.
        hole: Why, by whom, and how long.
        image: What was to be seen before.
        edit: Its log says that the view was removed; None if it was only moved.
        timer: Ends it.
    """

    view: View
    hole: Hole
    image: Image
    edit: Edit | None
    timer: asyncio.TimerHandle | None = None


class Gaps:
    """The gaps of all tables."""

    def __init__(self) -> None:
        self._gaps: dict[bytes, Gap] = {}

    def get(self, key: bytes) -> Gap | None:
        """Return a table's gap."""
        return self._gaps.get(key)

    def all(self) -> Sequence[Gap]:
        """Return all gaps."""
        return list(self._gaps.values())

    def open(self, gap: Gap) -> None:
        """Begin a gap."""
        self._gaps[gap.view.key] = gap

    def close(self, key: bytes) -> Gap | None:
        """End a table's gap and return it."""
        gap = self._gaps.pop(key, None)
        if gap is not None and gap.timer is not None:
            gap.timer.cancel()
        return gap
