"""Commands about the API keys of programs' accounts."""

from __future__ import annotations

import click

from lakehouse_platform.cli.command import AccountCommand, PlatformGroup
from lakehouse_platform.cli.finding import user_id_of
from lakehouse_platform.cli.output import counted
from lakehouse_platform.cli.session import Session

_SECTION = "Users"
_COLUMNS = ("key_id", "label", "scopes", "created_at", "expires_at", "last_used_at", "revoked_at")
_ACCOUNT_HELP = "Id or name of the program's account."
_DEFAULT_DAYS = 90
_MOST_DAYS = 3650


@click.group(cls=PlatformGroup, section=_SECTION)
def keys() -> None:
    """API keys: how programs sign in; `users add-service` makes their accounts."""


@keys.command(
    "create",
    cls=AccountCommand,
    section=_SECTION,
    examples=(
        "lakehouse keys create loader --label nightly --scope write:orders --scope read:customers",
        "lakehouse keys create loader --label dashboard --expires-days 365 --json",
    ),
)
@click.argument("account", help=_ACCOUNT_HELP)
@click.option("--label", required=True, metavar="TEXT", help="What the key is for.")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    metavar="RIGHT:TABLE",
    default=("read:*",),
    show_default=True,
    help="read:TABLE, write:TABLE or maintain:TABLE, * for every table; admin. Repeatable.",
)
@click.option(
    "--expires-days",
    "days",
    type=click.IntRange(1, _MOST_DAYS),
    default=_DEFAULT_DAYS,
    show_default=True,
    metavar="N",
    help="How long it counts.",
)
@click.option("--no-end", is_flag=True, help="It counts until it is revoked.")
@click.pass_obj
def create(
    session: Session, account: str, label: str, scopes: tuple[str, ...], days: int, no_end: bool
) -> None:
    """Make an API key and show it, this once: only its hash is kept.

    A key may what its account may, and of that only what its scopes say.
    """
    user_id = user_id_of(session.accounts, account)
    made = session.accounts.create_key(user_id, label, scopes, None if no_end else days)
    session.output.say(
        f"{made['key']}\nThis is key {made['key_id']} of {account}. Keep it now: it is not shown again.", made
    )


@keys.command(
    "list",
    cls=AccountCommand,
    section=_SECTION,
    examples=("lakehouse keys list loader", "lakehouse keys list loader --json"),
)
@click.argument("account", help=_ACCOUNT_HELP)
@click.pass_obj
def list_keys(session: Session, account: str) -> None:
    """List the keys of a program's account, also those that do not count any more."""
    session.output.listing(session.accounts.keys(user_id_of(session.accounts, account)), _COLUMNS)


@keys.command(
    "revoke",
    cls=AccountCommand,
    section=_SECTION,
    examples=("lakehouse keys revoke loader --all",),
)
@click.argument("account", help=_ACCOUNT_HELP)
@click.argument("key_id", metavar="[KEY_ID]", required=False, help="Id of the key; not the key itself.")
@click.option("--all", "every", is_flag=True, help="All keys of the account.")
@click.pass_obj
def revoke(session: Session, account: str, key_id: str | None, every: bool) -> None:
    """Make keys void at once."""
    if every == (key_id is not None):
        raise click.UsageError("Give the id of one key, or --all.")
    accounts = session.accounts
    user_id = user_id_of(accounts, account)
    ids = [key_id] if key_id else [key["key_id"] for key in accounts.keys(user_id) if not key["revoked_at"]]
    revoked = [one for one in ids if accounts.revoke_key(user_id, one)]
    session.output.say(f"Revoked {counted(len(revoked), 'key')} of {account}.", {"revoked": revoked})
