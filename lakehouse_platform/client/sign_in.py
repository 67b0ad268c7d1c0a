"""The client's sign-in: its tokens and when they are renewed; time is an argument."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from lakehouse_platform.client.records import Tokens
from lakehouse_platform.client.requests import Answer
from lakehouse_platform.errors import InvalidArgumentError

# Early enough for a request that is long under way, late enough that short-lived tokens are not renewed all the time.
_AHEAD_SECONDS, _AHEAD_SHARE = 60.0, 0.1
# RFC 6750 §2.1: the letters of a token. Others would break the header, or show the token in an error of the library.
_TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]{1,8192}")


@dataclass(frozen=True, slots=True)
class SignIn:
    """Who the client is to the server.

    Attributes:
        token: The access token or API key; None for nobody.
        tokens: The sign-in it belongs to, if it was made with a password.
        renew_at: When to renew it, on the clock that never goes back; None for when the server says so.
    """

    token: str | None = field(default=None, repr=False)
    tokens: Tokens | None = None
    renew_at: float | None = None

    @classmethod
    def of_token(cls, token: str) -> SignIn:
        """Return the sign-in with a token or API key that cannot be renewed.

        Raises:
            InvalidArgumentError: It cannot be a token.
        """
        return cls(checked_token(token))

    @classmethod
    def of_tokens(cls, tokens: Tokens, now: float, server_time: datetime) -> SignIn:
        """Return the sign-in with tokens.

        Args:
            tokens: The tokens.
            now: The clock that never goes back.
            server_time: What the server's clock shows; this machine's may be wrong.

        Raises:
            InvalidArgumentError: They cannot be tokens.
        """
        checked_token(tokens.access_token)
        left = (tokens.expires_at - server_time).total_seconds()
        ahead = min(_AHEAD_SECONDS, max(0.0, left) * _AHEAD_SHARE)
        return cls(tokens.access_token, tokens, now + left - ahead if tokens.refresh_token else None)

    @property
    def refresh_token(self) -> str | None:
        """What it can be renewed with."""
        return self.tokens.refresh_token if self.tokens else None

    def is_due(self, now: float) -> bool:
        """Tell whether it should be renewed before the next request."""
        return self.renew_at is not None and now >= self.renew_at

    def without_renewal(self) -> SignIn:
        """Return it without the refresh token, which is or may be used up."""
        tokens = replace(self.tokens, refresh_token=None) if self.tokens else None
        return replace(self, tokens=tokens, renew_at=None)


def checked_token(token: str) -> str:
    """Return a token that may stand in a header.

    Raises:
        InvalidArgumentError: It may not; it is not repeated.
    """
    if _TOKEN.fullmatch(token) is None:
        raise InvalidArgumentError(
            "This is no access token or API key: give it as the server gave it, without blanks or line ends."
        )
    return token


def server_time(answer: Answer, otherwise: datetime) -> datetime:
    """Return the time that an answer was made, by the server's own clock if it tells."""
    try:
        told = parsedate_to_datetime(answer.headers["date"])
    except (KeyError, ValueError):
        return otherwise
    return told if told.tzinfo is not None else told.replace(tzinfo=UTC)
