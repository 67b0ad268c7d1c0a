"""What is believed of a user, and for how long; the owner is never asked about."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from lakehouse_platform.errors import AuditWriteFailedError, AuthenticationFailedError, PermissionDeniedError
from lakehouse_platform.identity.mount_tickets import TICKET_LENGTH
from lakehouse_platform.model.actors import Actor
from lakehouse_platform.model.rights import Right
from lakehouse_platform.nfs.composition import MountOptions, open_file_tree
from lakehouse_platform.nfs.edits.permits import Commit
from lakehouse_platform.nfs.operations import Caller, NfsError, Status
from lakehouse_platform.nfs.tree.catalog import OneTable
from lakehouse_platform.nfs.tree.handles import Handle, Kind, user_mount
from lakehouse_platform.nfs.tree.images import Images
from lakehouse_platform.nfs.tree.segments import SegmentCache
from lakehouse_platform.nfs.tree.served import ServedTable, Times
from lakehouse_platform.nfs.tree.sql_door import SqlDoor
from lakehouse_platform.nfs.visitors import Opened, Visitors
from lakehouse_platform.services.accounts import AuthActor
from lakehouse_platform.services.mount_users import MountUsers
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.store.table import Table
from lakehouse_platform_tests.support.full_disk import file_size_limit
from lakehouse_platform_tests.support.people import entries, signed_in
from lakehouse_platform_tests.support.tables import PEOPLE, people

OWNERS = b"mnt0"


@dataclass
class Clock:
    """Seconds that stand still until the test lets them go on."""

    now: float = 100.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Asked:
    """The users of one table's server, asked on an event loop of its own."""

    visitors: Visitors
    served: ServedTable
    clock: Clock

    def run(self, act: Callable[[], Awaitable[None]]) -> None:
        async def whole() -> None:
            await act()
            await self.visitors.close()

        asyncio.run(whole())


@pytest.fixture
def auth(store: DeltaStore) -> Iterator[AuthActor]:
    with AuthActor(store) as accounts:
        yield accounts


@pytest.fixture
def asked(store: DeltaStore, tmp_path: Path) -> Iterator[Asked]:
    table = store.create("people", PEOPLE)
    table.append(people(1, 2))
    cache, clock = SegmentCache(tmp_path / "cache", 1 << 20), Clock()

    def serve(table: Table) -> ServedTable:
        door = SqlDoor(table, lambda: (), lambda _: table)
        return ServedTable(table, Images(table, cache), door, Times(clock, lambda: 1), lambda _: None)

    catalog = OneTable(table, serve, 1)
    yield Asked(Visitors(MountUsers(store), catalog, clock), catalog.served[0], clock)
    cache.close()


def told(auth: AuthActor, store: DeltaStore) -> list[tuple[object, ...]]:
    """Return what the audit log says of the mount."""
    columns = ("user_id", "action", "outcome", "row_count", "details")
    return [tuple(row[name] for name in columns) for row in entries(auth, store) if row["door"] == "nfs"]


def mount_of(actor: Actor) -> bytes:
    return user_mount(b"mnt1", uuid.UUID(actor.session_id), uuid.UUID(actor.id))


def test_the_owner_may_everything_without_anybody_being_asked(asked: Asked) -> None:
    visitors, served = (
        Visitors(None, OneTable(asked.served.table, lambda _: asked.served, 1), asked.clock),
        asked.served,
    )
    visitors.check(OWNERS, served)
    visitors.check_change(OWNERS, Kind.CSV, served)
    visitors.check_same(OWNERS, b"mnt2")
    assert visitors.view(OWNERS, served) is served
    assert visitors.publish(OWNERS, served, lambda _: 7) == 7
    assert visitors.query(OWNERS, served, lambda door: door) is served.door
    assert visitors.shown(OWNERS) is None


def test_what_is_known_of_a_user_is_believed_for_a_second_and_no_longer(
    asked: Asked, auth: AuthActor
) -> None:
    alice = signed_in(auth, "alice")
    auth.grant(alice.id, "people", Right.READ)
    mount, visitors, served = mount_of(alice), asked.visitors, asked.served

    async def act() -> None:
        assert not visitors.is_known(mount)
        await visitors.look(mount)
        visitors.check(mount, served)
        auth.revoke_grant(alice.id, "people")
        asked.clock.now += 0.9
        assert visitors.is_known(mount)
        asked.clock.now += 0.1
        assert not visitors.is_known(mount)
        await visitors.look(mount)
        with pytest.raises(PermissionDeniedError):
            visitors.check(mount, served)
        auth.revoke_session(str(alice.session_id))
        await visitors.look(mount)
        with pytest.raises(AuthenticationFailedError):
            visitors.check(mount, None)

    asked.run(act)


def test_a_commit_looks_anew_whatever_is_believed(asked: Asked, auth: AuthActor) -> None:
    alice = signed_in(auth, "alice")
    auth.grant(alice.id, "people", Right.WRITE)
    mount, visitors, served = mount_of(alice), asked.visitors, asked.served

    async def act() -> None:
        await visitors.look(mount)
        visitors.check_change(mount, Kind.CSV, served)
        auth.disable(alice.id)
        visitors.check_change(mount, Kind.CSV, served)
        with pytest.raises(PermissionDeniedError):
            await asyncio.to_thread(
                visitors.publish, mount, served, lambda _: pytest.fail("it was committed")
            )
        with pytest.raises(PermissionDeniedError):
            await asyncio.to_thread(visitors.query, mount, served, lambda _: pytest.fail("it was run"))

    asked.run(act)


@pytest.mark.parametrize("end", ["logout", "right gone"])
def test_what_is_opened_to_be_read_looks_anew_whatever_is_believed(
    asked: Asked, auth: AuthActor, store: DeltaStore, end: str
) -> None:
    alice = signed_in(auth, "alice")
    auth.grant(alice.id, "people", Right.READ)
    mount, visitors, served = mount_of(alice), asked.visitors, asked.served
    read, unread = Handle(Kind.CSV, mount, table=served.key), Handle(Kind.JSON, mount, table=served.key)
    opened = Opened("version 1", 24, lambda: 2)

    async def act() -> None:
        await visitors.look(mount)
        await visitors.tell(read, served, opened)
        if end == "logout":
            auth.revoke_session(str(alice.session_id))
        else:
            auth.revoke_grant(alice.id, "people")
        visitors.check(mount, served)  # what is believed still says yes
        with pytest.raises(PermissionDeniedError):
            await visitors.tell(unread, served, opened)
        assert visitors.is_told(read, opened)
        assert not visitors.is_told(unread, opened), "no byte of it is handed out"

    asked.run(act)
    assert told(auth, store) == [
        (alice.id, "data_read", "done", 2, "csv of 24 bytes"),
        (alice.id, "permission_denied", "denied", None, "json of 24 bytes; read_table"),
    ]


def test_nothing_is_committed_for_a_user_that_could_not_be_written_down(
    asked: Asked, auth: AuthActor
) -> None:
    alice = signed_in(auth, "alice")
    auth.grant(alice.id, "people", Right.WRITE)
    mount = mount_of(alice)
    asked.visitors.publish(mount, asked.served, lambda _: 1)
    with file_size_limit(0), pytest.raises(AuditWriteFailedError):
        asked.visitors.publish(mount, asked.served, lambda _: pytest.fail("it was committed"))


def test_a_commit_that_is_written_down_late_is_its_users_whatever_the_user_may_do_by_then(
    asked: Asked, auth: AuthActor, store: DeltaStore
) -> None:
    alice = signed_in(auth, "alice")
    auth.grant(alice.id, "people", Right.WRITE)
    mount, visitors, served = mount_of(alice), asked.visitors, asked.served
    commit = Commit(mount, served, version=7, rows=2)

    async def act() -> None:
        with ExitStack() as disk, pytest.raises(AuditWriteFailedError):
            # The disk is full as soon as the commit is made.
            visitors.publish(mount, served, lambda _: disk.enter_context(file_size_limit(0)) or 7)
        auth.disable(alice.id)
        with file_size_limit(0), pytest.raises(AuditWriteFailedError):
            visitors.write_down(commit)
        visitors.write_down(commit)
        visitors.write_down(Commit(OWNERS, served, version=8))

    asked.run(act)
    assert told(auth, store) == [(alice.id, "data_write", "done", 2, "version 7")]


def test_a_user_of_whom_nothing_is_known_is_asked_to_come_again(asked: Asked) -> None:
    nobody = user_mount(b"mnt1", uuid.uuid4(), uuid.uuid4())
    with pytest.raises(NfsError) as caught:
        asked.visitors.check(nobody, asked.served)
    assert caught.value.status is Status.JUKEBOX


def test_a_users_mount_of_what_belongs_to_no_lakehouse_is_refused(tmp_path: Path) -> None:
    table = DeltaStore(str(tmp_path / "lake")).at(str(tmp_path / "elsewhere" / "t")).create(PEOPLE)

    async def act() -> None:
        async with open_file_tree(table, tmp_path / "server", MountOptions()) as opened:
            caller = Caller(1, 0, (), b"machine", "127.0.0.1:700", trusted=True)
            with pytest.raises(AuthenticationFailedError):
                await opened.tree.mount(caller, b"/" + b"A" * TICKET_LENGTH + b"/t")

    asyncio.run(act())
