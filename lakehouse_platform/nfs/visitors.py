"""The users of a mount: who acts through it, and what each may see and change. Its owner is never asked about.

What a user may do is looked up in a worker thread and believed for a second, so that a call costs no look at the store:
a sign-in that ends, an account that is disabled and a grant that is taken away are void here within that time. What is
committed, queried and opened to be read goes through the gate each time, which looks anew.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar
from uuid import UUID

from lakehouse_platform.errors import AuditError, AuthenticationFailedError, PermissionDeniedError
from lakehouse_platform.identity.permissions import Permission
from lakehouse_platform.model.names import is_table_name
from lakehouse_platform.model.origin import Door, Origin
from lakehouse_platform.model.rights import EVERY_TABLE, Right
from lakehouse_platform.nfs.edits.permits import Commit, Permits, Tell, untold
from lakehouse_platform.nfs.edits.view import ImageSource, View
from lakehouse_platform.nfs.operations import Caller, NfsError, Status
from lakehouse_platform.nfs.tree.catalog import Catalog
from lakehouse_platform.nfs.tree.flights import Flights
from lakehouse_platform.nfs.tree.handles import (
    MOUNT_BYTES,
    Handle,
    Kind,
    is_users,
    session_of,
    user_mount,
    user_of,
)
from lakehouse_platform.nfs.tree.served import ServedTable
from lakehouse_platform.nfs.tree.sql_door import SqlDoor
from lakehouse_platform.services.gate import Note
from lakehouse_platform.services.mount_users import MountUsers, Standing
from lakehouse_platform.services.sparse import Sparse
from lakehouse_platform.store.table import Table
from lakehouse_platform.store.tables import system_table

_LOG = logging.getLogger(__name__)
_K = TypeVar("_K", bound=Hashable)
_T = TypeVar("_T")
# As long as answers about tables on object stores are believed (`identity.mirror`).
_FRESH_S = 1.0
_MOST_STANDINGS = 4096
_MOST_READS = 65_536
# Clients ask again and again for what they were refused; so many entries a minute of each user tell as much.
_MOST_REFUSALS = 10
# What is read of these tells of the table's rows or shape; the other files are the user's own.
_TOLD = frozenset({Kind.CSV, Kind.JSON, Kind.JSONL, Kind.PARQUET, Kind.SCHEMA, Kind.HISTORY, Kind.STATS})
_FOR_READERS = frozenset({Kind.QUERY, Kind.QUERIES, Kind.SCRATCH})


@dataclass(frozen=True, slots=True)
class UserView:
    """The `data.csv` of a table as a user changes it; a `View`."""

    key: bytes
    images: ImageSource
    table: Table


@dataclass(frozen=True, slots=True)
class Opened:
    """What a client reads of a file while it does not change.

    Attributes:
        snapshot: Tells it from what the file holds at another time.
        size: Its bytes.
        rows: Its rows, where it has rows.
    """

    snapshot: Hashable
    size: int
    rows: Callable[[], int | None]


class Visitors(Permits):
    """The users of one server. Used on the event loop's thread, but for what is said to block."""

    def __init__(self, users: MountUsers | None, catalog: Catalog, now: Callable[[], float]) -> None:
        """Ask nobody yet.

        Args:
            users: The users of the lakehouse; None if what is served belongs to none.
            catalog: The tables.
            now: Seconds that only grow.
        """
        self._users = users
        self._catalog = catalog
        self._now = now
        self._standings: OrderedDict[bytes, tuple[Standing, float]] = OrderedDict()
        self._reads: OrderedDict[Handle, Hashable] = OrderedDict()
        self._flights = Flights()
        self._refusals = Sparse(_MOST_REFUSALS)
        self._notes: set[asyncio.Future[None]] = set()

    async def close(self) -> None:
        """Write down what is not written yet, and let go; what cannot reach the tables now stays in the journal."""
        await self._flights.settle()
        await asyncio.gather(*self._notes, return_exceptions=True)
        if self._users is None:
            return
        try:
            await asyncio.to_thread(self._users.close)
        except AuditError as error:
            _LOG.warning("what users did is not in the audit log's tables yet: %s", error)

    # ── Who ───────────────────────────────────────────────────────────────────────────────────────

    async def admit(self, ticket: str, caller: Caller) -> bytes:
        """Return the new mount of whoever has a ticket.

        Raises:
            AuthError: The ticket lets nobody in, or nobody any more.
        """
        host = caller.peer.rpartition(":")[0]
        actor = await asyncio.to_thread(self._known().admit, ticket, host)
        return user_mount(secrets.token_bytes(MOUNT_BYTES), UUID(actor.session_id), UUID(actor.id))

    def is_known(self, mount: bytes) -> bool:
        """Tell whether `check` can be asked about a user; otherwise `look` goes before it."""
        found = self._standings.get(mount[MOUNT_BYTES:])
        return found is not None and self._now() < found[1]

    async def look(self, mount: bytes) -> None:
        """Find out what whoever a mount belongs to may do."""
        if not is_users(mount):
            return
        user = mount[MOUNT_BYTES:]

        def ask() -> tuple[Standing, float]:
            until = self._now() + _FRESH_S
            return self._newest(mount), until

        standing, until = await self._flights.run(user, ask)
        before = self._standings.get(user)
        if before is None or before[1] <= until:
            _remember(self._standings, user, (standing, until), _MOST_STANDINGS)

    def check(self, mount: bytes, served: ServedTable | None) -> None:
        """Refuse who may not see a table, or nothing any more.

        Raises:
            AuthenticationFailedError: The sign-in has ended.
            PermissionDeniedError: The table is none of theirs.
        """
        if not is_users(mount):
            return
        standing = self._standing(mount)
        if standing.has_ended:
            self._refuse(standing, Permission.READ_TABLE, served.table.name if served else None)
            raise AuthenticationFailedError("The sign-in of this mount has ended: sign in and mount again.")
        if served is not None and not standing.may(served.table.name, Right.READ):
            self._refuse(standing, Permission.READ_TABLE, served.table.name)
            raise _denied()

    # ── What is there ─────────────────────────────────────────────────────────────────────────────

    async def named(self, mount: bytes, name: bytes) -> ServedTable:
        """Return a table by its name; for a user only one of theirs, whatever else there is.

        Raises:
            NfsError: NOENT: there is none.
        """
        if not is_users(mount):
            return await self._catalog.named(name)
        if not self.is_known(mount):
            await self.look(mount)
        text, standing = name.decode("ascii", "replace"), self._standing(mount)
        if not standing.may(text, Right.READ):
            # Known without a look at the tables, so that the time it takes does not tell either.
            if is_table_name(text):
                self._refuse(standing, Permission.READ_TABLE, text)
            raise NfsError(Status.NOENT)
        return await (self._catalog.named(name) if system_table(text) is None else self._catalog.system(name))

    async def tables(self, mount: bytes) -> Sequence[ServedTable]:
        """Return all tables, for a user all of theirs."""
        tables = await self._catalog.tables()
        if not is_users(mount):
            return tables
        everything = [*tables, *await self._catalog.system_tables()]
        standing = self._standing(mount)
        return [one for one in everything if standing.may(one.table.name, Right.READ)]

    def may_read(self, mount: bytes, served: ServedTable) -> bool:
        """Tell whether whoever a mount belongs to may see a table."""
        return not is_users(mount) or self._standing(mount).may(served.table.name, Right.READ)

    def shown(self, mount: bytes) -> Hashable:
        """Return what a user's root directory depends on beside the tables themselves; None for the owner."""
        if not is_users(mount):
            return None
        standing = self._standing(mount)
        return frozenset(one.name for one in self._catalog.now if standing.may(one.table.name, Right.READ))

    # ── What may be changed ───────────────────────────────────────────────────────────────────────

    def may_change(self, mount: bytes, kind: Kind, served: ServedTable | None) -> bool:
        """Tell whether whoever a mount belongs to may change a file, or make and remove entries of a directory."""
        if not is_users(mount) or kind is Kind.SCRATCH:
            return True
        if served is not None and served.is_system:
            return False
        table = EVERY_TABLE if served is None else served.table.name
        return self._standing(mount).may(table, Right.READ if kind in _FOR_READERS else Right.WRITE)

    def check_change(self, mount: bytes, kind: Kind, served: ServedTable | None) -> None:
        """Refuse who may not change something.

        Raises:
            NfsError: ROFS: nobody may.
            PermissionDeniedError: They may not.
        """
        if self.may_change(mount, kind, served):
            return
        table = EVERY_TABLE if served is None else served.table.name
        self._refuse(self._standing(mount), Permission.WRITE_TABLE, table)
        if served is not None and served.is_system:
            raise NfsError(Status.ROFS, "only the platform changes its own tables")
        raise _denied()

    def check_same(self, mount: bytes, other: bytes) -> None:
        """Refuse to move something between the mounts of two users.

        Raises:
            PermissionDeniedError: It is another one's.
        """
        if mount[MOUNT_BYTES:] != other[MOUNT_BYTES:] and (is_users(mount) or is_users(other)):
            raise _denied()

    # ── What goes through the gate ────────────────────────────────────────────────────────────────

    def is_told(self, handle: Handle, opened: Opened | None) -> bool:
        """Tell whether that a file is read needs no entry in the audit log, or has it."""
        if opened is None or not is_users(handle.mount) or handle.kind not in _TOLD:
            return True
        return self._reads.get(handle) == opened.snapshot

    async def tell(self, handle: Handle, served: ServedTable, opened: Opened) -> None:
        """Write down that a file is opened to be read: once for each client, file and content, before any byte of it.

        Raises:
            PermissionDeniedError: The user may not read it any more.
            AuditWriteFailedError: The audit log cannot be written.
        """
        details = f"{handle.kind.name.lower()} of {opened.size} bytes"

        def act(note: Note) -> None:
            note.row_count = opened.rows()

        def run() -> None:
            actor = self._newest(handle.mount).actor
            self._known().run(actor, Permission.READ_TABLE, served.table.name, act, details=details)

        # Clients read ahead: the calls that come together are one opening.
        await self._flights.run((handle, opened.snapshot), run)
        _remember(self._reads, handle, opened.snapshot, _MOST_READS)

    def query(self, mount: bytes, served: ServedTable, act: Callable[[SqlDoor], _T]) -> _T:
        """Run SQL with what whoever a mount belongs to may read. Blocks.

        Raises:
            PermissionDeniedError: The query reads another table, whether or not that exists.
        """
        if not is_users(mount):
            return act(served.door)
        users, actor = self._known(), self._newest(mount).actor

        def noted(note: Note) -> _T:
            door = served.door.narrowed(
                partial(users.may, actor, Permission.RUN_SQL),
                partial(users.require, actor, Permission.RUN_SQL, note=note),
                partial(_count, note),
            )
            return act(door)

        return users.run(actor, Permission.RUN_SQL, served.table.name, noted)

    def view(self, mount: bytes, view: View) -> View:
        """Return a table as whoever a mount belongs to changes it."""
        if not is_users(mount):
            return view
        return UserView(
            view.key, view.images, view.table.through(Origin(actor=user_of(mount), door=Door.NFS))
        )

    def publish(self, mount: bytes, view: View, act: Callable[[Tell], int]) -> int:
        """Commit for a mount through the gate; see `Permits.publish`. Blocks."""
        if not is_users(mount):
            return act(untold)
        users, actor = self._known(), self._newest(mount).actor

        def noted(note: Note) -> int:
            # It is better not to land than to land untold. One flush of the disk is nothing beside a commit.
            users.check_writable()
            version = act(partial(_count, note))
            note.details = f"version {version}"
            return version

        return users.run(actor, Permission.WRITE_TABLE, view.table.name, noted)

    def write_down(self, commit: Commit) -> None:
        """Write down a commit that could not be when it was made; see `Permits.write_down`. Blocks."""
        if is_users(commit.mount):
            note = Note(details=f"version {commit.version}", row_count=commit.rows)
            user, table = user_of(commit.mount), commit.view.table.name
            self._known().note_done(user, Permission.WRITE_TABLE, table, note)

    # ── Inside ────────────────────────────────────────────────────────────────────────────────────

    def _known(self) -> MountUsers:
        if self._users is None:
            raise AuthenticationFailedError("What is served here has no users: use the server's own ticket.")
        return self._users

    def _newest(self, mount: bytes) -> Standing:
        """Return what a user may do now. Blocks."""
        return self._known().standing(session_of(mount), user_of(mount))

    def _standing(self, mount: bytes) -> Standing:
        found = self._standings.get(mount[MOUNT_BYTES:])
        if found is None:  # thousands of others were asked about since this call began
            raise NfsError(Status.JUKEBOX)
        return found[0]

    def _refuse(self, standing: Standing, permission: Permission, table: str | None) -> None:
        """Have it written down that something was refused, unless that stands there often enough."""
        left_out = self._refusals.admit(standing.actor.id, datetime.now(UTC))
        if left_out is None:
            return
        note = partial(self._known().note_refusal, standing.actor, permission, table, left_out)
        task = asyncio.ensure_future(asyncio.to_thread(note))
        self._notes.add(task)
        task.add_done_callback(self._noted)

    def _noted(self, task: asyncio.Future[None]) -> None:
        self._notes.discard(task)
        if not task.cancelled() and (error := task.exception()):
            _LOG.error("A refusal is missing in the audit log.", exc_info=error)


def _denied() -> PermissionDeniedError:
    return PermissionDeniedError("You may not do this here: ask an administrator for the right on the table.")


def _count(note: Note, rows: int) -> None:
    note.row_count = rows


def _remember(cache: OrderedDict[_K, _T], key: _K, value: _T, most: int) -> None:
    """Put a value into a cache that forgets the oldest."""
    cache[key] = value
    cache.move_to_end(key)
    if len(cache) > most:
        cache.popitem(last=False)
