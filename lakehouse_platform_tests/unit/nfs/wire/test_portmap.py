"""The port mapper: everything is at the server's own port, over TCP."""

from __future__ import annotations

import pytest

from lakehouse_platform.nfs.operations import Status
from lakehouse_platform.nfs.wire.portmap import Portmap2, program
from lakehouse_platform.nfs.wire.xdr import MALFORMED, Unpacker
from lakehouse_platform_tests.support.nfs_xdr import u32

MAPPER = program(2049)


@pytest.mark.parametrize(
    ("wanted", "port"),
    [
        ((100003, 3, 6), 2049),
        ((100005, 3, 6), 2049),
        ((100000, 2, 6), 2049),
        ((100003, 3, 17), 0),
        ((100003, 4, 6), 0),
        ((100021, 4, 6), 0),
    ],
    ids=["NFS", "MOUNT", "itself", "UDP", "NFS 4", "locks"],
)
def test_a_program_is_where_it_is_and_nowhere_else(wanted: tuple[int, int, int], port: int) -> None:
    getport = MAPPER.procedures[Portmap2.GETPORT]
    arguments = getport.pull(Unpacker(u32(*wanted, 0)))
    assert b"".join(getport.push(arguments, None, b"")) == u32(port)


def test_all_programs_are_listed() -> None:
    told = b"".join(MAPPER.procedures[Portmap2.DUMP].push((), None, b""))
    assert told == u32(
        1, 100000, 2, 6, 2049, 1, 100003, 3, 6, 2049, 1, 100005, 3, 6, 2049, 0
    )  # fmt: skip


def test_it_answers_callers_without_a_name() -> None:
    assert MAPPER.is_public


def test_malformed_questions_and_refusals() -> None:
    with pytest.raises(MALFORMED):
        MAPPER.procedures[Portmap2.GETPORT].pull(Unpacker(u32(1, 2, 3)))
    for procedure in MAPPER.procedures.values():
        assert b"".join(procedure.refuse(Status.IO)) == u32(0)
