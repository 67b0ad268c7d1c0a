"""Commands about the access token of who is signed in."""

from __future__ import annotations

import click

from lakehouse_platform.cli.command import AccountCommand, PlatformGroup
from lakehouse_platform.cli.passwords import piped_line
from lakehouse_platform.cli.session import Session

_SECTION = "Sign in"


@click.group(cls=PlatformGroup, section=_SECTION)
def token() -> None:
    """Show or check the access token of who is signed in."""


@token.command(
    "show",
    cls=AccountCommand,
    section=_SECTION,
    examples=(
        "lakehouse login alice --password-stdin < password.txt && lakehouse token show",
        "lakehouse token show --json",
    ),
)
@click.pass_obj
def show(session: Session) -> None:
    """Print the access token, renewed if needed, for programs that speak to the HTTP API.

    Whoever has it acts as you until it ends or you sign out: do not leave it in files or in your shell's history.
    """
    text = session.accounts.access_token()
    session.output.say(text, {"access_token": text})


@token.command(
    "verify",
    cls=AccountCommand,
    section=_SECTION,
    examples=(
        "lakehouse login alice --password-stdin < password.txt && lakehouse token verify",
        "lakehouse token show | lakehouse token verify --token-stdin",
    ),
)
@click.option(
    "--token-stdin", "from_stdin", is_flag=True, help="Check the token on standard input, one line."
)
@click.pass_obj
def verify(session: Session, from_stdin: bool) -> None:
    """Check an access token and show what it says: your own, or one on standard input."""
    text = piped_line("Token") if from_stdin else session.accounts.access_token()
    session.output.record(session.accounts.verify(text))
