"""User names and e-mail addresses: which are allowed, and which are the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse_platform.errors import InvalidNameError
from lakehouse_platform.identity.names import check_username, email_key, login_key, normal_email, username_key


@pytest.mark.parametrize("name", ["abc", "Jakob.Bernoulli", "a_b-c.9", "x" * 64, " spaces-around "])
def test_a_username_is_kept_as_it_is_written(name: str) -> None:
    assert check_username(name) == name.strip()


@pytest.mark.parametrize(
    "name", ["", "ab", "x" * 65, "a b", "a@b", "é-accent", "a/../b", "tab\tbed", "a\0b", "\u0430bc", "x'--"]
)
def test_other_usernames_are_refused(name: str) -> None:
    with pytest.raises(InvalidNameError, match="3 to 64"):
        check_username(name)


def test_capitals_make_no_other_user() -> None:
    assert username_key("Euler") == username_key(" eULER ")
    assert username_key("Euler") != username_key("Euler2")


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("  Leonhard.Euler@Basel.Example ", "Leonhard.Euler@basel.example"),
        ("a+b@x.co", "a+b@x.co"),
        ("o'brien@example.com", "o'brien@example.com"),
        ("name@BÜCHER.example", "name@xn--bcher-kva.example"),
        ("cafe\u0301@example.com", "caf\u00e9@example.com"),
    ],
)
def test_an_address_is_kept_in_one_form(written: str, kept: str) -> None:
    assert normal_email(written) == kept
    assert normal_email(kept) == kept
    assert email_key(written) == email_key(kept) == email_key(kept.upper())


@pytest.mark.parametrize(
    "text",
    ["", "@", "a", "a@", "@b.c", "a@b", "a b@c.de", "a@b@", "a@b..c", "a@-b.de", "a@b-.de", ".a@b.de", "a..b@c.de",
     "x" * 65 + "@b.de", "a@" + "b" * 64 + ".de", "a@" + "b." * 130 + "de", "a@b.de\nBcc: c@d.ef",
     '"a b"@c.de', "a@b.d\0"],
)  # fmt: skip
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(InvalidNameError, match=r"name@example\.com"):
        normal_email(text)


def test_an_address_in_other_forms_of_the_same_letters_is_the_same() -> None:
    assert len({email_key(f"{name}@b.de") for name in ("alice", "ａｌｉｃｅ", "ALICE", "𝐚𝐥𝐢𝐜𝐞")}) == 1
    assert email_key("kim@b.de") == email_key("\u212aim@b.de")
    assert email_key("kim@b.de") != email_key("kim2@b.de")


def test_a_key_tells_no_name_and_kinds_do_not_mix() -> None:
    assert len({username_key("abc"), login_key("abc"), email_key("abc@d.ef")}) == 3
    assert all(len(key) == 64 for key in (username_key("abc"), login_key("abc")))


def test_failures_are_counted_under_one_name_however_it_is_typed() -> None:
    assert login_key(" Euler@X.de") == login_key("euler@x.DE ")
    assert login_key("\ud800") != login_key("x")


@given(st.text())
def test_any_text_is_an_address_or_is_refused(text: str) -> None:
    try:
        kept = normal_email(text)
    except InvalidNameError:
        return
    assert normal_email(kept) == kept


@given(st.text())
def test_any_text_can_be_counted(text: str) -> None:
    assert len(login_key(text)) == 64
