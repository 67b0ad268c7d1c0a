"""Attributes of files and directories, as this server tells them."""

from __future__ import annotations

from dataclasses import dataclass

from lakehouse_platform.nfs.access import Access
from lakehouse_platform.nfs.operations import Attributes, FileType
from lakehouse_platform.nfs.tickets import Profile
from lakehouse_platform.nfs.tree.handles import Handle, fsid, is_users
from lakehouse_platform.nfs.tree.nodes import SCRATCH_ROOTS
from lakehouse_platform.nfs.tree.scratch import ScratchAttributes

_DIRECTORY_SIZE = 4096
# What a user may only read says so to everybody; who may come in at all is not said by modes.
_READ_BY_ALL, _SEARCHED_BY_ALL = 0o444, 0o555


@dataclass(frozen=True, slots=True)
class Presenter:
    """Makes attributes.

    Attributes:
        access: Owner, group and modes that are shown, the same to every caller: Linux keeps one set for all its users.
        fsids: File system numbers by profile.
        read_only: Whether nothing may be changed.
    """

    access: Access
    fsids: dict[Profile, int]
    read_only: bool

    @classmethod
    def make(cls, key: bytes, access: Access, *, read_only: bool) -> Presenter:
        """Return the presenter of a server with this key."""
        return cls(access, {profile: fsid(profile, key) for profile in Profile}, read_only)

    def file(self, handle: Handle, size: int, changed_ns: int, *, editable: bool = False) -> Attributes:
        """Return the attributes of a view or another file of a table."""
        writable = editable and not self.read_only
        mode = self.access.file_mode(writable=writable)
        if not writable and is_users(handle.mount):
            mode |= _READ_BY_ALL
        return self._make(FileType.REGULAR, handle, mode, size, changed_ns)

    def directory(
        self, handle: Handle, changed_ns: int, *, subdirectories: int = 0, changeable: bool = True
    ) -> Attributes:
        """Return the attributes of a directory."""
        writable = handle.kind in SCRATCH_ROOTS and not self.read_only and changeable
        mode = self.access.directory_mode(writable=writable)
        if not writable and is_users(handle.mount):
            mode |= _SEARCHED_BY_ALL
        return self._make(
            FileType.DIRECTORY, handle, mode, _DIRECTORY_SIZE, changed_ns, nlink=2 + subdirectories
        )

    def scratch(self, handle: Handle, found: ScratchAttributes) -> Attributes:
        """Return the attributes of a scratch file, directory or link."""
        return Attributes(
            type=found.type,
            mode=found.mode,
            size=found.size,
            fileid=handle.fileid,
            fsid=self.fsids[handle.profile],
            uid=self.access.uid,
            gid=self.access.gid,
            mtime_ns=found.mtime_ns,
            ctime_ns=found.ctime_ns,
            atime_ns=found.atime_ns,
            nlink=found.nlink,
            used=found.used,
        )

    def _make(
        self, kind: FileType, handle: Handle, mode: int, size: int, changed_ns: int, nlink: int = 1
    ) -> Attributes:
        return Attributes(
            type=kind,
            mode=mode,
            size=size,
            fileid=handle.fileid,
            fsid=self.fsids[handle.profile],
            uid=self.access.uid,
            gid=self.access.gid,
            mtime_ns=changed_ns,
            ctime_ns=changed_ns,
            atime_ns=changed_ns,
            nlink=nlink,
            used=size,
        )
