"""Commands about what a user may and has used: sign-ins, grants on tables, limits."""

from __future__ import annotations

import click

from lakehouse_platform.cli.command import AccountCommand
from lakehouse_platform.cli.finding import user_id_of
from lakehouse_platform.cli.options import user_argument
from lakehouse_platform.cli.output import counted
from lakehouse_platform.cli.session import Session
from lakehouse_platform.cli.users import SECTION, users
from lakehouse_platform.model.rights import Right

_RIGHTS = click.Choice([right.value for right in Right])
_SESSION_COLUMNS = ("session_id", "created_at", "expires_at", "refreshed_at", "ip_address", "user_agent")
_GRANT_COLUMNS = ("table", "right", "granted_by", "granted_at")


@users.command(
    "sessions",
    cls=AccountCommand,
    section=SECTION,
    examples=(
        "lakehouse users sessions alice",
        "lakehouse users sessions alice --end-all",
    ),
)
@user_argument
@click.option("--end", "ended", metavar="SESSION", help="End the sign-in with this id.")
@click.option("--end-all", is_flag=True, help="End them all.")
@click.pass_obj
def sessions(session: Session, user: str, ended: str | None, end_all: bool) -> None:
    """List a user's sign-ins, or end them."""
    if ended and end_all:
        raise click.UsageError("--end and --end-all contradict each other: give one of them.")
    user_id = user_id_of(session.accounts, user)
    if end_all:
        number = session.accounts.end_sessions(user_id)
        session.output.say(f"Ended {counted(number, 'sign-in')} of {user}.", {"ended": number})
    elif ended:
        number = int(session.accounts.end_session(user_id, ended))
        said = f"Ended sign-in {ended}." if number else f"{user} has no sign-in {ended}, or not any more."
        session.output.say(said, {"ended": number})
    else:
        session.output.listing(session.accounts.sessions(user_id), _SESSION_COLUMNS)


@users.command(
    "grants",
    cls=AccountCommand,
    section=SECTION,
    examples=("lakehouse users grants alice", "lakehouse users grants alice --json"),
)
@user_argument
@click.pass_obj
def grants(session: Session, user: str) -> None:
    """List the tables that a user may use beyond what the role allows."""
    session.output.listing(session.accounts.grants(user_id_of(session.accounts, user)), _GRANT_COLUMNS)


@users.command(
    "grant",
    cls=AccountCommand,
    section=SECTION,
    examples=("lakehouse users grant alice orders write", 'lakehouse users grant bob "*" read'),
)
@user_argument
@click.argument("table", help="Name of a table, '*' for every one but the platform's own.")
@click.argument("right", type=_RIGHTS, help="Each right includes those before it.")
@click.pass_obj
def grant(session: Session, user: str, table: str, right: str) -> None:
    """Give a user a right on a table, in place of the one the user has there."""
    made = session.accounts.grant(user_id_of(session.accounts, user), table, right)
    session.output.say(f"{user} may {made['right']} {_every(table)} now.", made)


@users.command(
    "revoke",
    cls=AccountCommand,
    section=SECTION,
    examples=("lakehouse users grant alice orders write && lakehouse users revoke alice orders",),
)
@user_argument
@click.argument("table", help="Name of the table, or '*'.")
@click.pass_obj
def revoke(session: Session, user: str, table: str) -> None:
    """Take a user's right on a table away."""
    revoked = session.accounts.revoke_grant(user_id_of(session.accounts, user), table)
    said = f"{user} has no grant on {_every(table)} any more." if revoked else f"{user} had no grant there."
    session.output.say(said, {"table": table, "revoked": revoked})


@users.command(
    "usage",
    cls=AccountCommand,
    section=SECTION,
    examples=("lakehouse users usage alice", "lakehouse users usage alice --reset"),
)
@user_argument
@click.option("--reset", is_flag=True, help="Forget what is used up.")
@click.pass_obj
def usage(session: Session, user: str, reset: bool) -> None:
    """Show how much of the limits a user has used up, in this minute and UTC day."""
    user_id = user_id_of(session.accounts, user)
    if reset:
        session.accounts.reset_usage(user_id)
    session.output.record(session.accounts.usage(user_id))


@users.command(
    "limits",
    cls=AccountCommand,
    section=SECTION,
    examples=(
        "lakehouse users limits alice --per-minute 50 --per-day 5000",
        "lakehouse users limits alice --of-tier",
    ),
)
@user_argument
@click.option("--per-minute", type=click.IntRange(min=0), metavar="N", help="Requests a minute.")
@click.option("--per-day", type=click.IntRange(min=0), metavar="N", help="Requests a UTC day.")
@click.option("--of-tier", is_flag=True, help="The limits of the subscription again.")
@click.pass_obj
def limits(session: Session, user: str, per_minute: int | None, per_day: int | None, of_tier: bool) -> None:
    """Give a user other limits than the subscription's; one that is not named is none."""
    has_numbers = per_minute is not None or per_day is not None
    if of_tier == has_numbers:
        raise click.UsageError("Give --per-minute, --per-day or both; or --of-tier for the subscription's.")
    user_id = user_id_of(session.accounts, user)
    if of_tier:
        session.accounts.follow_tier(user_id)
    else:
        session.accounts.override_limits(user_id, per_minute, per_day)
    session.output.record(session.accounts.usage(user_id))


def _every(table: str) -> str:
    return "every table" if table == "*" else table
