"""MOUNT: paths in, handles out, and only the statuses that its clients know."""

from __future__ import annotations

import pytest

from lakehouse_platform.nfs.operations import ExportEntry, Mounted, NfsError, Status
from lakehouse_platform.nfs.wire.mount3 import PROGRAM, Mount3
from lakehouse_platform.nfs.wire.xdr import MALFORMED, Unpacker
from lakehouse_platform_tests.support.nfs_xdr import opaque, u32


def pushed(procedure: Mount3, result: object) -> bytes:
    return b"".join(PROGRAM.procedures[procedure].push((), result, b""))


def test_a_mount_is_told_its_handle_and_that_auth_sys_is_taken() -> None:
    assert pushed(Mount3.MNT, Mounted(b"handle")) == u32(0) + opaque(b"handle") + u32(1, 1)


def test_exports_are_listed_with_their_groups() -> None:
    told = pushed(Mount3.EXPORT, [ExportEntry(b"/lake"), ExportEntry(b"/one", (b"all",))])
    lake = u32(1) + opaque(b"/lake") + u32(0)
    one = u32(1) + opaque(b"/one") + u32(1) + opaque(b"all") + u32(0)
    assert told == lake + one + u32(0)


def test_the_other_procedures_say_nothing() -> None:
    assert pushed(Mount3.DUMP, None) == u32(0)
    assert pushed(Mount3.UMNT, None) == pushed(Mount3.UMNTALL, None) == b""


@pytest.mark.parametrize("status", set(Status) - {Status.OK})
def test_every_refusal_is_one_that_mount_knows(status: Status) -> None:
    known = {1, 2, 5, 13, 20, 22, 63, 10004, 10006}
    (told,) = PROGRAM.procedures[Mount3.MNT].refuse(status)
    assert int.from_bytes(told, "big") in known
    if status in known:
        assert told == u32(status)


def test_procedures_without_a_status_stay_well_formed_when_they_fail() -> None:
    for procedure, told in (
        (Mount3.EXPORT, u32(0)),
        (Mount3.DUMP, u32(0)),
        (Mount3.UMNT, b""),
        (Mount3.UMNTALL, b""),
    ):
        assert b"".join(PROGRAM.procedures[procedure].refuse(Status.IO)) == told


def test_a_path_of_more_than_1024_bytes_is_too_long() -> None:
    with pytest.raises(NfsError) as caught:
        PROGRAM.procedures[Mount3.MNT].pull(Unpacker(opaque(bytes(1025))))
    assert caught.value.status is Status.NAMETOOLONG
    with pytest.raises(MALFORMED):
        PROGRAM.procedures[Mount3.MNT].pull(Unpacker(opaque(bytes(70_000))))
