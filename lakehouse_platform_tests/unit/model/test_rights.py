"""Scopes: what they are written like, and what they leave of a right."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse_platform.errors import InvalidArgumentError, InvalidNameError
from lakehouse_platform.model.rights import EVERY_TABLE, READ_EVERY_TABLE, Right, Scopes

NAMES = st.sampled_from(["rides", "towns", "a.b-c_d", EVERY_TABLE])
TEXTS = st.one_of(st.just("admin"), st.builds("{}:{}".format, st.sampled_from(Right), NAMES))


def test_scopes_are_read_from_one_text_or_several() -> None:
    scopes = Scopes.parse("write:rides read:* admin")
    assert scopes == Scopes.parse(["admin", "read:*", "write:rides"])
    assert scopes == Scopes((("*", Right.READ), ("rides", Right.WRITE)), administration=True)
    assert (scopes.texts(), str(scopes)) == (["read:*", "write:rides", "admin"], "read:* write:rides admin")


@given(st.lists(TEXTS, min_size=1, max_size=20))
def test_what_is_written_is_read_again(texts: list[str]) -> None:
    scopes = Scopes.parse(texts)
    assert Scopes.parse(str(scopes)) == scopes
    assert scopes.administration == ("admin" in texts)


@pytest.mark.parametrize(
    "texts",
    [
        "", [], " ", ["rides"], ["read"], ["own:rides"], ["READ:rides"], ["Admin"], [":rides"], ["admin:rides"],
        ["read:rides", ""], ["read:rides"] * 101,
    ],
)  # fmt: skip
def test_what_is_no_scope_is_refused(texts: str | list[str]) -> None:
    with pytest.raises(InvalidArgumentError):
        Scopes.parse(texts)


@pytest.mark.parametrize(
    "text", ["read:", "read:../users", "read:a/b", "read:**", "read:a b", "write:rides:x"]
)
def test_a_scope_is_on_what_can_be_a_table(text: str) -> None:
    with pytest.raises(InvalidNameError):
        Scopes.parse([text])


def test_the_stronger_of_two_scopes_on_a_table_counts() -> None:
    for texts in (["write:rides", "read:rides"], ["read:rides", "write:rides"]):
        assert Scopes.parse(texts).tables == (("rides", Right.WRITE),)
    assert Scopes.parse("read:rides maintain:*").narrowed(Right.MAINTAIN, "rides") is Right.MAINTAIN


@pytest.mark.parametrize("right", [*Right, None])
def test_a_scope_takes_away_and_never_gives(right: Right | None) -> None:
    scopes = Scopes.parse("write:rides")
    least = {None: None, Right.READ: Right.READ, Right.WRITE: Right.WRITE, Right.MAINTAIN: Right.WRITE}
    assert scopes.narrowed(right, "rides") is least[right]
    assert scopes.narrowed(right, "rides2") is None
    assert scopes.narrowed(right, EVERY_TABLE) is None
    assert Scopes().narrowed(right, "rides") is None


def test_a_key_for_which_nothing_is_asked_reads() -> None:
    assert Scopes.parse("read:*") == READ_EVERY_TABLE
    assert READ_EVERY_TABLE.narrowed(Right.MAINTAIN, "rides") is Right.READ
