"""The mounts that this user made on this machine: one small file each, so that they can be listed and undone."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lakehouse_platform.errors import MountFailedError
from lakehouse_platform.nfs.mounting import Platform, this_platform

_POLL_SECONDS = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class MountRecord:
    """One mount and the server behind it.

    Attributes:
        source: What is mounted, as it was named.
        mountpoint: Where, absolute.
        profile: `sync` or `bulk`.
        read_only: Whether changes are refused.
        pid: Process of the server.
        port: Its TCP port.
    """

    source: str
    mountpoint: str
    profile: str
    read_only: bool
    pid: int
    port: int

    @property
    def is_alive(self) -> bool:
        """Whether the server runs; another process may have its number since."""
        return _is_server(self.pid, self.mountpoint)

    def stop(self, seconds: float) -> None:
        """End the server, which publishes what is complete and unmounts first.

        Raises:
            MountFailedError: It still runs after so many seconds.
        """
        if self.is_alive:
            os.kill(self.pid, signal.SIGTERM)
        deadline = time.monotonic() + seconds
        while self.is_alive:
            if time.monotonic() > deadline:
                raise MountFailedError(
                    f"The server of {self.mountpoint} (process {self.pid}) still runs after {seconds:g} s: it may be "
                    "publishing a large edit, or a program uses the mount. Try again, or look into its log.",
                    pid=self.pid,
                )
            time.sleep(_POLL_SECONDS)


class MountRegistry:
    """The records of this user's mounts.

    Attributes:
        directory: Where the files and the servers' logs are.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def add(self, record: MountRecord) -> None:
        """Remember a mount; one at the same place is replaced."""
        self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = self._path(record.mountpoint)
        partial = path.with_suffix(".new")
        partial.write_text(json.dumps(asdict(record)))
        partial.replace(path)

    def remove(self, mountpoint: str) -> None:
        """Forget a mount."""
        self._path(mountpoint).unlink(missing_ok=True)

    def find(self, mountpoint: str) -> MountRecord | None:
        """Return the mount at a place, or None."""
        return _read(self._path(mountpoint))

    def all(self) -> list[MountRecord]:
        """Return all mounts, ordered by their place."""
        records = [record for path in self.directory.glob("*.json") if (record := _read(path))]
        return sorted(records, key=lambda record: record.mountpoint)

    def log_path(self, mountpoint: str) -> Path:
        """Return where the log of the server of a mount is."""
        return self._path(mountpoint).with_suffix(".log")

    def _path(self, mountpoint: str) -> Path:
        return self.directory / f"{hashlib.sha256(os.fsencode(mountpoint)).hexdigest()[:16]}.json"


def _is_server(pid: int, mountpoint: str) -> bool:
    """Tell by its command line whether a process is the server of a mount; one that ended has none, reaped or not."""
    words = ("--mountpoint", mountpoint)
    if this_platform() is not Platform.LINUX:
        command = ["ps", "-ww", "-o", "command=", "-p", str(pid)]
        listed = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own words
        return " ".join(words) in listed.stdout
    try:
        line = os.fsdecode(Path(f"/proc/{pid}/cmdline").read_bytes())
    except (FileNotFoundError, ProcessLookupError):
        return False
    return "\0".join((*words, "")) in line


def _read(path: Path) -> MountRecord | None:
    try:
        fields: dict[str, Any] = json.loads(path.read_text())
        return MountRecord(**fields)
    except (FileNotFoundError, ValueError, TypeError):  # gone, or of another version of this program
        return None
