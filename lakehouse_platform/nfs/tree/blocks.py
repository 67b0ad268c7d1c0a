"""Blocks of files that never change, kept within a budget; each one is fetched once however many wait for it."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import TypeAlias

# What a client reads at most at once: a big READ costs one fetch, and small ones share it.
BLOCK_BYTES = 1 << 20

Fetch: TypeAlias = Callable[[int, int], bytes]
_Key: TypeAlias = tuple[Hashable, int]


class Blocks:
    """Blocks by file and number, the last used ones; safe to use from several threads.

    Args:
        budget_bytes: How many bytes to keep.
    """

    def __init__(self, budget_bytes: int) -> None:
        self._budget = budget_bytes
        self._lock = threading.Lock()
        self._kept: OrderedDict[_Key, bytes] = OrderedDict()
        self._flights: dict[_Key, Future[bytes]] = {}
        self._used = 0

    @property
    def used_bytes(self) -> int:
        """How many bytes are kept."""
        return self._used

    def read(self, file: Hashable, size: int, start: int, stop: int, fetch: Fetch) -> list[memoryview]:
        """Return a range's bytes without copying those that are kept.

        Args:
            file: Which file; another one for other bytes.
            size: How many bytes it has.
            start: First byte.
            stop: After the last byte; not behind the end.
            fetch: Called with an offset and a count, returns so many bytes of the file.
        """
        views: list[memoryview] = []
        for at in range(start - start % BLOCK_BYTES, stop, BLOCK_BYTES):
            block = self._block((file, at), min(BLOCK_BYTES, size - at), fetch)
            views.append(memoryview(block)[max(0, start - at) : stop - at])
        return views

    def _block(self, key: _Key, count: int, fetch: Fetch) -> bytes:
        with self._lock:
            if (block := self._kept.get(key)) is not None:
                self._kept.move_to_end(key)
                return block
            flight = self._flights.get(key)
            is_first = flight is None
            flight = self._flights.setdefault(key, Future())
        if is_first:
            self._fly(key, flight, lambda: fetch(key[1], count))
        return flight.result()

    def _fly(self, key: _Key, flight: Future[bytes], fetch: Callable[[], bytes]) -> None:
        try:
            block = fetch()
        except BaseException as error:  # noqa: BLE001 - whoever waits gets it, the caller too
            with self._lock:
                del self._flights[key]
            flight.set_exception(error)
            return
        with self._lock:
            del self._flights[key]
            self._keep(key, block)
        flight.set_result(block)

    def _keep(self, key: _Key, block: bytes) -> None:
        self._kept[key] = block
        self._used += len(block)
        while self._used > self._budget:
            self._used -= len(self._kept.popitem(last=False)[1])
