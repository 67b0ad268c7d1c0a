"""Whether the server can work, asked at most once a second however often it is asked."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from lakehouse_platform.api.lanes import Lane
from lakehouse_platform.services.lakehouse import Lakehouse
from lakehouse_platform.services.readiness import failing_parts

# Anybody may ask, and each attempt costs a sync of the disk.
_FRESH_S = 1.0


class Readiness:
    """What the last attempt found."""

    def __init__(self, lakehouse: Lakehouse) -> None:
        """Begin with nothing tried."""
        self._lakehouse = lakehouse
        # Threads of its own: it must not wait behind the work that it asks about.
        self._lane = Lane(1, 1_000)
        self._lock = asyncio.Lock()
        self._found: Sequence[str] = ()
        self._tried_at = float("-inf")

    async def failing(self) -> Sequence[str]:
        """Return the parts that do not work."""
        async with self._lock:
            if time.monotonic() - self._tried_at >= _FRESH_S:
                self._found = await self._lane.run(failing_parts, self._lakehouse)
                self._tried_at = time.monotonic()
            return self._found
