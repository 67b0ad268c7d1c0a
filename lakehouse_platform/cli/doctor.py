"""The command that looks for what is wrong: installation, settings, storage, tables."""

from __future__ import annotations

from dataclasses import asdict

import click

from lakehouse_platform.cli.command import PlatformCommand
from lakehouse_platform.cli.exits import ExitStatus
from lakehouse_platform.cli.session import Session

_COLUMNS = ("status", "check", "subject", "detail")


@click.command(
    cls=PlatformCommand,
    section="Maintain",
    examples=("lakehouse doctor", "lakehouse doctor --json"),
)
@click.option("--strict", is_flag=True, help="Treat warnings as problems.")
@click.pass_context
def doctor(ctx: click.Context, strict: bool) -> None:
    """Check the installation, the settings, the storage and every table.

    Leaves with status 1 if something is wrong. Warnings, such as many small files, are no problem yet.
    """
    from lakehouse_platform.cli.checkup import Status, check_everything

    session = ctx.ensure_object(Session)
    findings = list(check_everything(session))
    session.output.listing([asdict(finding) for finding in findings], _COLUMNS)
    bad = {Status.PROBLEM, Status.WARNING} if strict else {Status.PROBLEM}
    if any(finding.status in bad for finding in findings):
        ctx.exit(ExitStatus.PROBLEM)
