"""Keeps a flood out of the audit log: so many entries of a kind are written in a minute, the rest are counted."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime, timedelta

_WINDOW = timedelta(minutes=1)
# Addresses and users that are remembered at the same time: 100 bytes each.
_MOST_KEYS = 10_000


@dataclass(slots=True)
class _Window:
    began: datetime
    admitted: int = 0
    left_out: int = 0


class Sparse:
    """Admits so many events of a key in each minute. Safe to share between threads."""

    def __init__(self, most: int) -> None:
        """Begin with nothing seen.

        Args:
            most: Events of one key that are admitted in a minute.
        """
        self._most = most
        self._windows: OrderedDict[str, _Window] = OrderedDict()
        self._lock = threading.Lock()

    def admit(self, key: str, now: datetime) -> int | None:
        """Tell whether an event is to be written down.

        Returns:
            None if it is left out; else how many were left out since the last one that was not.
        """
        with self._lock:
            window = self._window(key, now)
            if window.admitted >= self._most:
                window.left_out += 1
                return None
            window.admitted += 1
            left_out, window.left_out = window.left_out, 0
            return left_out

    def _window(self, key: str, now: datetime) -> _Window:
        window = self._windows.setdefault(key, _Window(now))
        self._windows.move_to_end(key)
        if now - window.began >= _WINDOW:
            window.began, window.admitted = now, 0
        while len(self._windows) > _MOST_KEYS:
            self._windows.popitem(last=False)
        return window
