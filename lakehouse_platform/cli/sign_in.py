"""Commands about oneself: login, logout, whoami, password."""

from __future__ import annotations

import click

from lakehouse_platform.cli.command import AccountCommand
from lakehouse_platform.cli.passwords import known_password, new_password, password_option
from lakehouse_platform.cli.session import Session

_SECTION = "Sign in"


@click.command(
    cls=AccountCommand,
    section=_SECTION,
    examples=(
        "lakehouse login alice --password-stdin < password.txt",
        "lakehouse login alice@example.com --password-stdin --json < password.txt",
    ),
)
@click.argument("login", required=False, help="User name or e-mail address; asked for if it is missing.")
@password_option
@click.pass_obj
def login(session: Session, login: str | None, from_stdin: bool) -> None:
    """Sign in; the following commands act as this user, until `logout`.

    The tokens are kept in a file that only you can read, one for each lakehouse and server, and renewed when needed.
    Without a sign-in, commands that reach the files of the lakehouse act as their owner, who may do everything.
    """
    name = login or _asked_login(from_stdin=from_stdin)
    who = session.accounts.login(name, known_password("Password", from_stdin=from_stdin))
    session.output.say(f"Signed in at {who['place']} as {who['username']} ({who['role']}).", who)


@click.command(
    cls=AccountCommand,
    section=_SECTION,
    examples=("lakehouse logout", "lakehouse logout --json"),
)
@click.pass_obj
def logout(session: Session) -> None:
    """End the sign-in and remove its tokens."""
    was_signed_in = session.accounts.logout()
    said = "Signed out." if was_signed_in else "Nobody was signed in."
    session.output.say(said, {"signed_out": was_signed_in})


@click.command(
    cls=AccountCommand,
    section=_SECTION,
    examples=("lakehouse whoami", "lakehouse whoami --json"),
)
@click.pass_obj
def whoami(session: Session) -> None:
    """Show as whom commands act, where, and through which door."""
    session.output.record(session.accounts.whoami())


@click.command(
    cls=AccountCommand,
    section=_SECTION,
    examples=(
        "lakehouse login alice --password-stdin < password.txt",
        "lakehouse password --password-stdin < two_passwords.txt",
    ),
)
@password_option
@click.pass_obj
def password(session: Session, from_stdin: bool) -> None:
    """Change your own password; your other sign-ins end.

    With --password-stdin the first line is the password until now, the second the new one.
    """
    current = known_password("Password until now", from_stdin=from_stdin)
    user = session.accounts.change_password(current, new_password("New password", from_stdin=from_stdin))
    session.output.say(f"{user['username']} has a new password.", user)


def _asked_login(*, from_stdin: bool) -> str:
    if from_stdin:
        raise click.UsageError("Standard input holds the password: name who signs in as an argument.")
    return click.prompt("User name or e-mail address", err=True)
