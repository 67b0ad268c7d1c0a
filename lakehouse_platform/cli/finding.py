"""Which account a text on the command line means."""

from __future__ import annotations

import re

from lakehouse_platform.cli.accounts import Accounts, Facts
from lakehouse_platform.errors import UserNotFoundError

_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
# The largest page that a server gives.
_PAGE = 1000


def user_id_of(accounts: Accounts, text: str) -> str:
    """Return the id of the account that a text names.

    What looks like an id is one, so nobody can take the place of another account with a user name. One's own names
    are known without seeing other accounts.

    Args:
        accounts: Where to look.
        text: A user id, user name or e-mail address.

    Raises:
        UserNotFoundError: No account has this name.
        PermissionDeniedError: Who is signed in may not see other accounts.
    """
    if _ID.fullmatch(text):
        return text
    me = accounts.whoami()
    if _is_named(me, text):
        return me["user_id"]
    after: str | None = ""
    while after is not None:
        page = accounts.users(after=after, limit=_PAGE)
        for user in page.users:
            if _is_named(user, text):
                return user["user_id"]
        after = page.next_after
    raise UserNotFoundError(f"There is no user {text!r}: see `lakehouse users list`.", user=text)


def audited_id_of(accounts: Accounts, text: str) -> str:
    """Return under which id the audit log knows the one whom a text names.

    That may be one that has no account any more, or never had: such an id is taken as it is.

    Raises:
        PermissionDeniedError: See `user_id_of`.
    """
    try:
        return user_id_of(accounts, text)
    except UserNotFoundError:
        return text


def _is_named(user: Facts, text: str) -> bool:
    # As at a sign-in, capitals make no difference.
    return text.casefold() in {str(user.get(name, "")).casefold() for name in ("username", "email")}
