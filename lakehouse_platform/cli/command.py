"""What all commands share: common options, an Examples section, and one way from errors to exit statuses."""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
from collections.abc import Generator, Sequence
from typing import Any, NoReturn

import click

from lakehouse_platform.cli.confirm import Declined
from lakehouse_platform.cli.exits import MEANINGS, ExitStatus, exit_status
from lakehouse_platform.cli.options import common_options, server_option
from lakehouse_platform.cli.output import to_json
from lakehouse_platform.cli.session import Session
from lakehouse_platform.errors import LakehouseError

_PASSED_ON = (click.ClickException, click.exceptions.Exit, click.Abort, SystemExit)


class PlatformCommand(click.Command):
    """A command with the common options and tested examples.

    Attributes:
        examples: Command lines for the help; the tests run every one.
        section: Heading under which the overview lists the command.
    """

    def __init__(
        self, *args: Any, examples: Sequence[str] = (), section: str = "Other", **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.examples = tuple(examples)
        self.section = section
        self.common = common_options()
        self.own = list(self.params)
        self.params = [*self.own, *self.common]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the command's own options, then the common ones."""
        _write_options(ctx, formatter, "Options", [one for one in self.own if isinstance(one, click.Option)])
        _write_options(ctx, formatter, "Common options", [*self.common, *_help_option(self, ctx)])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples."""
        if self.examples:
            with formatter.section("Examples"):
                for example in self.examples:
                    formatter.write(f"  {example}\n")


class AccountCommand(PlatformCommand):
    """A command that a server can answer in place of the lakehouse itself."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        option = server_option()
        self.common.insert(0, option)
        self.params.append(option)


class PlatformGroup(click.Group):
    """The program or a group of it: commands by section, and every error turned into its exit status.

    Attributes:
        section: Heading under which the overview lists the group.
    """

    def __init__(self, *args: Any, section: str = "Other", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.section = section

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order of their registration."""
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands section by section."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for name, command in self.commands.items():
            section = command.section if isinstance(command, PlatformCommand | PlatformGroup) else "Other"
            sections.setdefault(section, []).append((name, command.get_short_help_str(200)))
        for heading, rows in sections.items():
            with formatter.section(heading):
                formatter.write_dl(rows)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the exit statuses."""
        with formatter.section("Exit status"):
            formatter.write_dl([(str(status.value), meaning) for status, meaning in MEANINGS.items()])

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        """Parse; help that nobody reads to its end is no error."""
        with _quiet_when_the_reader_left():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> None:
        """Run the command and hand its output over, so that a failing pipe shows here."""
        with _quiet_when_the_reader_left():
            super().invoke(ctx)
            sys.stdout.flush()

    def main(self, args: Sequence[str] | None = None, *others: Any, **extra: Any) -> NoReturn:
        """Run the program and leave with a status of `ExitStatus`."""
        words = list(sys.argv[1:] if args is None else args)
        session: Session = extra.setdefault("obj", Session())
        session.as_json = "--json" in words  # known even when parsing fails
        extra["standalone_mode"] = False
        try:
            with contextlib.closing(session):
                status = super().main(words, *others, **extra) or ExitStatus.OK
        except BaseException as error:  # the engine's panics are no Exception
            if isinstance(error, (SystemExit, GeneratorExit)):
                raise
            status = report(error, session)
        sys.exit(int(status))


def report(error: BaseException, session: Session) -> ExitStatus:
    """Tell the user about an error on standard error and return the status to leave with."""
    if session.debug and not isinstance(error, _PASSED_ON):
        traceback.print_exception(error)
    if isinstance(error, click.UsageError) and not session.as_json:
        error.show()
        return ExitStatus.USAGE
    status, facts = _explained(error)
    click.echo(to_json(facts) if session.as_json else f"Error: {facts['message']}", err=True)
    return status


def _explained(error: BaseException) -> tuple[ExitStatus, dict[str, object]]:
    if isinstance(error, LakehouseError):
        return exit_status(type(error)), error.to_dict()
    if isinstance(error, click.UsageError):
        return ExitStatus.USAGE, {"code": "usage", "message": error.format_message()}
    if isinstance(error, Declined):
        return ExitStatus.PROBLEM, {"code": "declined", "message": error.format_message()}
    if isinstance(error, (click.Abort, KeyboardInterrupt)):
        return ExitStatus.INTERRUPTED, {"code": "interrupted", "message": "Interrupted."}
    if isinstance(error, (click.FileError, OSError)):
        return ExitStatus.IO, {"code": "io", "message": str(error) or type(error).__name__}
    summary = " ".join(str(error).split())[:300]
    message = (
        f"Internal error ({type(error).__name__}: {summary}). This is a bug, not a mistake of yours: "
        "run the command again with --debug and report what it prints."
    )
    return ExitStatus.INTERNAL, {"code": "internal_error", "message": message}


@contextlib.contextmanager
def _quiet_when_the_reader_left() -> Generator[None]:
    try:
        yield
    except BrokenPipeError:
        # Python flushes standard output once more at exit; there it must not fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise click.exceptions.Exit(ExitStatus.BROKEN_PIPE) from None


def _help_option(command: click.Command, ctx: click.Context) -> list[click.Parameter]:
    option = command.get_help_option(ctx)
    return [option] if option else []


def _write_options(
    ctx: click.Context, formatter: click.HelpFormatter, heading: str, options: Sequence[click.Parameter]
) -> None:
    records = [record for option in options if (record := option.get_help_record(ctx))]
    if records:
        with formatter.section(heading):
            formatter.write_dl(records)
