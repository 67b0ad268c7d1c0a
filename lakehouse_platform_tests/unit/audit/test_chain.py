from __future__ import annotations

import hashlib
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from lakehouse_platform.audit.chain import GENESIS, ChainFields, commitment, entry_hash, extend
from lakehouse_platform.audit.entries import AuditEntry, Recorded, take
from lakehouse_platform.model.actions import ActionType

FIELDS = ChainFields(
    sequence=1,
    audit_id="a",
    timestamp="t",
    action="login",
    outcome="done",
    resource=None,
    row_count=None,
    door="python",
    request_id=None,
    commitment="c",
)


def _recorded(number: int) -> Recorded:
    entry = AuditEntry(action=ActionType.LOGIN, user_id=f"user {number}")
    return take(
        entry, lambda: datetime(2026, 2, 1, tzinfo=UTC), lambda: f"id {number}", lambda: bytes([number]) * 16
    )


def _field(text: bytes) -> bytes:
    return b"\x01" + len(text).to_bytes(8, "big") + text


def test_an_entrys_hash_is_the_documented_one() -> None:
    fields = (b"1", b"a", b"t", b"login", b"done", None, None, b"python", None, b"c")
    written = b"".join(b"\x00" if one is None else _field(one) for one in fields)
    assert (
        entry_hash(bytes(32), FIELDS) == hashlib.sha256(b"lakehouse-audit-1" + bytes(32) + written).digest()
    )


def test_a_commitment_is_the_documented_one() -> None:
    expected = hashlib.sha256(b"salt" + _field(b"u") + b"\x00" + _field(b"")).digest()
    assert commitment(b"salt", "u", None, "") == expected


@pytest.mark.parametrize("name", ChainFields.__dataclass_fields__)
def test_every_field_changes_the_hash(name: str) -> None:
    other = 2 if name in {"sequence", "row_count"} else "other"
    assert entry_hash(bytes(32), replace(FIELDS, **{name: other})) != entry_hash(bytes(32), FIELDS)


def test_the_hash_before_changes_the_hash() -> None:
    assert entry_hash(b"\x01" + bytes(31), FIELDS) != entry_hash(bytes(32), FIELDS)


def test_null_is_not_the_empty_text() -> None:
    assert entry_hash(bytes(32), replace(FIELDS, resource="")) != entry_hash(bytes(32), FIELDS)
    assert commitment(b"s", "u", None, None) != commitment(b"s", "u", "", None)


def test_text_does_not_move_from_one_field_to_the_next() -> None:
    assert commitment(b"s", "ab", "c", None) != commitment(b"s", "a", "bc", None)


def test_a_chain_can_be_made_in_parts() -> None:
    entries = [_recorded(number) for number in range(5)]
    whole = extend(GENESIS, entries)
    first = extend(GENESIS, entries[:2])
    assert first + extend(first[-1].head, entries[2:]) == whole
    assert [link.sequence for link in whole] == [1, 2, 3, 4, 5]


def test_the_same_entries_in_another_order_end_in_another_hash() -> None:
    one, two = _recorded(1), _recorded(2)
    assert extend(GENESIS, [one, two])[-1].head != extend(GENESIS, [two, one])[-1].head
