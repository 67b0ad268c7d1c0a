"""The sign-in at a server: commands ask its HTTP API as who is signed in there."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeVar

from lakehouse_platform.cli.sign_in_file import SignIn, SignInFile
from lakehouse_platform.client.records import Tokens
from lakehouse_platform.client.sync import LakehouseClient
from lakehouse_platform.errors import (
    AuthenticationFailedError,
    AuthError,
    RateLimitedError,
    StorageIoError,
    TokenExpiredError,
)
from lakehouse_platform.private_files import state_root

_T = TypeVar("_T")
_AGENT = "lakehouse command"
# Below the state directory of this user.
_DIRECTORY = "servers"


class ServerSignIn:
    """Signing in and out at a server, and asking it as who is signed in.

    The client is handed the access token only: commands that run at once share the sign-in, so it is renewed under the
    lock of its file.
    """

    def __init__(self, address: str) -> None:
        """Choose the server; nothing is sent yet.

        Raises:
            InvalidArgumentError: The address is none, or secrets would be sent there in clear.
        """
        self._client = LakehouseClient(address, user_agent=_AGENT)
        self._token: str | None = None
        self._file = SignInFile(state_root() / _DIRECTORY, self._client.base_url)

    @property
    def place(self) -> str:
        """The address of the server."""
        return self._file.place

    def current(self) -> SignIn | None:
        """Return the sign-in, renewed if it is past its time; None if nobody is signed in.

        Raises:
            AuthError: It cannot be renewed.
        """
        return self._file.current(self._renewed, datetime.now(UTC))

    def ask(self, operation: Callable[[LakehouseClient], _T]) -> _T:
        """Ask the server as who is signed in, and return the answer.

        A token that another command has renewed meanwhile, or that the server's clock finds past its time, is replaced
        once.
        """
        kept = self.current()
        try:
            return operation(self._as(kept))
        except (TokenExpiredError, AuthenticationFailedError) as error:
            newer = self._file.after_refusal(kept, error, self._renewed, datetime.now(UTC))
            if newer is None:
                raise
            return operation(self._as(newer))

    def ask_with(self, token: str, operation: Callable[[LakehouseClient], _T]) -> _T:
        """Ask the server with another token."""
        with LakehouseClient(self.place, token=token, user_agent=_AGENT) as client:
            return operation(client)

    def begin(self, login: str, password: str) -> SignIn:
        """Sign in, in place of the sign-in before."""
        with LakehouseClient(self.place, user_agent=_AGENT) as client:
            begun = self._kept(client.login(login, password))
        try:
            self.end()
        finally:
            self._file.keep(begun)
        return begun

    def end(self) -> bool:
        """End the sign-in and forget it; tell whether there was one."""
        self._file.make_private()
        try:
            if self.current() is not None:
                self.ask(lambda client: client.logout())
        except (AuthError, StorageIoError) as error:
            if isinstance(error, RateLimitedError):
                raise
            # Otherwise it has ended already, or nobody knows which one it was.
        return self._file.forget()

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _as(self, kept: SignIn | None) -> LakehouseClient:
        token = kept.access_token if kept else None
        if token != self._token:
            self._client.close()
            self._client = LakehouseClient(self.place, token=token, user_agent=_AGENT)
            self._token = token
        return self._client

    def _renewed(self, refresh_token: str) -> SignIn:
        kept = self._file.read()
        if kept is None:
            raise AuthenticationFailedError(
                "The sign-in was ended meanwhile: sign in with `lakehouse login`."
            )
        tokens = Tokens(
            access_token=kept.access_token,
            refresh_token=refresh_token,
            expires_at=kept.expires_at,
            user_id=kept.user_id,
            session_id=kept.session_id,
        )
        with LakehouseClient(self.place, tokens=tokens, user_agent=_AGENT) as client:
            return self._kept(client.refresh(), kept)

    def _kept(self, tokens: Tokens, before: SignIn | None = None) -> SignIn:
        return SignIn(
            place=self.place,
            user_id=tokens.user_id or (before.user_id if before else ""),
            session_id=tokens.session_id or (before.session_id if before else None),
            access_token=tokens.access_token,
            refresh_token=tokens.refresh_token,
            expires_at=tokens.expires_at,
        )
