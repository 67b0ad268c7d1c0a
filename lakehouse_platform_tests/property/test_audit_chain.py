"""The chain, against every way to change it."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import assume, given
from hypothesis import strategies as st

from lakehouse_platform.audit.chain import GENESIS, ChainFields, commitment, entry_hash, extend
from lakehouse_platform.audit.entries import AuditEntry, Recorded, take
from lakehouse_platform.model.actions import ActionType, Outcome
from lakehouse_platform.model.origin import Door

_TEXT = st.text(st.characters(codec="utf-8"), max_size=20)
_OPTIONAL = st.none() | _TEXT
_NUMBER = st.none() | st.integers(0, 2**63 - 1)
ENTRIES = st.builds(
    AuditEntry,
    action=st.sampled_from(ActionType),
    user_id=_TEXT.filter(bool),
    details=_OPTIONAL,
    resource=_OPTIONAL,
    row_count=_NUMBER,
    duration_ms=st.none() | st.floats(0, 1e12),
    ip_address=_OPTIONAL,
    outcome=st.sampled_from(Outcome),
    door=st.sampled_from(Door),
    request_id=_OPTIONAL,
)
FIELDS = st.builds(
    ChainFields,
    sequence=_NUMBER,
    audit_id=_OPTIONAL,
    timestamp=_OPTIONAL,
    action=_OPTIONAL,
    outcome=_OPTIONAL,
    resource=_OPTIONAL,
    row_count=_NUMBER,
    door=_OPTIONAL,
    request_id=_OPTIONAL,
    commitment=_OPTIONAL,
)


@given(ENTRIES)
def test_any_entry_survives_the_journal(entry: AuditEntry) -> None:
    recorded = take(entry)
    assert Recorded.from_bytes(recorded.to_bytes()) == recorded


@given(FIELDS, FIELDS)
def test_different_fields_have_different_hashes(one: ChainFields, other: ChainFields) -> None:
    assume(one != other)
    assert entry_hash(bytes(32), one) != entry_hash(bytes(32), other)


@given(FIELDS, st.sampled_from(sorted(ChainFields.__dataclass_fields__)), _TEXT)
def test_a_change_of_one_field_alone_changes_the_hash(fields: ChainFields, name: str, text: str) -> None:
    value = len(text) if name in {"sequence", "row_count"} else text
    changed = replace(fields, **{name: value})
    assert (entry_hash(bytes(32), changed) == entry_hash(bytes(32), fields)) == (changed == fields)


_PERSONAL = st.tuples(_TEXT, _OPTIONAL, _OPTIONAL)


@given(_PERSONAL, _PERSONAL, st.binary(min_size=16, max_size=16))
def test_a_commitment_is_to_one_set_of_personal_fields(
    one: tuple[str, str | None, str | None], other: tuple[str, str | None, str | None], salt: bytes
) -> None:
    assert (commitment(salt, *one) == commitment(salt, *other)) == (one == other)


@given(st.lists(ENTRIES, min_size=1, max_size=6), st.data())
def test_a_chain_does_not_depend_on_how_it_is_cut_into_batches(
    entries: list[AuditEntry], data: st.DataObject
) -> None:
    recorded = [take(entry) for entry in entries]
    cut = data.draw(st.integers(0, len(recorded)))
    first = extend(GENESIS, recorded[:cut])
    middle = first[-1].head if first else GENESIS
    assert first + extend(middle, recorded[cut:]) == extend(GENESIS, recorded)


@given(st.lists(ENTRIES, min_size=2, max_size=6), st.data())
def test_a_chain_without_an_entry_or_in_another_order_ends_otherwise(
    entries: list[AuditEntry], data: st.DataObject
) -> None:
    recorded = [take(entry) for entry in entries]
    end = extend(GENESIS, recorded)[-1].head
    gone = data.draw(st.integers(0, len(recorded) - 1))
    assert extend(GENESIS, recorded[:gone] + recorded[gone + 1 :])[-1].head != end
    order = data.draw(st.permutations(range(len(recorded))))
    assume(list(order) != sorted(order))
    assert extend(GENESIS, [recorded[place] for place in order])[-1].head != end
