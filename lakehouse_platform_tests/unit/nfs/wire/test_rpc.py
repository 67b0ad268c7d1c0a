"""RPC calls: who is understood, who is refused and how."""

from __future__ import annotations

import pytest

from lakehouse_platform.nfs.wire.rpc import (
    AcceptStatus,
    AuthStatus,
    Call,
    accepted,
    auth_refused,
    not_accepted,
    pull_call,
)
from lakehouse_platform_tests.support.nfs_client import auth_sys, call_message
from lakehouse_platform_tests.support.nfs_xdr import opaque, u32

NOBODY = u32(0, 0, 0, 0)


def refused(message: bytes) -> tuple[int, ...]:
    reply = pull_call(message)
    assert reply is not None
    assert not isinstance(reply, Call)
    data = b"".join(reply)
    words = tuple(int.from_bytes(data[at : at + 4], "big") for at in range(0, len(data), 4))
    assert words[0] == 0x80000000 | (len(data) - 4)
    return words[1:]


@pytest.mark.parametrize("size", [0, 4, 23])
def test_what_is_too_short_for_a_call_is_no_call(size: int) -> None:
    assert pull_call(call_message(7, 100003, 0, b"", NOBODY)[:size]) is None


def test_a_reply_is_no_call() -> None:
    assert pull_call(u32(7, 1, 0, 0, 0, 0)) is None


def test_another_version_of_rpc_is_told_which_one_is_spoken() -> None:
    assert refused(u32(7, 0, 3, 100003, 3, 0) + NOBODY) == (7, 1, 1, 0, 2, 2)


@pytest.mark.parametrize(
    "credential",
    [
        u32(6, 0),
        u32(0) + opaque(b"junk"),
        u32(1) + opaque(b""),
        u32(1, 0xFFFFFFFF),
        u32(1) + opaque(bytes(404)),
        u32(1) + opaque(u32(0) + opaque(bytes(256)) + u32(0, 0, 0)),
        u32(1) + opaque(u32(0) + opaque(b"host") + u32(0, 0, 17, *range(17))),
        u32(1) + opaque(u32(0) + opaque(b"host") + u32(0, 0, 0xFFFFFFFF)),
        u32(1) + opaque(u32(0) + opaque(b"host") + u32(0, 0, 0, 0)),
    ],
    ids=[
        "kerberos", "AUTH_NONE with a body", "empty", "no body", "too long", "long host name", "17 groups",
        "endless groups", "trailing bytes",
    ],
)  # fmt: skip
def test_a_credential_that_cannot_be_understood_is_refused(credential: bytes) -> None:
    assert refused(call_message(7, 100003, 1, b"", credential + u32(0, 0))) == (
        7,
        1,
        1,
        1,
        AuthStatus.BAD_CREDENTIAL,
    )


@pytest.mark.parametrize("verifier", [u32(1, 0), u32(0, 4, 0), b"", u32(0)])
def test_a_verifier_that_nobody_needs_is_refused(verifier: bytes) -> None:
    credential = auth_sys()[:-8] + verifier
    assert refused(call_message(7, 100003, 1, b"", credential)) == (7, 1, 1, 1, AuthStatus.BAD_VERIFIER)


def test_sixteen_groups_and_a_host_name_of_255_bytes_are_taken() -> None:
    call = pull_call(call_message(7, 100003, 1, b"", auth_sys(bytes(255), 1000, tuple(range(16)))))
    assert isinstance(call, Call)
    assert len(call.credential.gids) == 17


def test_a_reply_is_one_fragment_with_all_pieces_as_they_are() -> None:
    data = memoryview(b"data")
    head, piece = accepted(7, (b"head", data))
    assert head == u32(0x80000000 | 32, 7, 1, 0, 0, 0, 0) + b"head"
    assert piece is data


def test_refusals_have_the_shape_of_rfc_5531() -> None:
    assert b"".join(not_accepted(7, AcceptStatus.PROG_MISMATCH, 3, 3)) == u32(
        0x80000000 | 32, 7, 1, 0, 0, 0, 2, 3, 3
    )
    assert b"".join(not_accepted(7, AcceptStatus.GARBAGE_ARGS)) == u32(0x80000000 | 24, 7, 1, 0, 0, 0, 4)
    assert b"".join(auth_refused(7, AuthStatus.TOO_WEAK)) == u32(0x80000000 | 20, 7, 1, 1, 1, 5)
