"""Calls that must not be carried out twice are remembered, for a while and within a budget."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lakehouse_platform.nfs.replay import CallKey, ReplayCache, key_of
from lakehouse_platform.nfs.wire.rpc import Call, Credential
from lakehouse_platform.nfs.wire.xdr import Unpacker

CALL = Call(7, 100003, 3, 7, Credential(1, 1000, (1000,), b"host"), Unpacker(b"arguments"))
KEY = key_of(CALL, "127.0.0.1")


def test_an_answer_is_found_again_for_two_minutes() -> None:
    cache = ReplayCache[str]()
    assert cache.find(KEY, 0) is None
    cache.finish(KEY, (b"answer",), 0)
    assert cache.find(KEY, 119.9) == (b"answer",)
    assert cache.find(KEY, 120) is None


def test_a_running_call_is_joined_and_never_expires() -> None:
    cache = ReplayCache[str](budget_bytes=0)
    cache.start(KEY, "running")
    cache.finish(replace_xid(8), (b"other",), 1000)
    assert cache.find(KEY, 1001) == "running"
    cache.finish(KEY, (b"answer",), 1002)
    assert cache.find(KEY, 1002) is None


def test_a_call_that_did_nothing_is_forgotten() -> None:
    cache = ReplayCache[str]()
    cache.start(KEY, "running")
    cache.forget(KEY)
    cache.forget(KEY)
    assert cache.find(KEY, 0) is None


def test_the_oldest_answers_go_when_the_budget_is_spent() -> None:
    cache = ReplayCache[str](budget_bytes=10_000)
    for xid in range(1000):
        cache.finish(replace_xid(xid), (bytes(100),), 0)
        assert cache.cost_bytes <= 10_000
    kept = [xid for xid in range(1000) if cache.find(replace_xid(xid), 0)]
    assert kept == list(range(1000 - len(kept), 1000))
    assert len(kept) >= 8


def test_expired_answers_take_no_memory() -> None:
    cache = ReplayCache[str]()
    for second in range(10_000):
        cache.finish(replace_xid(second), (b"answer",), second)
    assert cache.cost_bytes < 121 * 2000


def test_an_answer_given_twice_is_counted_once() -> None:
    cache = ReplayCache[str]()
    cache.finish(KEY, (b"answer",), 0)
    once = cache.cost_bytes
    cache.finish(KEY, (b"answer",), 1)
    assert cache.cost_bytes == once


def replace_xid(xid: int) -> CallKey:
    return KEY._replace(xid=xid)


@pytest.mark.parametrize(
    "other",
    [
        replace(CALL, xid=8),
        replace(CALL, program=1),
        replace(CALL, procedure=8),
        replace(CALL, credential=replace(CALL.credential, machine=b"other")),
        replace(CALL, credential=replace(CALL.credential, uid=0)),
        replace(CALL, arguments=Unpacker(b"argumentS")),
        replace(CALL, arguments=Unpacker(b"arguments\0")),
    ],
)
def test_calls_that_differ_in_anything_are_different(other: Call) -> None:
    assert key_of(other, "127.0.0.1") != KEY


def test_another_host_is_another_client() -> None:
    assert key_of(CALL, "127.0.0.2") != KEY


@pytest.mark.parametrize("at", [0, 4095, 1 << 20])
def test_either_end_of_a_long_write_tells_it_apart(at: int) -> None:
    data = bytearray(1 + (1 << 20))
    before = key_of(replace(CALL, arguments=Unpacker(bytes(data))), "host")
    data[at] = 1
    assert key_of(replace(CALL, arguments=Unpacker(bytes(data))), "host") != before
