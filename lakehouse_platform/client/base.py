"""What both clients do alike, without any network, clock or chance of its own: sign-in, repetition, renewal, errors.

An operation is a generator of steps (`Send`, `Wait`, `Alone`). A client takes a step, comes back with its outcome, and
gets the next one; what the operation returns or raises is what the caller gets.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from lakehouse_platform.client.decoding import decoded
from lakehouse_platform.client.problems import error_of, json_of
from lakehouse_platform.client.records import Tokens
from lakehouse_platform.client.requests import (
    Alone,
    Answer,
    Call,
    Lost,
    Outcome,
    Request,
    Send,
    Steps,
    T,
    Wait,
)
from lakehouse_platform.client.retrying import RetryPolicy, is_passing, may_have_acted
from lakehouse_platform.client.sign_in import SignIn, checked_token, server_time
from lakehouse_platform.errors import (
    CommitOutcomeUnknownError,
    InfrastructureError,
    InvalidArgumentError,
    LakehouseError,
    RateLimitedError,
    ServerUnavailableError,
    TokenExpiredError,
    TokenInvalidError,
)

_UNAUTHORIZED = 401
_TOO_MANY = 429
# The code of a server that refuses before it looks at a request.
_TOO_BUSY = "too_busy"
# Others may renew the sign-in while a request is under way, and again; this often is no accident any more.
_MOST_TOKENS = 10
# What the server takes as an Idempotency-Key: visible ASCII.
_KEY = re.compile(r"[!-~]{1,255}")

OnTokens = Callable[[Tokens | None], None]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the operations need of the world.

    Attributes:
        now: Seconds on a clock that never goes back.
        today: The time of day.
        chance: A number from 0 to 1.
        new_key: A new Idempotency-Key that nobody can guess.
    """

    now: Callable[[], float]
    today: Callable[[], datetime]
    chance: Callable[[], float]
    new_key: Callable[[], str]


class ClientBase:
    """The state and the steps of a client."""

    def __init__(
        self,
        surroundings: Surroundings,
        policy: RetryPolicy,
        *,
        token: str | None = None,
        tokens: Tokens | None = None,
        on_tokens: OnTokens | None = None,
    ) -> None:
        """Begin signed in as somebody, or as nobody.

        Args:
            surroundings: The world.
            policy: How patiently requests are repeated.
            token: An access token or API key.
            tokens: A sign-in that can be renewed, in place of `token`.
            on_tokens: Told the tokens whenever they change, None at the end of a sign-in.

        Raises:
            InvalidArgumentError: Both are given, or one cannot be a token.
        """
        if token is not None and tokens is not None:
            raise InvalidArgumentError("Give either token= or tokens=, not both.")
        self._world = surroundings
        self._policy = policy
        self._on_tokens = on_tokens
        # One value, replaced as a whole: other threads see the old sign-in or the new one.
        self._sign_in = SignIn()
        if token is not None:
            self._sign_in = SignIn.of_token(token)
        if tokens is not None:
            self._sign_in = SignIn.of_tokens(tokens, surroundings.now(), surroundings.today())

    @property
    def tokens(self) -> Tokens | None:
        """The sign-in, if there is one that was made with a password."""
        return self._sign_in.tokens

    def key(self, wanted: str | None) -> str:
        """Return the Idempotency-Key of a request: the one that the caller wants, or a new one.

        Raises:
            InvalidArgumentError: It cannot be one.
        """
        key = self._world.new_key() if wanted is None else wanted
        if _KEY.fullmatch(key) is None:
            raise InvalidArgumentError(
                "An idempotency key is 1 to 255 visible ASCII characters: send another one."
            )
        return key

    # ── Operations ────────────────────────────────────────────────────────────────────────────────

    def run(self, call: Call[T]) -> Steps[T]:
        """Go through an operation and return its result.

        Raises:
            LakehouseError: The one that the operation raises in-process.
            ServerUnavailableError, UnexpectedAnswerError: There was no answer, or none of a lakehouse server.
            CommitOutcomeUnknownError: There was no answer to a change of a table that may have been made.
        """
        answer = yield from self.exchange(call.request)
        return call.read(answer)

    def sign_in(self, request: Request) -> Steps[Tokens]:
        """Send a request that is answered with tokens, and use them from then on."""

        def steps() -> Steps[Tokens]:
            answer = yield from self.exchange(request)
            return self._accept(answer)

        tokens: Tokens = yield Alone(steps)
        return tokens

    def sign_out(self, call: Call[T]) -> Steps[T]:
        """Go through an operation that ends the sign-in, and forget the tokens."""
        token = self._sign_in.token

        def steps() -> Steps[None]:
            yield from ()
            if self._sign_in.token == token:
                self._replace(SignIn())

        result = yield from self.run(call)
        yield Alone(steps)
        return result

    def renew(self) -> Steps[Tokens]:
        """Renew the sign-in now.

        Raises:
            TokenInvalidError: There is nothing to renew it with: sign in.
            LakehouseError: See `AuthActor.refresh`.
        """
        token = self._sign_in.token

        def steps() -> Steps[None]:
            yield from self._renewed(token)

        yield Alone(steps)
        if self._sign_in.tokens is None:
            raise _no_renewal()
        return self._sign_in.tokens

    def exchange(self, request: Request) -> Steps[Answer]:
        """Send a request until there is a good answer or none is to be had; see `run` for the errors."""
        began, attempt, unsure = self._world.now(), 0, False
        shown: list[str | None] = []
        while True:
            token = yield from self._token_for(request)
            outcome: Outcome = yield Send(request, token)
            if isinstance(outcome, Answer) and outcome.is_good:
                return outcome
            shown.append(token)
            may_renew = len(set(shown)) == 1
            if (
                len(shown) < _MOST_TOKENS
                and (yield from self._has_new_token(token, outcome, may_renew=may_renew))
                and request.can_be_sent
            ):
                continue
            attempt += 1
            unsure = unsure or may_have_acted(outcome)
            delay = self._policy.delay(
                request,
                outcome,
                attempt=attempt,
                elapsed=self._world.now() - began,
                chance=self._world.chance(),
            )
            if delay is None:
                raise _failure(request, outcome, unsure=unsure)
            yield Wait(delay)

    # ── Tokens ────────────────────────────────────────────────────────────────────────────────────

    def _token_for(self, request: Request) -> Steps[str | None]:
        """Return the token to send, renewed if it is about to end."""
        sign_in = self._sign_in
        if not request.is_signed:
            return None
        if sign_in.is_due(self._world.now()):
            yield Alone(lambda: self._renewed_ahead(sign_in.token))
        return self._sign_in.token

    def _has_new_token(self, token: str | None, outcome: Outcome, *, may_renew: bool) -> Steps[bool]:
        """Tell whether a refused request may be sent again with a newer token; it was not done."""
        if isinstance(outcome, Lost) or outcome.status != _UNAUTHORIZED or token is None:
            return False
        expired = may_renew and isinstance(error_of(outcome), TokenExpiredError)
        if self._sign_in.token == token and self._sign_in.tokens is not None:
            # A renewal voids the old token at once, also for a request that was under way with it: wait for its end.
            yield Alone(lambda: self._renewed_if(token, expired=expired))
        return self._sign_in.token not in {None, token}

    def _renewed_if(self, token: str | None, *, expired: bool) -> Steps[None]:
        if expired and self._sign_in.refresh_token is not None:
            yield from self._renewed(token)

    def _renewed_ahead(self, token: str | None) -> Steps[None]:
        if self._sign_in.token != token or not self._sign_in.is_due(self._world.now()):
            return
        try:
            yield from self._renewed(token)
        except (InfrastructureError, RateLimitedError):
            # The token is still good: the request itself is repeated as patiently as it may be, and tells.
            return

    def _renewed(self, token: str | None) -> Steps[None]:
        """Renew the sign-in, unless somebody else has done so since `token` was sent; never twice with one token."""
        sign_in = self._sign_in
        if sign_in.token != token:
            return
        if sign_in.refresh_token is None:
            raise _no_renewal()
        request = refresh_request(sign_in.refresh_token)
        try:
            outcome: Outcome = yield Send(request, None)
        except GeneratorExit:
            self._replace(sign_in.without_renewal())
            raise
        if isinstance(outcome, Answer) and outcome.is_good:
            self._accept(outcome)
            return
        # It may be used up: another attempt with it would look like a thief's, and end the sign-in.
        if not _is_untouched(outcome):
            self._replace(sign_in.without_renewal())
        raise _failure(request, outcome, unsure=may_have_acted(outcome))

    def _accept(self, answer: Answer) -> Tokens:
        tokens = decoded(Tokens, json_of(answer))
        now = self._world.now()
        sign_in = SignIn.of_tokens(tokens, now, server_time(answer, self._world.today()))
        # Due at once: a clock is wrong, and renewing at each request would not help.
        self._replace(sign_in if not sign_in.is_due(now) else SignIn(sign_in.token, tokens))
        return tokens

    def _replace(self, sign_in: SignIn) -> None:
        self._sign_in = sign_in
        if self._on_tokens is not None:
            self._on_tokens(sign_in.tokens)


def refresh_request(refresh_token: str) -> Request:
    """Return the request that renews a sign-in; it is never sent twice."""
    return Request(
        method="POST",
        path="/v1/auth/refresh",
        fields={"refresh_token": checked_token(refresh_token)},
        is_signed=False,
        is_single=True,
    )


def _is_untouched(outcome: Outcome) -> bool:
    """Tell whether a refresh token is as good as before: the server has not seen it, or was too busy to look."""
    if isinstance(outcome, Lost):
        return not outcome.was_sent
    return outcome.status == _TOO_MANY or error_of(outcome).details.get("server_code") == _TOO_BUSY


def _failure(request: Request, outcome: Outcome, *, unsure: bool) -> LakehouseError:
    """Return the error that a request ends with; `unsure` if the server may have done it."""
    told = outcome.cause if isinstance(outcome, Lost) else error_of(outcome)
    if unsure and request.key is not None and is_passing(outcome):
        error: LakehouseError = CommitOutcomeUnknownError(
            "The answer of the server was lost: the change may have been made or not. Repeat it with the same rows "
            "and this idempotency_key, and it is made once.",
            idempotency_key=request.key,
        )
        error.__cause__ = told
        return error
    if isinstance(told, LakehouseError):
        return told
    error = ServerUnavailableError(
        f"The server cannot be reached: {_reason(outcome)}. {_advice(request, unsure=unsure)}",
        may_have_acted=unsure and request.method != "GET",
    )
    error.__cause__ = told
    return error


def _reason(outcome: Outcome) -> str:
    return outcome.reason if isinstance(outcome, Lost) else f"status {outcome.status}"


def _advice(request: Request, *, unsure: bool) -> str:
    if unsure and request.method != "GET":
        return "It may have done what was asked: look before you repeat."
    return "Nothing was done: check base_url and the network, or try again later."


def _no_renewal() -> TokenInvalidError:
    return TokenInvalidError("The sign-in cannot be renewed by this client: sign in again.")


def cut_off(outcome: Lost) -> ServerUnavailableError:
    """Return the error for rows that broke off while they were read."""
    return ServerUnavailableError(
        f"The rows broke off before their end: {outcome.reason}. Those that were read are not all: ask again.",
        may_have_acted=False,
    )
