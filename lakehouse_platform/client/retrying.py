"""Whether and when a request is sent again; time and chance are arguments."""

from __future__ import annotations

from dataclasses import dataclass

from lakehouse_platform.client.requests import Lost, Outcome, Request
from lakehouse_platform.errors import InvalidArgumentError

_TOO_MANY = 429
_UNAVAILABLE = 503
# A proxy has no answer: nothing is known of the request.
_GATEWAY = frozenset({502, 504})
_AGAIN_LATER = frozenset({_TOO_MANY, _UNAVAILABLE}) | _GATEWAY
# Beyond this a doubled delay is over every budget, and the power would overflow.
_MOST_DOUBLINGS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How patiently requests are repeated that may be.

    Attributes:
        attempts: How often a request is sent at the most; 1 for never again.
        budget_seconds: Time that attempts and the waits between them may take together; no wait begins that would
            go beyond it.
        first_seconds: The longest wait after the first attempt; it doubles with each one.
        longest_seconds: The longest wait that is not the server's wish.
    """

    attempts: int = 5
    budget_seconds: float = 30.0
    first_seconds: float = 0.2
    longest_seconds: float = 5.0

    def __post_init__(self) -> None:
        if self.attempts < 1 or min(self.budget_seconds, self.first_seconds, self.longest_seconds) < 0:
            raise InvalidArgumentError("A retry policy has at least one attempt, and no time below 0.")

    def delay(
        self, request: Request, outcome: Outcome, *, attempt: int, elapsed: float, chance: float
    ) -> float | None:
        """Return the seconds to wait before a request is sent again, or None if it is not.

        Args:
            request: What was sent.
            outcome: What became of it.
            attempt: How often it was sent, from 1.
            elapsed: Seconds since it was first sent.
            chance: A number from 0 to 1; waits are spread by it, so that many clients do not come back at once.
        """
        if attempt >= self.attempts or not request.can_be_sent or not _may_repeat(request, outcome):
            return None
        wish = retry_after(outcome)
        step = min(self.longest_seconds, self.first_seconds * 2.0 ** min(attempt - 1, _MOST_DOUBLINGS))
        seconds = chance * step if wish is None else wish + chance * self.first_seconds
        return seconds if elapsed + seconds <= self.budget_seconds else None


def may_have_acted(outcome: Outcome) -> bool:
    """Tell whether the server may have done the request although there is no word of it."""
    return outcome.was_sent if isinstance(outcome, Lost) else outcome.status in _GATEWAY


def is_passing(outcome: Outcome) -> bool:
    """Tell whether the outcome is about the moment, not about the request."""
    return isinstance(outcome, Lost) or outcome.status in _AGAIN_LATER


def retry_after(outcome: Outcome) -> float | None:
    """Return how long the server asks to wait, if it does so in seconds (RFC 9110 §10.2.3)."""
    wish = outcome.headers.get("retry-after", "") if not isinstance(outcome, Lost) else ""
    return float(wish) if wish.isascii() and wish.isdigit() else None


def _may_repeat(request: Request, outcome: Outcome) -> bool:
    if request.is_single or not is_passing(outcome) or (isinstance(outcome, Lost) and outcome.is_lasting):
        return False
    never_arrived = isinstance(outcome, Lost) and not outcome.was_sent
    return request.is_harmless or never_arrived
