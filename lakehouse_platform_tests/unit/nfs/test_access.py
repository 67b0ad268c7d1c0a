"""Who is let into the mount, and with which rights."""

from __future__ import annotations

import os
import socket
import sys

import pytest

from lakehouse_platform.model.origin import Door, Origin
from lakehouse_platform.nfs.access import Access, granted
from lakehouse_platform.nfs.operations import Access as Right
from lakehouse_platform.nfs.operations import Caller, NfsError, Status
from lakehouse_platform_tests.unit.nfs.connections import connected, connected_by_stranger

OWNER, STRANGER = 1000, 1001
ALL = Right.READ | Right.LOOKUP | Right.MODIFY | Right.EXTEND | Right.DELETE | Right.EXECUTE
# RFC 5737 keeps this address for examples: no machine has it.
ELSEWHERE = ("192.0.2.1", 700)


def caller(uid: int | None, *, trusted: bool = True, flavor: int = 1) -> Caller:
    return Caller(flavor, uid, (), b"machine", "127.0.0.1:700", trusted)


def is_let_in(access: Access, who: Caller) -> bool:
    try:
        access.origin(who)
    except NfsError as error:
        return error.status is not Status.ACCES
    return True


@pytest.mark.parametrize("uid", [OWNER, 0])
def test_the_owner_and_root_act_as_the_owner_through_this_door(uid: int) -> None:
    assert Access(uid=OWNER).origin(caller(uid)) == Origin(actor="owner", door=Door.NFS)


def test_other_users_are_let_in_only_if_they_may() -> None:
    assert not is_let_in(Access(uid=OWNER), caller(STRANGER))
    assert is_let_in(Access(uid=OWNER, allow_other=True), caller(STRANGER))


@pytest.mark.parametrize("allow_other", [False, True])
def test_who_does_not_say_who_they_are_is_not_let_in(allow_other: bool) -> None:
    access = Access(uid=OWNER, allow_other=allow_other)
    assert not is_let_in(access, caller(None, flavor=0))
    assert not is_let_in(access, caller(OWNER, flavor=6))


@pytest.mark.parametrize("allow_other", [False, True])
@pytest.mark.parametrize("uid", [0, OWNER, STRANGER])
def test_nothing_is_believed_that_comes_over_another_users_connection(uid: int, allow_other: bool) -> None:
    assert not is_let_in(Access(uid=OWNER, allow_other=allow_other), caller(uid, trusted=False))


def test_another_admission_decides_who_acts() -> None:
    class ByUid:
        def admit(self, caller: Caller) -> Origin:
            return Origin(actor=f"user-{caller.uid}", door=Door.NFS)

    access = Access(ByUid(), uid=OWNER)
    assert access.origin(caller(STRANGER)).actor == "user-1001"
    assert not is_let_in(access, caller(STRANGER, trusted=False))


# ── Connections ──


def trusts(access: Access, server: socket.socket) -> bool:
    return access.is_trusted(server.getpeername(), server.getsockname())


def test_our_own_connection_is_trusted() -> None:
    with connected() as (server, _):
        assert trusts(Access(), server)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("access", [Access(), Access(allow_other=True), Access(allow_remote=True)])
def test_root_claimed_over_another_users_connection_gets_nothing(access: Access) -> None:
    with connected_by_stranger() as (server, _):
        trusted = trusts(access, server)
    assert not is_let_in(access, caller(0, trusted=trusted))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells")
def test_a_connection_that_is_gone_is_not_trusted() -> None:
    with connected() as (server, client):
        peer, local = server.getpeername(), server.getsockname()
        client.close()
        assert not Access().is_trusted(peer, local)


def test_other_machines_are_trusted_only_if_they_may_be() -> None:
    local = ("192.0.2.2", 12049)
    assert not Access().is_trusted(ELSEWHERE, local)
    assert Access(allow_remote=True).is_trusted(ELSEWHERE, local)
    v6 = ("2001:db8::1", 700, 0, 0), ("2001:db8::2", 12049, 0, 0)
    assert Access(allow_remote=True).is_trusted(*v6)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells")
def test_a_user_of_this_machine_is_not_another_machine_whatever_address_they_use() -> None:
    access = Access(allow_remote=True)
    # No such connections exist: of a user here it is not believed that they do.
    assert not access.is_trusted(("127.0.0.7", 700), ("127.0.0.1", 12049))
    assert not access.is_trusted(("192.0.2.2", 700), ("192.0.2.2", 12049))
    with connected() as (server, _):
        assert trusts(access, server)


# ── What files show ──


@pytest.mark.parametrize(
    ("allow_other", "modes"),
    [(False, (0o600, 0o400, 0o700, 0o500)), (True, (0o644, 0o444, 0o755, 0o555))],
)
def test_files_show_to_whom_they_are_open(allow_other: bool, modes: tuple[int, ...]) -> None:
    access = Access(uid=OWNER, gid=8, allow_other=allow_other)
    files = [access.file_mode(writable=writable) for writable in (True, False)]
    directories = [access.directory_mode(writable=writable) for writable in (True, False)]
    assert (*files, *directories) == modes
    assert (access.uid, access.gid) == (OWNER, 8)


def test_files_belong_to_the_servers_user_unless_told_otherwise() -> None:
    assert (Access().uid, Access().gid) == (os.getuid(), os.getgid())


def test_rights_follow_from_what_a_file_is() -> None:
    assert granted(ALL, directory=False, writable=False) == Right.READ
    assert granted(ALL, directory=False, writable=True) == Right.READ | Right.MODIFY | Right.EXTEND
    assert granted(ALL, directory=True, writable=False) == Right.READ | Right.LOOKUP
    assert granted(ALL, directory=True, writable=True) == ALL & ~Right.EXECUTE
    assert granted(ALL, directory=False, writable=False, executable=True) == Right.READ | Right.EXECUTE
    assert granted(Right.MODIFY, directory=False, writable=False) == Right(0)
