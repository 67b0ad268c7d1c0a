"""CSV text into records that know their line: for headers, samples and the places of errors.

The rules are those of the fast reader (pyarrow): a quote opens a quoted field only at the field's start, `""`
inside is one quote, and text after the closing quote belongs to the field.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache

from lakehouse_platform.errors import SourceFormatError


@dataclass(frozen=True, slots=True)
class Value:
    """One field of a record: its text and whether it was quoted, which tells "" from NULL."""

    text: str
    quoted: bool

    @property
    def is_null(self) -> bool:
        """Whether the field is empty and unquoted."""
        return not (self.text or self.quoted)


@dataclass(frozen=True, slots=True)
class Record:
    """One record: the number of its first line (from 1) and its raw text without the line's end."""

    line: int
    raw: str

    def values(self, delimiter: str) -> list[Value]:
        """Return the record's fields."""
        if '"' not in self.raw:
            return [Value(text, quoted=False) for text in self.raw.split(delimiter)]
        return list(_split(self.raw, delimiter))


def records(lines: Iterable[str], delimiter: str) -> Iterator[Record]:
    """Yield the records of lines that still have their ends.

    Raises:
        SourceFormatError: A quoted field is still open at the end.
    """
    numbered = iter(enumerate(lines, 1))
    for number, line in numbered:
        raw = line
        while '"' in line and not _is_whole(raw, delimiter):
            rest = _until_quote(numbered)
            if rest is None:
                raise SourceFormatError(
                    f"Line {number}: a quoted field that begins here is never closed: "
                    'add the closing quote, or write a quote inside a field as "".',
                    line=number,
                )
            raw += rest
        yield Record(number, raw.rstrip("\r\n") if raw[-1:] in "\r\n" else raw)


def _until_quote(numbered: Iterator[tuple[int, str]]) -> str | None:
    parts: list[str] = []
    for _, line in numbered:
        parts.append(line)
        if '"' in line:
            return "".join(parts)
    return None


@cache
def _patterns(delimiter: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    end = re.escape(delimiter)
    return re.compile(rf'"((?:[^"]|"")*)"([^{end}\r\n]*)'), re.compile(rf"[^{end}\r\n]*")


def _is_whole(raw: str, delimiter: str) -> bool:
    try:
        for _ in _split(raw, delimiter):
            pass
    except _OpenQuote:
        return False
    return True


class _OpenQuote(Exception):  # noqa: N818 - a signal inside this module, not an error
    pass


def _split(raw: str, delimiter: str) -> Iterator[Value]:
    quoted, plain = _patterns(delimiter)
    position = 0
    while True:
        match = (quoted if raw.startswith('"', position) else plain).match(raw, position)
        if match is None:
            raise _OpenQuote
        yield _value(match)
        position = match.end()
        if not raw.startswith(delimiter, position):
            return
        position += 1


def _value(match: re.Match[str]) -> Value:
    if match.re.groups == 0:
        return Value(match[0], quoted=False)
    return Value(match[1].replace('""', '"') + match[2], quoted=True)
