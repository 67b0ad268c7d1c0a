"""How much memory a process and its children held at most."""

from __future__ import annotations

import threading
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

_EVERY_S = 0.05


class MemoryWatch:
    """Watches a process tree while its block runs.

    Attributes:
        peak_mb: Most memory at once. For the process itself the kernel's own mark, which misses nothing; it counts
            pages of mapped files too.
        peak_private_mb: Most memory that was not mapped files.
    """

    def __init__(self, pid: int) -> None:
        self.peak_mb = 0.0
        self.peak_private_mb = 0.0
        self._process = psutil.Process(pid)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()
        self.peak_mb = max(self.peak_mb, status_mb(self._process.pid, "VmHWM"))

    def _watch(self) -> None:
        while not self._over.wait(_EVERY_S):
            pids = [self._process.pid, *(child.pid for child in self._process.children(recursive=True))]
            self.peak_mb = max(self.peak_mb, sum(status_mb(pid, "VmRSS") for pid in pids))
            self.peak_private_mb = max(self.peak_private_mb, sum(status_mb(pid, "RssAnon") for pid in pids))


def status_mb(pid: int, line: str) -> float:
    """Return a figure of the kernel's about a process, in megabytes; 0 if it is gone."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    except (FileNotFoundError, ProcessLookupError):  # a child that has just ended
        return 0.0
    return next((int(entry.split()[1]) / 1024 for entry in status if entry.startswith(line)), 0.0)
