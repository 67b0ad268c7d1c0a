"""Tells with two looks at the log whether an opened version of a table is still the newest of the same table."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import pyarrow.fs as pafs

from lakehouse_platform.store.engine import translated
from lakehouse_platform.store.location import Location
from lakehouse_platform.store.log import LOG_DIRECTORY, commit_file

Identity: TypeAlias = tuple[object, ...]
_BEGINNING = 64 * 1024  # bytes
_LOG = "log"


@dataclass(frozen=True, slots=True)
class LogMark:
    """One version of the table at a location.

    Attributes:
        location: Where the table stands.
        version: The version.
        identity: What changes when another table takes its place: its commit file's identity, else its log's.
    """

    location: Location
    version: int
    identity: Identity = field(repr=False)
    _watched: tuple[str, str] = field(repr=False)

    @classmethod
    def of(cls, location: Location, version: int) -> LogMark:
        """Look a version up that is there.

        Raises:
            LakehouseError: The storage cannot be reached.
        """
        root = f"{location.uri}/" if location.is_local else ""
        watched = (root + commit_file(version), root + commit_file(version + 1))
        with translated(location):
            (found,) = _looked_up(location, watched[:1])
            return cls(location, version, found or _log_identity(location), watched)

    @property
    def is_of_file(self) -> bool:
        """Whether it is known by its commit file, which no other table can have, and not by its log alone."""
        return bool(self.identity) and self.identity[0] != _LOG

    def is_newest(self) -> bool:
        """Tell whether no commit followed and the table is still the same one.

        Raises:
            LakehouseError: The storage cannot be reached.
        """
        with translated(self.location):
            here, after = _looked_up(self.location, self._watched)
            return not after and (here or _log_identity(self.location)) == self.identity

    def is_there(self) -> bool:
        """Tell whether the table is still the same one, whatever followed.

        Raises:
            LakehouseError: The storage cannot be reached.
        """
        return LogMark.of(self.location, self.version).identity == self.identity


def last_checkpoint(location: Location) -> Identity:
    """Return what changes when a local table gets another newest checkpoint.

    Raises:
        LakehouseError: The storage cannot be reached.
    """
    with translated(location):
        return _stat(f"{location.uri}/{LOG_DIRECTORY}/_last_checkpoint")


def _log_identity(location: Location) -> Identity:
    if location.is_local:
        path = location.path / LOG_DIRECTORY
        return (_LOG, path.stat().st_ino) if path.is_dir() else ()
    return (_LOG,)


def _looked_up(location: Location, paths: Sequence[str]) -> list[Identity]:
    """Return the identity of each of these files; an empty one for those that are not there."""
    if location.is_local:
        return [_stat(path) for path in paths]
    filesystem = location.filesystem()
    return [_stored(filesystem, info) for info in filesystem.get_file_info(list(paths))]


def _stored(filesystem: pafs.FileSystem, info: pafs.FileInfo) -> Identity:
    if info.type == pafs.FileType.NotFound:
        return ()
    # Object stores tell seconds, and a table dropped and made anew within one often has a first commit of the same
    # size (seen with SeaweedFS). A commit's beginning holds its time in milliseconds and a random name.
    try:
        with filesystem.open_input_stream(info.path) as stream:
            return info.size, info.mtime_ns, hashlib.blake2b(stream.read(_BEGINNING)).digest()
    except FileNotFoundError:
        return ()


def _stat(path: str) -> Identity:
    try:
        status = os.stat(path)  # noqa: PTH116 - a Path costs more than the call itself, asked for each GETATTR
    except (FileNotFoundError, NotADirectoryError):
        return ()
    return status.st_ino, status.st_size, status.st_mtime_ns
