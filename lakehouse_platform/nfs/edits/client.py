"""What the server keeps for one client of one table: what it saw, what it edits, and which errors wait for it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from lakehouse_platform.errors import LakehouseError
from lakehouse_platform.nfs.edits.classify import Role, Sight
from lakehouse_platform.nfs.edits.edit import Edit
from lakehouse_platform.nfs.edits.session import Session
from lakehouse_platform.nfs.edits.view import View
from lakehouse_platform.nfs.operations import NfsError, Status
from lakehouse_platform.nfs.tree.handles import owned
from lakehouse_platform.nfs.tree.image import Image

# Linux writes what it has cached after 30 s at the latest (dirty_expire_centisecs).
CACHED_S = 60.0
# The WRITEs that were under way when one was refused arrive within this time of each other.
REFUSING_S = 2.0
_UNFINISHED = (
    "the file does not end with a whole row, or was replaced half written: write all of it, then save again"
)


@dataclass(slots=True)
class Refusing:
    """An edit that was refused, while the rest of it may still be coming.

    Attributes:
        error: Why; every further WRITE is told so.
        name: Where its bytes are kept.
        until: When to stop waiting for more.
        awaits_commit: Whether the client sends more before it asks anything, as unstable WRITEs are sent.
    """

    error: LakehouseError | NfsError
    name: str
    until: float
    awaits_commit: bool


@dataclass(slots=True)
class Client:
    """One client of one table. Changed on the event loop only, while `lock` is held; `tell` needs no lock.

    Attributes:
        mount: The client.
        view: The table.
        lock: Held while something is done for the client.
        state: When what is done.
        edit: What it edits, or edited last.
        told: The image that it was told last.
        told_version: Its version, if the image is not known since a restart.
        before: What it was told before, and until when it may have that cached.
        read: The image that it read last, and when.
        superseded_at: Since when it knows an image that holds its last edit.
        refusing: An edit that was refused and may go on arriving.
        sticky: An error that the next WRITE or COMMIT is told once.
        failure: Why its draft could not be published when that was tried last, for a reason that may pass.
        changed_ns: ctime and mtime of the draft.
        timer: Wakes the client up.
    """

    mount: bytes
    view: View
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    state: Session = field(default_factory=Session)
    edit: Edit | None = None
    told: Image | None = None
    told_version: int | None = None
    before: list[tuple[Image, float]] = field(default_factory=list[tuple[Image, float]])
    read: tuple[Image, float] | None = None
    superseded_at: float | None = None
    refusing: Refusing | None = None
    sticky: LakehouseError | NfsError | None = None
    failure: LakehouseError | NfsError | None = None
    changed_ns: int = 0
    used: float = 0.0
    timer: asyncio.TimerHandle | None = None
    written: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def shelf(self) -> bytes:
        """Where its refused bytes are kept."""
        return owned(self.mount, self.view.key)

    @property
    def is_open(self) -> bool:
        """Whether it has a draft."""
        return self.state.is_open

    @property
    def due(self) -> float | None:
        """When there is something to do if nothing happens until then."""
        if self.is_open or self.superseded_at is None:
            return self.state.due
        return self.superseded_at + CACHED_S

    @property
    def ghost(self) -> Edit | None:
        """Its last edit, if it is published and the client has not been told an image that holds it."""
        return self.edit if not self.is_open and self.superseded_at is None else None

    @property
    def why_unpublished(self) -> LakehouseError | NfsError:
        """Why its draft is not published and cannot wait any longer."""
        return self.failure if self.state.failures and self.failure else NfsError(Status.IO, _UNFINISHED)

    def unread_edit(self, now: float) -> Edit | None:
        """Return its last edit if it has read nothing since, though it may have been told of something newer."""
        since = self.superseded_at
        if self.is_open or since is None:
            return self.ghost
        return self.edit if self.read is None and now < since + CACHED_S else None

    def note_told(self, image: Image, now: float) -> bool:
        """Note what the client is being told; return whether it is news."""
        edit = self.ghost
        news = edit is not None and edit.version is not None and image.version >= edit.version
        if news:
            self.superseded_at = now
        if self.told is not None and self.told.version == image.version:
            return False
        if self.told is not None:
            # What it saw before its own edit is not cached any more: its edit is.
            self.before = [] if news else [(self.told, now + CACHED_S), *self.before[:1]]
        self.told, self.told_version = image, image.version
        return True

    def note_read(self, image: Image, now: float) -> bool:
        """Note which image the client reads; return whether it is news: older pages are not cached any more."""
        news = self.read is None or self.read[0] is not image
        if news:
            self.before = [old for old in self.before if old[0].version > image.version]
        self.read = image, now
        return news

    def patched(self, told: Image, now: float) -> Image:
        """Return the image that the client changes in place: the one it read, if it was told a newer one by the way."""
        if self.read is None or now >= self.read[1] + CACHED_S or self.read[0].version >= told.version:
            return told
        return self.read[0]

    def sights(self, told: Image, now: float) -> list[tuple[Sight, Edit | Image]]:
        """Return what a WRITE may be based on, the likeliest first."""
        edit = self.edit
        if edit is not None and self.superseded_at is None:
            found: list[tuple[Sight, Edit | Image]] = [(Sight(edit.base, Role.NEWEST), edit)]
        else:
            found = [(Sight(told, Role.NEWEST), told)]
        role = self._role_of_edit(now)
        if edit is not None and role is not None:
            found.append((Sight(edit.base, role), edit))
        found += [(Sight(old, Role.EARLIER), old) for old, until in self.before if now < until]
        newest = self.view.images.current()
        if newest is not None and newest.version > told.version and self.ghost is None:
            found.append((Sight(newest, Role.LATER), newest))
        return found

    def _role_of_edit(self, now: float) -> Role | None:
        """Return how the client may still know its last edit after it was told a newer image; None if it cannot."""
        edit, since = self.edit, self.superseded_at
        if edit is None or since is None or now >= since + CACHED_S:
            return None
        if self.read is not None and self.read[1] >= since and self.read[0].version >= (edit.version or 0):
            return Role.SENT if edit.is_uncommitted else None
        return Role.UNCOMMITTED if edit.is_uncommitted else Role.EARLIER
