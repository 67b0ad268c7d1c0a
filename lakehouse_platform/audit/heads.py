"""The end of the chain: as the table's newest commits tell it, and as this machine remembers it.

Every commit of the audit log says where the chain ends after it, so that the next writer need not read rows. What this
machine remembers is a witness outside the table: whoever cuts the table's end off cannot cut it off here. If the log
goes on after that, the end that is gone is kept beside the new one.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

from lakehouse_platform.audit.chain import GENESIS, Head
from lakehouse_platform.errors import StorageIoError
from lakehouse_platform.store.table import Table

_SEQUENCE, _HASH = "lakehouse.auditSequence", "lakehouse.auditHash"
# Maintenance makes commits that say nothing about the chain. Beyond so many, reading two columns is not much slower.
_MOST_LOOKED_AT = 64
_FILE, _LOST, _LOCK = "head", "lost", "head-lock"


def head_metadata(head: Head) -> dict[str, str]:
    """Return what a commit says about the end of the chain after it."""
    return {_SEQUENCE: str(head.sequence), _HASH: head.hash.hex()}


def find_head(table: Table, version: int) -> Head:
    """Return where the chain ends at a version."""
    return told_head(table, version) or _head_of_rows(table, version)


def told_head(table: Table, version: int) -> Head | None:
    """Return the end of the chain that the newest commits up to a version tell; None if they say nothing."""
    for number in range(version, max(-1, version - _MOST_LOOKED_AT), -1):
        info = table.commit_info(number)
        if info is None:
            return None
        if _SEQUENCE in info and _HASH in info:
            return Head(int(info[_SEQUENCE]), bytes.fromhex(info[_HASH]))
    return None


def _head_of_rows(table: Table, version: int) -> Head:
    rows = table.scan(
        ["sequence", "entry_hash"], "sequence IS NOT NULL AND entry_hash IS NOT NULL", version=version
    )
    heads: Iterator[tuple[int, str]] = (
        (row["sequence"], row["entry_hash"]) for batch in rows.reader() for row in batch.to_pylist()
    )
    sequence, text = max(heads, default=(0, ""))
    return Head(sequence, bytes.fromhex(text)) if sequence else GENESIS


def has_entry(table: Table, version: int, head: Head) -> bool:
    """Tell whether an entry that was the end of the chain is in the log at a version."""
    rows = table.scan(["entry_hash"], f"sequence = {head.sequence}", version=version).to_arrow()
    return head.hash.hex() in rows.column("entry_hash").to_pylist()


class RememberedHead:
    """The end of the chain as this machine saw it last; only ever moves on.

    Attributes:
        path: The file that holds it.
        lost_path: The file with earlier ends that the log had no more when it went on.
    """

    def __init__(self, directory: Path) -> None:
        self.path = directory / _FILE
        self.lost_path = directory / _LOST
        self._lock = directory / _LOCK

    def read(self) -> Head | None:
        """Return it; None if nothing was remembered.

        Raises:
            StorageIoError: The file is damaged.
        """
        try:
            return _from_text(self.path.read_text(encoding="ascii"))
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError) as error:
            raise StorageIoError(
                f"The remembered end of the audit log, {self.path}, is damaged. Find out who changed it; "
                "if nobody did, remove it: the next entry makes it anew.",
                path=str(self.path),
            ) from error

    def lost(self) -> list[Head]:
        """Return the ends that the log had no more when it went on.

        Raises:
            StorageIoError: The file is damaged.
        """
        try:
            # A power failure may leave half a line, which its writer has not relied on yet.
            whole = self.lost_path.read_text(encoding="ascii").rpartition("\n")[0]
            return [_from_text(line) for line in whole.splitlines()]
        except FileNotFoundError:
            return []
        except (ValueError, KeyError, TypeError) as error:
            raise StorageIoError(
                f"What was lost of the audit log, {self.lost_path}, is damaged. Find out who changed it.",
                path=str(self.lost_path),
            ) from error

    def keep_lost(self, head: Head) -> None:
        """Remember for good an end that is not in the log any more.

        Raises:
            StorageIoError: The file is damaged.
            OSError: The disk refused.
        """
        with self._locked():
            if head in self.lost():
                return
            descriptor = os.open(self.lost_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            try:
                os.write(descriptor, f"{_to_text(head)}\n".encode())
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def keep(self, head: Head) -> None:
        """Remember a later end; an earlier one is left out.

        Raises:
            StorageIoError: The file is damaged.
            OSError: The disk refused.
        """
        with self._locked():
            known = self.read()
            if known is None or known.sequence < head.sequence:
                self._write(head)

    def _write(self, head: Head) -> None:
        unfinished = self.path.with_suffix(".new")
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            os.write(descriptor, _to_text(head).encode())
            # Without this a power failure could leave an empty file under the name.
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        unfinished.replace(self.path)

    @contextmanager
    def _locked(self) -> Generator[None]:
        descriptor = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


def _to_text(head: Head) -> str:
    return json.dumps({"sequence": head.sequence, "hash": head.hash.hex()})


def _from_text(text: str) -> Head:
    facts = json.loads(text)
    return Head(int(facts["sequence"]), bytes.fromhex(facts["hash"]))
