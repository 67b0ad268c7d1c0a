"""What `doctor` checks: each check yields findings and never fails itself because of what it finds."""

from __future__ import annotations

import platform
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Protocol

import pyarrow.fs as pafs

from lakehouse_platform.cli.output import counted
from lakehouse_platform.cli.session import Session
from lakehouse_platform.errors import LakehouseError
from lakehouse_platform.upkeep.policy import Task, decide

if TYPE_CHECKING:
    from lakehouse_platform.services.lakehouse import Lakehouse

# What the command line cannot do without; Dagster belongs to the same installation.
_PACKAGES = ("lakehouse-platform", "deltalake", "datafusion", "pyarrow", "polars", "dagster")


class Status(StrEnum):
    """How bad a finding is."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


class LiveFile(Protocol):
    """What the log says about a data file."""

    @property
    def path(self) -> str:
        """Relative to the table."""
        ...

    @property
    def size(self) -> int:
        """Bytes."""
        ...


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check.

    Attributes:
        status: How bad it is.
        check: What was looked at.
        subject: Where.
        detail: What was found, and what to do if it is not fine.
    """

    status: Status
    check: str
    subject: str
    detail: str


def check_everything(session: Session) -> Iterator[Finding]:
    """Yield the findings of all checks; what cannot be looked at without the one before is left out."""
    yield from _installation()
    try:
        lakehouse = session.lakehouse
    except LakehouseError as error:
        yield Finding(Status.PROBLEM, "settings", error.code, error.message)
        return
    yield Finding(Status.OK, "settings", lakehouse.config.base_path, "valid")
    storage = _storage(lakehouse)
    yield storage
    if storage.status is Status.OK:
        for name in lakehouse.store.tables():
            yield from _table(lakehouse, name)


def _installation() -> Iterator[Finding]:
    yield Finding(Status.OK, "python", platform.python_version(), platform.platform())
    for package in _PACKAGES:
        try:
            yield Finding(Status.OK, "package", package, version(package))
        except PackageNotFoundError:
            advice = f"not installed: run `pip install {package}`"
            yield Finding(Status.PROBLEM, "package", package, advice)


def _storage(lakehouse: Lakehouse) -> Finding:
    """Write and delete a small file: the only proof that both work."""
    location = lakehouse.store.base
    probe = f".doctor-{uuid.uuid4().hex}"
    try:
        filesystem = location.filesystem()
        if location.is_local and filesystem.get_file_info("").type is not pafs.FileType.Directory:
            return Finding(
                Status.PROBLEM, "storage", location.uri, "does not exist yet: run `lakehouse init`"
            )
        with filesystem.open_output_stream(probe) as stream:
            stream.write(b"doctor")
        filesystem.delete_file(probe)
    except (OSError, LakehouseError) as error:
        reason = " ".join(str(error).split())[:200]
        return Finding(Status.PROBLEM, "storage", location.uri, f"cannot be written: {reason}")
    return Finding(Status.OK, "storage", location.uri, "can be read and written")


def _table(lakehouse: Lakehouse, name: str) -> Iterator[Finding]:
    table = lakehouse.store.table(name)
    try:
        info = table.info()
        files = table.data_files()
        found = table.location.filesystem().get_file_info([file.path for file in files])
    except (LakehouseError, OSError) as error:
        yield Finding(Status.PROBLEM, "table", name, " ".join(str(error).split())[:300])
        return
    size = f"{counted(info.rows, 'row')}, {counted(info.files, 'file')}"
    yield Finding(Status.OK, "table", name, f"version {info.version}, {size}")
    yield from _damaged_files(name, files, found)
    yield from _upkeep(lakehouse, name)


def _damaged_files(name: str, files: Sequence[LiveFile], found: Sequence[pafs.FileInfo]) -> Iterator[Finding]:
    """Compare the live files with what the log says about them."""
    for file, there in zip(files, found, strict=True):
        if there.type is pafs.FileType.NotFound:
            detail = (
                f"data file {file.path} is missing: `lakehouse restore` a version without it, or a backup"
            )
        elif there.size != file.size:
            sizes = f"{there.size} bytes instead of {file.size}"
            detail = f"data file {file.path} has {sizes}: restore it from a backup"
        else:
            continue
        yield Finding(Status.PROBLEM, "data files", name, detail)


def _upkeep(lakehouse: Lakehouse, name: str) -> Iterator[Finding]:
    """Warn of what makes a table slow: a long log, many small files."""
    facts = lakehouse.upkeep.facts(name)
    for task, command in ((Task.COMPACT, "compact"), (Task.CHECKPOINT, "checkpoint")):
        due = decide(task, facts, lakehouse.config, datetime.now(UTC))
        if due.is_due:
            yield Finding(Status.WARNING, "upkeep", name, f"{due.reason} Run `lakehouse {command} {name}`.")
