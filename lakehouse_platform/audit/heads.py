"""The end of the chain: as the table's newest commits tell it, and as this machine remembers it.

Every commit of the audit log says where the chain ends after it, so that the next writer need not read rows. What this
machine remembers is a witness outside the table: whoever cuts the table's end off cannot cut it off here.
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
_FILE, _LOCK = "head", "head-lock"


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


class RememberedHead:
    """The end of the chain as this machine saw it last; only ever moves on.

    Attributes:
        path: The file that holds it.
    """

    def __init__(self, directory: Path) -> None:
        self.path = directory / _FILE
        self._lock = directory / _LOCK

    def read(self) -> Head | None:
        """Return it; None if nothing was remembered.

        Raises:
            StorageIoError: The file is damaged.
        """
        try:
            facts = json.loads(self.path.read_text(encoding="ascii"))
            return Head(int(facts["sequence"]), bytes.fromhex(facts["hash"]))
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError) as error:
            raise StorageIoError(
                f"The remembered end of the audit log, {self.path}, is damaged. Find out who changed it; "
                "if nobody did, remove it: the next entry makes it anew.",
                path=str(self.path),
            ) from error

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
            os.write(descriptor, json.dumps({"sequence": head.sequence, "hash": head.hash.hex()}).encode())
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
