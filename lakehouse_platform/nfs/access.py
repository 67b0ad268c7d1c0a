"""Who may use the mount, and as whom. AUTH_SYS only claims a user id, so the connection's owner must bear it out."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from typing import Protocol

from lakehouse_platform.model.origin import Door, Origin
from lakehouse_platform.nfs.operations import Access as Right
from lakehouse_platform.nfs.operations import Caller, NfsError, Status
from lakehouse_platform.nfs.sockets import Endpoint, can_tell_owners, owner_of_peer

_AUTH_SYS = 1
_ROOT = 0
SocketName = tuple[str, int] | tuple[str, int, int, int]


class Admission(Protocol):
    """Decides who a caller is to the lakehouse."""

    def admit(self, caller: Caller) -> Origin:
        """Return who acts, for everything that the caller changes.

        Raises:
            NfsError: ACCES, the caller may not use the mount.
        """
        ...


@dataclass(frozen=True, slots=True)
class LocalOwner:
    """Lets the owner of the server in, and root, as the local owner of the lakehouse's files.

    Attributes:
        uid: The owner's user id.
        allow_other: Whether all other users of a mount are let in too, with the owner's rights.
    """

    uid: int
    allow_other: bool = False

    def admit(self, caller: Caller) -> Origin:
        """Return the owner; see `Admission`."""
        if not self.allow_other and caller.uid not in (_ROOT, self.uid):
            raise NfsError(Status.ACCES, f"user {caller.uid} is not the mount's owner")
        return _OWNER


_OWNER = Origin(actor="owner", door=Door.NFS)


class Access:
    """The rules of access of one server.

    Attributes:
        uid: Owner that every file shows.
        gid: Group that every file shows.
        allow_other: Whether the files show that others may use them.
    """

    def __init__(
        self,
        admission: Admission | None = None,
        *,
        uid: int | None = None,
        gid: int | None = None,
        allow_other: bool = False,
        allow_remote: bool = False,
    ) -> None:
        """Set the rules.

        Args:
            admission: Who a caller is to the lakehouse; the owner of the server by default.
            uid: Owner that files show and that is let in; the server's by default.
            gid: Group that files show; the server's by default.
            allow_other: Whether every user of a mount is let in.
            allow_remote: Whether other machines are let in, which must know the ticket: their users cannot be checked.
        """
        self.uid = os.getuid() if uid is None else uid
        self.gid = os.getgid() if gid is None else gid
        self.allow_other, self._allow_remote = allow_other, allow_remote
        self._admission = admission or LocalOwner(self.uid, allow_other)
        self._owners = frozenset({_ROOT, os.getuid()})

    def is_trusted(self, peer: SocketName, local: SocketName) -> bool:
        """Tell whether the claims that come over a connection are believed.

        On Linux the connection of a local user is believed if that is root, whose kernel makes the connections of
        mounts, or the server's own user. Other systems do not tell: there the ticket alone keeps local users out.
        Blocks in proportion to the machine's sockets (`sockets.owner_of_peer`): ask once for each connection.

        Args:
            peer: What `getpeername` says.
            local: What `getsockname` says.
        """
        theirs, ours = Endpoint.of(peer), Endpoint.of(local)
        if not _is_this_machine(theirs, ours):
            return self._allow_remote
        return not can_tell_owners() or owner_of_peer(theirs, ours) in self._owners

    def origin(self, caller: Caller) -> Origin:
        """Return who acts for a caller.

        Raises:
            NfsError: ACCES, the caller may not use the mount.
        """
        if not caller.trusted:
            raise NfsError(Status.ACCES, "the connection belongs to another user")
        if caller.flavor != _AUTH_SYS or caller.uid is None:
            raise NfsError(Status.ACCES, "the call does not say who makes it")
        return self._admission.admit(caller)

    def file_mode(self, *, writable: bool) -> int:
        """Return the permission bits of a file."""
        return self._shared(0o600 if writable else 0o400)

    def directory_mode(self, *, writable: bool) -> int:
        """Return the permission bits of a directory."""
        return self._shared(0o700 if writable else 0o500)

    def _shared(self, mode: int) -> int:
        """Let others read, and search directories, if they are let in."""
        readable = mode & 0o500
        return mode | readable >> 3 | readable >> 6 if self.allow_other else mode


def granted(wanted: Right, *, directory: bool, writable: bool, executable: bool = False) -> Right:
    """Return the rights among those wanted that whoever is let in has.

    Args:
        wanted: What ACCESS asks for.
        directory: Whether it asks about a directory.
        writable: Whether it may be changed, or for a directory entries be made and removed.
        executable: Whether a file has an execute bit.
    """
    held = Right.READ
    if writable:
        held |= Right.MODIFY | Right.EXTEND
    if directory:
        held |= Right.LOOKUP | (Right.DELETE if writable else Right(0))
    elif executable:
        held |= Right.EXECUTE
    return wanted & held


def _is_this_machine(peer: Endpoint, local: Endpoint) -> bool:
    if peer.is_loopback or peer.address == local.address:
        return True
    # Only an address of this machine can be bound; a user here may have connected to any of them.
    family = socket.AF_INET if peer.address.version == 4 else socket.AF_INET6
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        try:
            probe.bind((str(peer.address), 0))
        except OSError:
            return False
    return True
