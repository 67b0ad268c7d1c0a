"""The hash chain: pure functions from the fields of an entry to its commitment and its hash.

Each entry's hash covers the hash of the entry before it, so that nothing can be changed, removed, added or moved
without changing every later hash. The personal fields enter only through a commitment, a hash salted by random bytes
that stand in the entry itself. An erasure empties the personal fields and the salt: the chain still holds, and without
the salt nobody can find out by trying which texts the commitment hides.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from lakehouse_platform.audit.entries import Recorded

# Names the encoding: a change of it gets another number, so that no entry can be read in two ways.
_ENTRY_TAG = b"lakehouse-audit-1"
_ABSENT, _PRESENT = b"\x00", b"\x01"
_LENGTH_BYTES = 8


@dataclass(frozen=True, slots=True)
class Head:
    """The end of a chain.

    Attributes:
        sequence: Number of its last entry; 0 before the first.
        hash: That entry's hash: 32 bytes.
    """

    sequence: int
    hash: bytes


GENESIS = Head(0, bytes(32))


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainFields:
    """What an entry's hash covers besides the hash before it, all as the table holds it.

    Attributes:
        sequence: Place in the chain, from 1.
        audit_id: The entry's id.
        timestamp: RFC 3339 time.
        action: Kind of action.
        outcome: How it ended.
        resource: What was acted on.
        row_count: Rows read or written.
        door: The front end.
        request_id: The request it belongs to.
        commitment: Hex of the commitment to the personal fields.
    """

    sequence: int | None
    audit_id: str | None
    timestamp: str | None
    action: str | None
    outcome: str | None
    resource: str | None
    row_count: int | None
    door: str | None
    request_id: str | None
    commitment: str | None


@dataclass(frozen=True, slots=True)
class Chained:
    """An entry in its place.

    Attributes:
        recorded: The entry.
        sequence: Its place, from 1.
        commitment: To its personal fields.
        hash: Its hash.
    """

    recorded: Recorded
    sequence: int
    commitment: bytes
    hash: bytes

    @property
    def head(self) -> Head:
        """The chain's end when this is its last entry."""
        return Head(self.sequence, self.hash)


def commitment(salt: bytes, user_id: str | None, details: str | None, ip_address: str | None) -> bytes:
    """Return the commitment to the personal fields: 32 bytes that tell nothing without the salt."""
    return hashlib.sha256(b"".join([salt, _text(user_id), _text(details), _text(ip_address)])).digest()


def entry_hash(previous: bytes, fields: ChainFields) -> bytes:
    """Return an entry's hash: 32 bytes.

    Args:
        previous: The hash of the entry before it; 32 zero bytes for the first.
        fields: What the entry says.
    """
    parts = [
        _number(fields.sequence), _text(fields.audit_id), _text(fields.timestamp), _text(fields.action),
        _text(fields.outcome), _text(fields.resource), _number(fields.row_count), _text(fields.door),
        _text(fields.request_id), _text(fields.commitment),
    ]  # fmt: skip
    return hashlib.sha256(b"".join([_ENTRY_TAG, previous, *parts])).digest()


def extend(head: Head, entries: Iterable[Recorded]) -> list[Chained]:
    """Return the entries chained to the end of a chain, in their order."""
    chained: list[Chained] = []
    for recorded in entries:
        link = _next(head, recorded)
        chained.append(link)
        head = link.head
    return chained


def _next(head: Head, recorded: Recorded) -> Chained:
    entry, sequence = recorded.entry, head.sequence + 1
    hidden = commitment(bytes.fromhex(recorded.salt), entry.user_id, entry.details, entry.ip_address)
    fields = ChainFields(
        sequence=sequence,
        audit_id=recorded.audit_id,
        timestamp=recorded.timestamp,
        action=entry.action.value,
        outcome=entry.outcome.value,
        resource=entry.resource,
        row_count=entry.row_count,
        door=entry.door.value,
        request_id=entry.request_id,
        commitment=hidden.hex(),
    )
    return Chained(recorded, sequence, hidden, entry_hash(head.hash, fields))


def _number(value: int | None) -> bytes:
    return _text(None if value is None else str(value))


def _text(value: str | None) -> bytes:
    """Return a field so that no two lists of fields give the same bytes; NULL is not the empty text."""
    if value is None:
        return _ABSENT
    data = value.encode()
    return _PRESENT + len(data).to_bytes(_LENGTH_BYTES, "big") + data
