"""The forms that rows have on the wire, and which one a request asks for or brings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from lakehouse_platform.api.problems import Refusal, refused

# RFC 9110 §5.6.2 and §8.3.1; a quoted value may hold commas and semicolons.
_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"  # noqa: S105 - a pattern
_VALUE = rf'(?:{_TOKEN}|"(?:[^"\\]|\\.)*")'
_SPACE = r"[ \t]*"
_RANGE = re.compile(
    rf"{_SPACE}({_TOKEN})/({_TOKEN})((?:{_SPACE};{_SPACE}{_TOKEN}={_VALUE})*){_SPACE};?{_SPACE}"
)
_PARAMETER = re.compile(rf";{_SPACE}({_TOKEN})=({_VALUE})")
_ITEM = re.compile(r'(?:[^,"]|"(?:[^"\\]|\\.)*")+')
_QUALITY = re.compile(r"0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?")  # RFC 9110 §12.4.2
# Longer than any client's; each item costs a few microseconds.
_LONGEST_HEADER = 4096


class RowForm(StrEnum):
    """A form of rows, in the order of preference where a client likes several as much."""

    JSON = "application/json"
    NDJSON = "application/x-ndjson"
    CSV = "text/csv"
    ARROW = "application/vnd.apache.arrow.stream"

    @property
    def content_type(self) -> str:
        """The value of Content-Type for rows in this form."""
        return "text/csv; charset=utf-8; header=present" if self is RowForm.CSV else self.value


# RFC 4180 §3 and RFC 7111 define these parameters; JSON is UTF-8 by RFC 8259 §8.1, but clients say so.
_UNDERSTOOD = {"charset": frozenset({"utf-8", "utf8", "us-ascii"}), "header": frozenset({"present"})}


@dataclass(frozen=True, slots=True)
class _MediaRange:
    """One item of Accept, or a Content-Type."""

    kind: str
    subtype: str
    parameters: tuple[tuple[str, str], ...]
    quality: float = 1.0

    def rank(self, form: RowForm) -> int:
        """Return how closely this range names a form: 0 not at all, 3 exactly."""
        kind, _, subtype = form.value.partition("/")
        if self.kind == "*" and self.subtype == "*":
            return 1
        if self.kind == kind and self.subtype == "*":
            return 2
        return 3 if (self.kind, self.subtype) == (kind, subtype) and self.is_understood else 0

    @property
    def is_understood(self) -> bool:
        """Whether the parameters ask for nothing that these forms are not."""
        return all(value.lower() in _UNDERSTOOD.get(name, {value.lower()}) for name, value in self.parameters)


def wanted_form(accept: str | None) -> RowForm:
    """Return the form that an Accept header asks for: JSON if it leaves the choice.

    Args:
        accept: The header, several joined with commas; None if there is none.

    Raises:
        HTTPException: It admits none of the forms (406).
    """
    if accept is None or not accept.strip():
        return RowForm.JSON
    ranges = list(_ranges(accept)) if len(accept) <= _LONGEST_HEADER else []
    qualities = {form: _quality(ranges, form) for form in RowForm}
    best = max(RowForm, key=lambda form: qualities[form])  # the first of equals
    if qualities[best] > 0:
        return best
    raise refused(
        Refusal.NOT_ACCEPTABLE, f"Rows are sent as {', '.join(RowForm)}: name one of them in Accept."
    )


def sent_form(content_type: str | None) -> RowForm:
    """Return the form that a Content-Type header says rows have.

    Raises:
        HTTPException: There is no such header, or rows are not taken in that form (415).
    """
    match = _RANGE.fullmatch(content_type or "")
    if match is not None and len(content_type or "") <= _LONGEST_HEADER:
        found = _MediaRange(match[1].lower(), match[2].lower(), _parameters(match[3]))
        for form in RowForm:
            if found.rank(form) == 3:
                return form
    raise refused(
        Refusal.UNSUPPORTED_MEDIA_TYPE,
        f"Rows are taken as {', '.join(RowForm)}, in UTF-8: say which in Content-Type.",
    )


def _quality(ranges: list[_MediaRange], form: RowForm) -> float:
    """Return how much a form is liked: what the range that names it most closely says."""
    closest = max(ranges, key=lambda one: (one.rank(form), one.quality), default=None)
    return closest.quality if closest is not None and closest.rank(form) else 0.0


def _ranges(accept: str) -> Iterator[_MediaRange]:
    """Yield the ranges of the header; what is none is passed over, as RFC 9110 §5.6.1 asks for empty ones."""
    for item in _ITEM.findall(accept):
        match = _RANGE.fullmatch(item)
        if match is None:
            continue
        parameters = _parameters(match[3])
        quality = next((value for name, value in parameters if name == "q"), "1")
        if _QUALITY.fullmatch(quality):
            others = tuple(pair for pair in parameters if pair[0] != "q")
            yield _MediaRange(match[1].lower(), match[2].lower(), others, float(quality))


def _parameters(text: str) -> tuple[tuple[str, str], ...]:
    pairs = _PARAMETER.findall(text)
    return tuple((name.lower(), re.sub(r"\\(.)", r"\1", value.strip('"'))) for name, value in pairs)
