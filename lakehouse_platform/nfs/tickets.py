"""The ticket in an export path: who knows it may mount, as any local user can claim to be root over AUTH_SYS.

The server has one for its owner. Users have others, one for each sign-in, which identity makes.
"""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from lakehouse_platform.identity.mount_tickets import TICKET_LENGTH
from lakehouse_platform.nfs.operations import NfsError, Status
from lakehouse_platform.private_files import load_secret

# 128 bits: 22 characters of the URL-safe alphabet.
_TICKET_BYTES = 16
_BULK_SUFFIX = b"@bulk"
_MAX_NAME = 255
LAKE = b"lake"


class Profile(IntEnum):
    """How a mount writes, as its export name says.

    SYNC: every write(2) is a WRITE of its own and gets its own answer. BULK: the client gathers, and flushes on close.
    """

    SYNC = 0
    BULK = 1


@dataclass(frozen=True, slots=True)
class Export:
    """What a client asks to mount.

    Attributes:
        name: `lake`, or the table's.
        profile: How the mount writes.
        below: Names that lead from there to the directory that is asked for.
    """

    name: bytes
    profile: Profile
    below: tuple[bytes, ...]


class Ticket:
    """The ticket of one server: the same until its file is removed from the state directory."""

    def __init__(self, state_dir: Path) -> None:
        """Read the ticket, or make it.

        Raises:
            StorageIoError: Its file is damaged.
            StoragePermissionError: Others can read its file.
        """
        self._secret = load_secret(
            state_dir / "ticket", lambda: secrets.token_urlsafe(_TICKET_BYTES).encode()
        )

    def __repr__(self) -> str:
        return "Ticket()"

    def path(self, name: bytes, profile: Profile) -> bytes:
        """Return the path by which an export is mounted. Whoever knows it may mount: show it to its owner only."""
        return b"/".join((b"", self._secret, export_name(name, profile)))

    def parse(self, path: bytes) -> Export:
        """Return what a path asks for.

        Raises:
            NfsError: ACCES, without the right ticket; NOENT, no export's path; NAMETOOLONG.
        """
        given, *names = _parts(path)
        if not hmac.compare_digest(given, self._secret):
            raise NfsError(Status.ACCES, "the export path has no valid ticket")
        return _export(names)


def user_ticket(path: bytes) -> str | None:
    """Return the ticket of a user that a path begins with, if it looks like one; whether it is, identity tells."""
    given = _parts(path)[0]
    return given.decode("ascii") if len(given) == TICKET_LENGTH and given.isascii() else None


def user_path(path: str, ticket: str) -> str:
    """Return the path by which a user mounts what the owner mounts by another. Whoever knows it acts as the user."""
    return f"/{ticket}/{path.rpartition('/')[2]}"


def user_export(path: bytes) -> Export:
    """Return what a path asks for that begins with the ticket of a user.

    Raises:
        NfsError: NOENT, no export's path; NAMETOOLONG.
    """
    return _export(_parts(path)[1:])


def _parts(path: bytes) -> list[bytes]:
    return [part for part in path.split(b"/") if part] or [b""]


def _export(names: list[bytes]) -> Export:
    if not names or any(name in (b".", b"..") or b"\0" in name for name in names):
        raise NfsError(Status.NOENT)
    if max(map(len, names)) > _MAX_NAME + len(_BULK_SUFFIX):
        raise NfsError(Status.NAMETOOLONG)
    export, *below = names
    name = export.removesuffix(_BULK_SUFFIX)
    return Export(name, Profile.SYNC if name == export else Profile.BULK, tuple(below))


def export_name(name: bytes, profile: Profile) -> bytes:
    """Return an export's name without its ticket."""
    return name + _BULK_SUFFIX if profile is Profile.BULK else name
