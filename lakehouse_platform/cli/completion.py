"""The command that prints shell completion scripts."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from lakehouse_platform.cli.command import PlatformCommand
from lakehouse_platform.cli.session import Session

_PROGRAM = "lakehouse"


@click.command(
    cls=PlatformCommand,
    section="Help",
    examples=("lakehouse completion bash", "lakehouse completion zsh", "lakehouse completion fish"),
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]), help="The shell.")
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion script of a shell: commands, options and table names on TAB.

    Load it in the current shell with `eval "$(lakehouse completion bash)"`, or put that line in ~/.bashrc.
    """
    completer = get_completion_class(shell)
    if completer is None:
        raise click.UsageError(f"There is no completion for {shell}.")
    # The variable is the one that click looks for when the script calls the program back.
    script = completer(ctx.find_root().command, {}, _PROGRAM, f"_{_PROGRAM.upper()}_COMPLETE").source()
    ctx.ensure_object(Session).output.say(script, {"shell": shell, "script": script})
