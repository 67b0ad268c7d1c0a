from __future__ import annotations

import io
import sys

import click
import pytest

from lakehouse_platform.cli.passwords import known_password, new_password, piped_line


def pipe(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


def test_each_password_is_a_line_without_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe(monkeypatch, " blanks count \r\nzweites Gehölz\nlast".encode())
    assert known_password("One", from_stdin=True) == " blanks count "
    assert new_password("Two", from_stdin=True) == "zweites Gehölz"
    assert piped_line("Three") == "last"
    with pytest.raises(click.UsageError, match="Four: standard input holds none"):
        piped_line("Four")


def test_an_endless_line_is_not_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe(monkeypatch, b"x" * 100_000)
    with pytest.raises(click.UsageError, match="longer than 4096 bytes"):
        piped_line("Password")


def test_what_is_no_text_is_refused_without_being_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe(monkeypatch, b"geheim\xff\n")
    with pytest.raises(click.UsageError, match="UTF-8") as refused:
        piped_line("Password")
    assert "geheim" not in str(refused.value)
    assert refused.value.__suppress_context__


@pytest.mark.parametrize("ask", [known_password, new_password])
def test_nobody_is_asked_where_nobody_can_type(monkeypatch: pytest.MonkeyPatch, ask: object) -> None:
    pipe(monkeypatch, b"unasked\n")
    with pytest.raises(click.UsageError, match="--password-stdin"):
        ask("Password", from_stdin=False)  # type: ignore[operator]
