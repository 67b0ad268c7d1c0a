"""Tickets of mounts: each stands for one sign-in, and nobody without this machine's secret can make one.

A ticket is the sign-in's id and a keyed digest of it. It is stored nowhere, so nothing that is stored lets anybody in;
and it counts as long as its sign-in does, so there is nothing to be withdrawn.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
import uuid
from pathlib import Path
from typing import Final

from lakehouse_platform.errors import InvalidArgumentError, TokenInvalidError
from lakehouse_platform.private_files import load_secret

_FILE = "mount-tickets"
_SECRET_BYTES = 32
_ID_BYTES = 16
# The digest serves for nothing else that might ever be made with the same secret.
_PURPOSE = b"lakehouse-mount-ticket\0"
TICKET_LENGTH: Final = 64
"""Characters of a ticket: 16 bytes of an id and 32 of a digest (SHA-256), in the URL-safe alphabet, without padding."""


class MountTickets:
    """Makes and checks the tickets of one lakehouse on this machine. Safe to share between threads."""

    def __init__(self, state_dir: Path) -> None:
        """Read the secret, or make it.

        Args:
            state_dir: The lakehouse's state directory, which only this user may use.

        Raises:
            StorageIoError: The secret's file is damaged.
            StoragePermissionError: Others can read it.
        """
        self._secret = load_secret(state_dir / _FILE, lambda: secrets.token_bytes(_SECRET_BYTES))

    def __repr__(self) -> str:
        return "MountTickets()"

    def issue(self, session_id: str) -> str:
        """Return the ticket of a sign-in: the same each time.

        Raises:
            InvalidArgumentError: It is no sign-in's id.
        """
        try:
            raw = uuid.UUID(session_id).bytes
        except ValueError as error:
            raise InvalidArgumentError(f"{session_id!r} is no id of a sign-in.") from error
        return base64.urlsafe_b64encode(raw + self._digest(raw)).decode("ascii")

    def session_of(self, ticket: str) -> str:
        """Return the id of the sign-in that a ticket stands for, whether that has ended or not.

        Raises:
            TokenInvalidError: It was not made with this secret.
        """
        try:
            raw = base64.b64decode(ticket.encode("ascii"), altchars=b"-_", validate=True)
        except (UnicodeEncodeError, binascii.Error) as error:
            raise _invalid() from error
        session, digest = raw[:_ID_BYTES], raw[_ID_BYTES:]
        # The decoder takes "+" for "-" as well: a ticket has one text.
        is_canonical = base64.urlsafe_b64encode(raw).decode("ascii") == ticket
        if not hmac.compare_digest(digest, self._digest(session)) or not is_canonical:
            raise _invalid()
        return str(uuid.UUID(bytes=session))

    def _digest(self, session: bytes) -> bytes:
        return hmac.digest(self._secret, _PURPOSE + session, hashlib.sha256)


def _invalid() -> TokenInvalidError:
    return TokenInvalidError("The ticket of this mount is not valid here: sign in and mount again.")
