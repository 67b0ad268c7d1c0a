"""Keeps the engine from taking a computed item of an IN list for a constant.

The engine computes the items of a list once, on no rows, and keeps them if each comes out as a single value. Constants
do, and so does, wrongly, many a CASE (DataFusion, in deltalake 1.6.6): of no rows it makes NULL or the value after its
ELSE. So do coalesce, nvl and the like, which are turned into a CASE. `x + 1 IN (1, CASE WHEN y THEN 2 ELSE x END)` is
then true for 1 at most, and its NOT IN never.

An item that depends on a random number is computed for each row. So items become `array_element(make_array(item), 1)`,
with a 1 that the engine cannot foresee.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_BEFORE = "array_element(make_array("
_AFTER = "), 1 + CAST(0 * random() AS BIGINT))"
# What plans make of them, in expressions and in the names of columns; longer texts first.
_PLANNED = (
    "), Int64(1) + CAST(Int64(0) * random() AS Int64))",
    ")[Int64(1) + Int64(0) * random()]",
    "array_element(make_array(",
    "make_array(",
)
_TOKEN = re.compile(
    r"""--[^\n]*|/\*.*?\*/|\s+                                # skipped
    |[eE]'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|\$(\w*)\$.*?\$\1\$
    |\w+|.""",
    re.DOTALL | re.VERBOSE,
)
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")
_SKIPPED = re.compile(r"--|/\*|\s")
_CONSTANT = re.compile(r"\s*(?:[-+]?\s*[\d.]\w*(?:\.\w*)?|'(?:[^']|'')*'|NULL|TRUE|FALSE)\s*", re.IGNORECASE)
_QUERY = re.compile(r"[\s(]*(?:SELECT|WITH|VALUES|TABLE)\b", re.IGNORECASE)


@dataclass(slots=True)
class _Bracket:
    """An open bracket; `start` is where its last item begins."""

    is_list: bool
    start: int


def may_freeze(optimized: str) -> bool:
    """Tell whether the text of an optimized plan has a list with a CASE among its items."""
    return any(
        "CASE " in _until_closed(optimized, match.end()) for match in re.finditer(r" IN \(\[", optimized)
    )


def with_varying_items(text: str) -> str:
    """Return a query with every item of its IN lists that is no constant computed for each row."""
    pieces: list[str] = []
    done = 0
    for at, insertion in sorted(_insertions(text)):
        pieces += text[done:at], insertion
        done = at
    return "".join([*pieces, text[done:]])


def is_same_query(before: str, after: str) -> bool:
    """Tell from the texts of two plans as written that `with_varying_items` changed nothing but items of lists."""
    return _without_varying(before) == _without_varying(after)


def _insertions(text: str) -> Iterator[tuple[int, str]]:
    brackets: list[_Bracket] = []
    last = ""
    for match in _TOKEN.finditer(text):
        piece = match[0]
        if _SKIPPED.match(piece):
            continue
        if piece in _OPENING:
            is_list = piece == "(" and last == "IN" and not _QUERY.match(text, match.end())
            brackets.append(_Bracket(is_list, match.end()))
        elif brackets and (piece == "," or piece in _CLOSING):
            bracket = brackets[-1]
            if bracket.is_list:
                yield from _around(text, bracket.start, match.start())
            bracket.start = match.end()
            if piece in _CLOSING:
                brackets.pop()
        last = piece.upper()


def _without_varying(plan: str) -> list[list[str]]:
    for part in _PLANNED:
        plan = plan.replace(part, "")
    # The planner adds the columns that ORDER BY needs in another order each time.
    return [sorted(re.split(r"[\s,]+", line)) for line in plan.splitlines()]


def _around(text: str, start: int, end: int) -> Iterator[tuple[int, str]]:
    if not _CONSTANT.fullmatch(text, start, end):
        yield start, _BEFORE
        yield end, _AFTER


def _until_closed(plan: str, start: int) -> str:
    depth = 1
    for at in range(start, len(plan)):
        depth += (plan[at] == "[") - (plan[at] == "]")
        if depth == 0:
            return plan[start:at]
    return plan[start:]
