"""Refused edits: every byte is kept, with the reason, where the user can find them. Blocking: call in a thread."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from lakehouse_platform.nfs.content import Buffer

_NOTHING = b"No edit was refused.\n"


@dataclass(frozen=True, slots=True)
class Kept:
    """A file that shows a refused edit.

    Attributes:
        name: Its name in `.rejected` or `.errors`.
        path: Where its bytes are.
        size: How many there are.
        changed_ns: When it was made.
    """

    name: str
    path: Path
    size: int
    changed_ns: int


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why an edit was refused.

    Attributes:
        reason: For a person: line, column and what is wrong, or what to do.
        code: Of the error, for a program.
        line: The line at fault, if one is.
        column: The column at fault, if one is.
    """

    reason: str
    code: str
    line: int | None = None
    column: str | None = None


class Rejected:
    """The refused edits of all tables of one server; the oldest go when there are too many or too large."""

    def __init__(self, directory: Path, *, most_edits: int = 100, most_bytes: int = 1 << 30) -> None:
        self._directory = directory
        self._most_edits = most_edits
        self._most_bytes = most_bytes
        self._last: dict[bytes, tuple[bytes, int]] = {}
        self._lock = threading.Lock()

    def keep(self, view: bytes, parts: Iterable[Buffer], refusal: Refusal, now_ns: int) -> str:
        """Keep the bytes of an edit and say why it was refused; return the name of the file in `.rejected`."""
        with self._lock:
            return self._keep(view, parts, refusal, now_ns)

    def add(self, view: bytes, name: str, data: Buffer) -> None:
        """Keep more bytes of a refused edit, behind those that are kept."""
        with self._lock, (self._of(view) / "bytes" / name).open("ab") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())

    def say(self, view: bytes, text: str, now_ns: int) -> None:
        """Put a text into `.last_error` where there are no bytes to keep."""
        with self._lock:
            _write(self._of(view) / "last_error", [text.encode() + b"\n"])
            self._last.pop(view, None)

    def last_error(self, view: bytes) -> tuple[bytes, int]:
        """Return the text of `.last_error` and when it changed."""
        with self._lock:
            if view not in self._last:
                self._last[view] = self._read_last(view)
            return self._last[view]

    def files(self, view: bytes) -> Sequence[Kept]:
        """Return what is in `.rejected`."""
        return self._listed(view, "bytes")

    def errors(self, view: bytes) -> Sequence[Kept]:
        """Return what is in `.errors`."""
        return self._listed(view, "errors")

    def remove(self, view: bytes, name: str) -> None:
        """Delete a file of `.rejected` or `.errors`.

        Raises:
            FileNotFoundError: There is none.
        """
        for kept in (*self.files(view), *self.errors(view)):
            if kept.name == name:
                kept.path.unlink()
                return
        raise FileNotFoundError(name)

    def _keep(self, view: bytes, parts: Iterable[Buffer], refusal: Refusal, now_ns: int) -> str:
        home = self._of(view)
        stamp = self._free_stamp(home, now_ns)
        name = f"{stamp}-data.csv"
        text = f"{refusal.reason}\nThe edit was not written; its bytes are in .rejected/{name}\n".encode()
        facts = {
            "time": stamp,
            "code": refusal.code,
            "file": "data/data.csv",
            "line": refusal.line,
            "column": refusal.column,
            "reason": refusal.reason,
            "rejected": name,
        }
        _write(home / "bytes" / name, parts)
        _write(home / "bytes" / f"{name}.why", [text])
        _write(home / "errors" / f"{stamp}.json", [json.dumps(facts, indent=2).encode() + b"\n"])
        _write(home / "last_error", [text])
        self._last.pop(view, None)
        self._prune(home)
        return name

    def _prune(self, home: Path) -> None:
        """Drop the oldest edits, and say so in a file of their directory."""
        edits = sorted(path for path in (home / "bytes").iterdir() if path.name.endswith("-data.csv"))
        total = sum(path.stat().st_size for path in edits)
        dropped = 0
        # The newest stays, however large it is.
        while len(edits) > 1 and (len(edits) > self._most_edits or total > self._most_bytes):
            oldest = edits.pop(0)
            total -= oldest.stat().st_size
            stamp = oldest.name.removesuffix("-data.csv")
            for path in (oldest, Path(f"{oldest}.why"), home / "errors" / f"{stamp}.json"):
                path.unlink(missing_ok=True)
            dropped += 1
        if dropped:
            note = f"Older refused edits were dropped: {self._most_edits} or {self._most_bytes} bytes are kept.\n"
            _write(home / "bytes" / "DROPPED", [note.encode()])

    def _free_stamp(self, home: Path, now_ns: int) -> str:
        while True:
            moment = datetime.fromtimestamp(now_ns / 1e9, UTC)
            stamp = moment.strftime("%Y-%m-%dT%H-%M-%S.%fZ")
            if not (home / "bytes" / f"{stamp}-data.csv").exists():
                return stamp
            now_ns += 1000

    def _read_last(self, view: bytes) -> tuple[bytes, int]:
        path = self._of(view) / "last_error"
        try:
            return path.read_bytes(), path.stat().st_mtime_ns
        except FileNotFoundError:
            return _NOTHING, 0

    def _listed(self, view: bytes, what: str) -> list[Kept]:
        directory = self._directory / view.hex() / what
        if not directory.is_dir():
            return []
        stats = [(path, path.stat()) for path in sorted(directory.iterdir())]
        return [Kept(path.name, path, stat.st_size, stat.st_mtime_ns) for path, stat in stats]

    def _of(self, view: bytes) -> Path:
        home = self._directory / view.hex()
        for name in ("bytes", "errors"):
            (home / name).mkdir(mode=0o700, parents=True, exist_ok=True)
        return home


def _write(path: Path, parts: Iterable[Buffer]) -> None:
    """Write a file so that it is whole and on the disk, or not there."""
    unfinished = path.parent.parent / f"{path.name}.new"
    with unfinished.open("wb") as file:
        for part in parts:
            file.write(part)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)
    descriptor = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
