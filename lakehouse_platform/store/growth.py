"""How long the texts are that an expression makes: a short expression must not fill the memory of the server.

`replace(replace(name, 'a', 'aa…'), 'a', 'aa…')` multiplies, and the engine computes some thousand rows at once.
"""

from __future__ import annotations

import pyarrow as pa

from lakehouse_platform.errors import InvalidPredicateError
from lakehouse_platform.store.expressions import Apply, Case, Expression, Literal

# With a text of this many characters in a column …
_USUAL = 100
# … an expression may make one of so many: as many as an expression itself has at most. The engine's batches have 8 192
# rows (DataFusion's default), so they take 512 MiB then.
MOST = 64 * 1024


def require_short_text(expression: Expression) -> None:
    """Refuse a text that grows beyond all measure; it is not computed for that.

    Raises:
        InvalidPredicateError: It could.
    """
    if pa.types.is_string(expression.type) and longest(expression) > MOST:
        raise InvalidPredicateError(
            f"The expression could make texts of more than {MOST} characters out of texts of {_USUAL}: "
            "nest fewer calls of replace, and join fewer texts."
        )


def longest(expression: Expression) -> int:
    """Return how many characters a text can have that an expression makes of usual columns."""
    if isinstance(expression, Literal):
        return len(expression.value) if isinstance(expression.value, str) else _USUAL
    if isinstance(expression, Case):
        values = [value for _, value in expression.branches]
        return max(map(longest, [*values, *([expression.default] if expression.default else [])]))
    if not isinstance(expression, Apply):
        return _USUAL
    lengths = [longest(part) for part in expression.arguments]
    if expression.template.startswith("replace("):
        return _replaced(expression, lengths)
    if expression.template.startswith("concat(") or " || " in expression.template:
        return sum(lengths)
    return max([_USUAL, *lengths])


def _replaced(expression: Apply, lengths: list[int]) -> int:
    text, _, replacement = lengths
    searched = expression.arguments[1]
    # What is searched may be a single character where it is not known. An empty text is found between all of them.
    known = len(searched.value) if isinstance(searched, Literal) and isinstance(searched.value, str) else 1
    growth = -(-replacement // known) if known else replacement + 1
    return text * max(1, growth)
