"""Answers of calls that must not be carried out twice, kept for clients that ask again (RFC 1813 §4.5).

A client that gets no answer, or loses its connection, sends the same call with the same transaction id again, perhaps
from another port. Pure: time is an argument, and what a running call is waited for with is the engine's business.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Generic, NamedTuple, TypeVar
from zlib import crc32

from lakehouse_platform.nfs.wire.rpc import Call, Reply

_Running = TypeVar("_Running")

_TTL_SECONDS = 120.0  # two of Linux' 60 s retransmission timeouts over TCP
_BUDGET_BYTES = 16 << 20
_ENTRY_OVERHEAD = 512  # key and dictionary slot, measured at 420 bytes with tracemalloc on CPython 3.11
_DIGESTED = 4096


class CallKey(NamedTuple):
    """What makes two calls the same call.

    One address can stand for several machines, and a machine for several users, each with a client of its own; those
    that choose the same transaction id are told apart by what they ask.
    """

    host: str
    machine: bytes
    uid: int | None
    xid: int
    program: int
    procedure: int
    size: int
    digest: int

    def to_bytes(self) -> bytes:
        """Return a digest of the key that is the same in every process."""
        return blake2b(repr(tuple(self)).encode(), digest_size=16).digest()


def key_of(call: Call, host: str) -> CallKey:
    """Return a call's key.

    Args:
        call: The call, its arguments not yet taken apart.
        host: The client's address without its port, which changes when it connects again.
    """
    credential, arguments = call.credential, call.arguments.rest()
    # Both ends of a long WRITE: its handle, place and data; all of it would cost 0.3 ms per MiB.
    digest = crc32(arguments[-_DIGESTED:], crc32(arguments[:_DIGESTED]))
    return CallKey(
        host,
        credential.machine,
        credential.uid,
        call.xid,
        call.program,
        call.procedure,
        len(arguments),
        digest,
    )


@dataclass(frozen=True, slots=True)
class _Done:
    reply: Reply
    expires: float
    cost: int


class ReplayCache(Generic[_Running]):
    """Remembers calls while they run and for two minutes after, within a budget of bytes."""

    def __init__(self, budget_bytes: int = _BUDGET_BYTES, ttl_seconds: float = _TTL_SECONDS) -> None:
        self._budget = budget_bytes
        self._ttl = ttl_seconds
        self._running: dict[CallKey, _Running] = {}
        self._done: dict[CallKey, _Done] = {}  # in the order in which they expire
        self._cost = 0

    @property
    def cost_bytes(self) -> int:
        """What the remembered answers take."""
        return self._cost

    def find(self, key: CallKey, now: float) -> Reply | _Running | None:
        """Return the answer of the same call, or what it can be waited for with, or None for a new call."""
        running = self._running.get(key)
        if running is not None:
            return running
        done = self._done.get(key)
        return done.reply if done and done.expires > now else None

    def start(self, key: CallKey, running: _Running) -> None:
        """Note that a call is being carried out."""
        self._running[key] = running

    def forget(self, key: CallKey) -> None:
        """Note that a call ended without having done anything, so that it may be tried again."""
        self._running.pop(key, None)

    def finish(self, key: CallKey, reply: Reply, now: float) -> None:
        """Keep a call's answer."""
        self._running.pop(key, None)
        self._drop(key)
        cost = sum(map(len, reply)) + _ENTRY_OVERHEAD
        self._done[key] = _Done(reply, now + self._ttl, cost)
        self._cost += cost
        self._evict(now)

    def _evict(self, now: float) -> None:
        while self._done:
            oldest = next(iter(self._done))
            if self._cost <= self._budget and self._done[oldest].expires > now:
                return
            self._drop(oldest)

    def _drop(self, key: CallKey) -> None:
        done = self._done.pop(key, None)
        if done:
            self._cost -= done.cost
