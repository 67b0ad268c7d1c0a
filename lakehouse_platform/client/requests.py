"""Requests and answers as plain values, and the steps of an exchange: what the clients know without any network."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, Generic, TypeAlias, TypeVar
from urllib.parse import quote

from lakehouse_platform.client.uploads import RowsBody
from lakehouse_platform.errors import InvalidArgumentError

T = TypeVar("T")
JSON = "application/json"
ARROW = "application/vnd.apache.arrow.stream"
PROBLEM = "application/problem+json"


class Reading(Enum):
    """How the body of a good answer is read.

    Attributes:
        WHOLE: As bytes.
        TABLE: As an Arrow table.
        STREAM: Not at all: it is handed out open.
    """

    WHOLE = auto()
    TABLE = auto()
    STREAM = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is asked of the server.

    Attributes:
        method: The HTTP method.
        path: The path below the base URL, quoted.
        query: The query, in order.
        fields: The JSON body, if there is one; it may hold a password.
        rows: Rows as the body, if they are.
        key: The Idempotency-Key: a repetition with it changes nothing twice.
        reading: How the body of a good answer is read.
        is_signed: Whether the request says who acts.
        is_single: Whether it is never sent twice, whatever happens: a renewal would look like theft.
        patience: Seconds that the server may take beyond the usual.
    """

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    fields: Mapping[str, Any] | None = field(default=None, repr=False)
    rows: RowsBody | None = field(default=None, repr=False)
    key: str | None = None
    reading: Reading = Reading.WHOLE
    is_signed: bool = True
    is_single: bool = False
    patience: float = 0.0

    @property
    def accept(self) -> str:
        """What forms of an answer are understood."""
        wanted = JSON if self.reading is Reading.WHOLE else ARROW
        return f"{wanted}, {PROBLEM}"

    @property
    def is_harmless(self) -> bool:
        """Whether sending it twice does no more than sending it once."""
        return not self.is_single and (self.method == "GET" or self.key is not None)

    @property
    def can_be_sent(self) -> bool:
        """Whether its body is there to be sent, for the first time or again."""
        return self.rows is None or not self.rows.is_spent


@dataclass(frozen=True, slots=True)
class Answer:
    """What the server answered.

    Attributes:
        status: The HTTP status.
        headers: The headers, by names in small letters.
        body: Bytes; for a good answer what the request's `reading` says.
    """

    status: int
    headers: Mapping[str, str]
    body: Any = field(default=b"", repr=False)

    @property
    def is_good(self) -> bool:
        """Whether the request was done."""
        return 200 <= self.status < 300

    @property
    def content_type(self) -> str:
        """The media type of the body, without parameters."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()


@dataclass(frozen=True, slots=True)
class Lost:
    """There is no answer.

    Attributes:
        reason: Why, in words.
        was_sent: Whether the server may have received the request.
        is_lasting: Whether it will be no better in a while.
        cause: The exception behind it.
    """

    reason: str
    was_sent: bool
    is_lasting: bool = False
    cause: BaseException | None = field(default=None, repr=False)


Outcome: TypeAlias = Answer | Lost


@dataclass(frozen=True, slots=True)
class Send:
    """Step: send a request with a token, and come back with the outcome."""

    request: Request
    token: str | None = field(repr=False)


@dataclass(frozen=True, slots=True)
class Wait:
    """Step: let time pass."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Alone:
    """Step: go through other steps while nobody else does, and come back with what they return."""

    steps: Callable[[], Steps[Any]]


Step: TypeAlias = Send | Wait | Alone
Steps: TypeAlias = Generator[Step, Any, T]


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """An operation: what is asked, and what its answer means.

    Attributes:
        request: The request.
        read: Returns the result that a good answer holds.
    """

    request: Request
    read: Callable[[Answer], T]


def segment(text: str) -> str:
    """Return a text as one segment of a path.

    Raises:
        InvalidArgumentError: It cannot be one: it is empty, or names a directory.
    """
    if text in {"", ".", ".."}:
        raise InvalidArgumentError(f"{text!r} cannot be part of an address: give an id or a name.")
    return quote(text, safe="")


def query(**values: object) -> tuple[tuple[str, str], ...]:
    """Return the parameters that have a value, as texts."""
    return tuple((name, _text(value)) for name, value in values.items() if value is not None)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
