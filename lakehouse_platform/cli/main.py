"""The program `lakehouse`: its commands, in the order of the overview."""

from __future__ import annotations

from importlib.metadata import version

import click

from lakehouse_platform.cli import (
    audit,
    completion,
    doctor,
    keys,
    maintain,
    maintenance,
    mount,
    nfs,
    properties,
    query,
    serve,
    sign_in,
    tables,
    tokens,
    user_rights,
    versions,
    write,
)
from lakehouse_platform.cli.command import PlatformGroup
from lakehouse_platform.cli.interrupts import prompt_interrupts
from lakehouse_platform.cli.options import common_options

_COMMANDS: tuple[click.Command, ...] = (
    tables.init,
    tables.create,
    tables.drop,
    properties.set_primary_key,
    properties.add_columns,
    properties.properties,
    properties.constraints,
    tables.tables,
    tables.schema,
    tables.describe,
    maintenance.stats,
    write.insert,
    write.append,
    write.merge,
    write.update,
    write.delete,
    query.query,
    query.sql,
    query.export,
    query.at,
    versions.history,
    versions.diff,
    versions.changes,
    versions.restore,
    mount.mount,
    mount.unmount,
    mount.mounts,
    nfs.nfs,
    maintenance.compact,
    maintenance.optimize,
    maintenance.zorder,
    maintenance.vacuum,
    maintenance.checkpoint,
    maintain.maintain,
    sign_in.login,
    sign_in.logout,
    sign_in.whoami,
    sign_in.password,
    tokens.token,
    user_rights.users,
    keys.keys,
    audit.audit,
    serve.serve,
    doctor.doctor,
    completion.completion,
)


@click.group(
    "lakehouse", cls=PlatformGroup, params=common_options(), context_settings={"max_content_width": 110}
)
@click.version_option(version("lakehouse-platform"), prog_name="lakehouse")
def cli() -> None:
    """A lakehouse of Delta tables.

    TARGET is the name of a table in the lakehouse, a path, or a URI such as s3://bucket/table.
    """


for _command in _COMMANDS:
    cli.add_command(_command)


def main() -> None:
    """Run the program; the console script starts here."""
    with prompt_interrupts():
        cli.main(prog_name="lakehouse")
