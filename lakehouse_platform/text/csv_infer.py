"""What a CSV file holds, judged from its texts: delimiter, column names, column types.

A column is whole numbers, else decimals, else booleans, else text, but never so that a value would change:
leading zeros, a plus sign and numbers too large for the type make it text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lakehouse_platform.errors import SourceFormatError
from lakehouse_platform.text.csv_records import Record, Value, records

DELIMITERS = (",", ";", "\t", "|")
SAMPLE_ROWS = 10  # data rows that decide the types if not all are asked for

# Arrow's reader trims blanks around numbers.
_INTEGER = r"[ \t]*(?:0|-?[1-9][0-9]*)[ \t]*"
_DECIMAL = r"[ \t]*-?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[ \t]*"
_WORD = r"[ \t]*(?i:nan|-?inf|-?infinity)[ \t]*"
_BOOLEAN = r"(?i:true|false|1|0)"
_DATE = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_CLOCK = r"[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?"
_MAX_EXACT = 2**53  # from here on a Float64 does not hold every whole number


def sniff_delimiter(lines: Sequence[str]) -> str:
    """Return the delimiter that cuts the lines of a file's beginning into the most, equally many, fields."""
    return max(DELIMITERS, key=lambda delimiter: _consistency(lines, delimiter))


def header_names(record: Record, delimiter: str) -> list[str]:
    """Return the column names in a header; blanks around unquoted names are dropped.

    Raises:
        SourceFormatError: A name is empty or stands twice, whatever its case.
    """
    values = record.values(delimiter)
    names = [value.text if value.quoted else value.text.strip() for value in values]
    seen = set[str]()
    for position, name in enumerate(names, 1):
        if not name or name.lower() in seen:
            reason = f"repeats the name {name!r}" if name else "has no name"
            raise SourceFormatError(
                f"Line {record.line}: column {position} {reason}. Name each column once in the header.",
                line=record.line,
                position=position,
            )
        seen.add(name.lower())
    return names


class ColumnGuess:
    """The narrowest type that holds every text seen of one column."""

    def __init__(self, *, dates: bool = False) -> None:
        kinds = [_is_integer, _is_decimal, _is_boolean]
        kinds += [_is_date, _is_zoned_time, _is_plain_time] if dates else []
        self._possible = kinds
        self._seen = False
        self._number_seen = False

    def observe(self, texts: pa.Array) -> None:
        """Take note of texts of the column; NULLs say nothing."""
        texts = texts.drop_null()
        if len(texts) == 0:
            return
        self._seen = True
        self._possible = [kind for kind in self._possible if kind(texts)]
        # "nan" and "inf" are numbers only beside numbers: alone they may be names.
        self._number_seen = self._number_seen or not _all_match(texts, _WORD)

    @property
    def settled(self) -> bool:
        """Whether further texts cannot change the type."""
        return self._seen and not self._possible

    def data_type(self) -> pa.DataType:
        """Return the type; a column without any text is a String."""
        if not self._seen or not self._possible:
            return pa.string()
        first = self._possible[0]
        return pa.string() if first is _is_decimal and not self._number_seen else _TYPE_OF[first]


def guess_types(rows: Iterable[Sequence[Value]], columns: int, *, dates: bool = False) -> list[pa.DataType]:
    """Return the column types of sampled rows."""
    sample = list(rows)
    guesses = [ColumnGuess(dates=dates) for _ in range(columns)]
    for index, guess in enumerate(guesses):
        texts = [None if row[index].is_null else row[index].text for row in sample]
        guess.observe(pa.array(texts, pa.string()))
    return [guess.data_type() for guess in guesses]


def fits_guess(text: str, data_type: pa.DataType) -> bool:
    """Tell whether a text would have been taken for a guessed type, so that the type keeps all of it."""
    texts = pa.array([text])
    if pa.types.is_integer(data_type):
        return _is_integer(texts)
    return not pa.types.is_floating(data_type) or _is_decimal(texts)


def _consistency(lines: Sequence[str], delimiter: str) -> tuple[int, int]:
    """Rank a delimiter: fields per record if all records agree, then fields of the first record."""
    widths: list[int] = []
    try:
        widths.extend(len(record.values(delimiter)) for record in records(lines, delimiter) if record.raw)
    except SourceFormatError:
        # The lines may be cut off inside a quoted field, or never close one: then those before must do.
        widths = widths or [0]
    agreed = widths[0] if len(set(widths)) == 1 else 0
    return (agreed if agreed > 1 else 0), (widths[0] if widths else 0)


def _all_match(texts: pa.Array, pattern: str) -> bool:
    options = pc.MatchSubstringOptions(f"^(?:{pattern})$")
    matches = pc.call_function("match_substring_regex", [texts], options)
    return pc.call_function("all", [matches], pc.ScalarAggregateOptions(min_count=0)).as_py()


def _casts(texts: pa.Array, data_type: pa.DataType) -> bool:
    try:
        texts.cast(data_type)
    except pa.ArrowInvalid:
        return False
    return True


def _is_integer(texts: pa.Array) -> bool:
    return _all_match(texts, _INTEGER) and _casts(_trimmed(texts), pa.int64())


def _is_decimal(texts: pa.Array) -> bool:
    if not _all_match(texts, f"{_DECIMAL}|{_WORD}"):
        return False
    return all(_float_holds(text) for text in _large(texts))


def _large(texts: pa.Array) -> list[str]:
    """Return the texts whose Float64 is so large that it may not be what the text says."""
    numbers = _trimmed(texts).cast(pa.float64())
    magnitude = pc.call_function("abs", [numbers])
    return texts.filter(
        pc.call_function("greater_equal", [magnitude, pa.scalar(float(_MAX_EXACT))])
    ).to_pylist()


def _float_holds(text: str) -> bool:
    if re.fullmatch(_WORD, text):
        return True
    return math.isfinite(float(text)) and re.fullmatch(_INTEGER, text) is None


def _is_boolean(texts: pa.Array) -> bool:
    return _all_match(texts, _BOOLEAN)


def _is_date(texts: pa.Array) -> bool:
    return _all_match(texts, _DATE) and _casts(texts, pa.date32())


def _is_zoned_time(texts: pa.Array) -> bool:
    zone = r"(?:Z|[+-][0-9]{2}:[0-9]{2})"
    return _all_match(texts, _DATE + _CLOCK + zone) and _casts(texts, pa.timestamp("us", "UTC"))


def _is_plain_time(texts: pa.Array) -> bool:
    return _all_match(texts, _DATE + _CLOCK) and _casts(texts, pa.timestamp("us"))


def _trimmed(texts: pa.Array) -> pa.Array:
    return pc.call_function("utf8_trim", [texts], pc.TrimOptions(" \t"))


_TYPE_OF = {
    _is_integer: pa.int64(),
    _is_decimal: pa.float64(),
    _is_boolean: pa.bool_(),
    _is_date: pa.date32(),
    _is_zoned_time: pa.timestamp("us", "UTC"),
    _is_plain_time: pa.timestamp("us"),
}
