"""The sign-in at a lakehouse on this machine: commands that reach its files act as who is signed in."""

from __future__ import annotations

from datetime import UTC, datetime

from lakehouse_platform.cli.sign_in_file import SignIn, SignInFile
from lakehouse_platform.errors import (
    AuthenticationFailedError,
    AuthError,
    RateLimitedError,
    StorageIoError,
    TokenExpiredError,
)
from lakehouse_platform.model.actors import OWNER, Actor
from lakehouse_platform.private_files import state_directory
from lakehouse_platform.services.lakehouse import Lakehouse
from lakehouse_platform.services.sign_ins import Tokens

_AGENT = "lakehouse command"


class LocalSignIn:
    """Signing in and out at a lakehouse itself, without a server."""

    def __init__(self, lakehouse: Lakehouse) -> None:
        self.lakehouse = lakehouse
        place = lakehouse.store.base.uri
        self._file = SignInFile(state_directory(lakehouse.config.state_path, place), place)

    @property
    def place(self) -> str:
        """The location of the lakehouse."""
        return self._file.place

    def current(self) -> SignIn | None:
        """Return the sign-in, renewed if it is past its time; None if nobody is signed in.

        Raises:
            AuthError: It cannot be renewed.
        """
        return self._file.current(self._renewed, datetime.now(UTC))

    def actor(self) -> Actor:
        """Return as whom commands act.

        Raises:
            AuthError: The sign-in does not count any more. That is told: nobody becomes the owner by losing it.
        """
        kept = self.current()
        if kept is None:
            return OWNER
        accounts = self.lakehouse.accounts
        try:
            return accounts.authenticate(kept.access_token, user_agent=_AGENT)
        except (TokenExpiredError, AuthenticationFailedError) as error:
            newer = self._file.after_refusal(kept, error, self._renewed, datetime.now(UTC))
            if newer is None:
                raise
            return accounts.authenticate(newer.access_token, user_agent=_AGENT)

    def begin(self, login: str, password: str) -> SignIn:
        """Sign in, in place of the sign-in before."""
        begun = self._kept(self.lakehouse.accounts.login(login, password, user_agent=_AGENT))
        try:
            self.end()
        finally:
            self._file.keep(begun)
        return begun

    def end(self) -> bool:
        """End the sign-in and forget it; tell whether there was one."""
        self._file.make_private()
        try:
            kept = self.current()
            if kept is not None:
                self.lakehouse.accounts.logout(kept.access_token)
        except (AuthError, StorageIoError) as error:
            if isinstance(error, RateLimitedError):
                raise
            # Otherwise it has ended already, or nobody knows which one it was.
        return self._file.forget()

    def _renewed(self, refresh_token: str) -> SignIn:
        return self._kept(self.lakehouse.accounts.refresh(refresh_token))

    def _kept(self, tokens: Tokens) -> SignIn:
        return SignIn(
            place=self.place,
            user_id=tokens.user_id,
            session_id=tokens.session_id,
            access_token=tokens.access_token,
            refresh_token=tokens.refresh_token,
            expires_at=tokens.expires_at,
        )
