"""The command that serves a mount in the foreground."""

from __future__ import annotations

import json
import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lakehouse_platform.cli.command import AccountCommand, PlatformCommand, PlatformGroup
from lakehouse_platform.cli.session import Session

if TYPE_CHECKING:
    from lakehouse_platform.nfs.service import NfsServer


@click.group(cls=PlatformGroup, section="Mount")
def nfs() -> None:
    """Serve tables as files over NFSv3; `mount` does it for you."""


@nfs.command(
    cls=PlatformCommand,
    section="Mount",
    examples=(
        "lakehouse nfs serve customers --port 12049",
        "lakehouse nfs serve ./lakehouse --port 0 --json",
    ),
)
@click.argument("source", help="Table, its path or URI, or a lakehouse.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=12049, show_default=True, help="0 picks a free one."
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--read-only", is_flag=True, help="Refuse every change.")
@click.option("--allow-other", is_flag=True, help="Let all local users in, not only you and root.")
@click.option("--state", type=click.Path(path_type=Path), help="Directory for drafts and caches.")
@click.option("--mountpoint", type=click.Path(path_type=Path), hidden=True)
@click.pass_context
def serve(
    ctx: click.Context,
    source: str,
    port: int,
    host: str,
    read_only: bool,
    allow_other: bool,
    state: Path | None,
    mountpoint: Path | None,
) -> None:
    """Serve a table or a lakehouse until Ctrl-C or SIGTERM, and print what to mount.

    On SIGTERM it publishes what is complete and keeps the rest for the next start with the same state directory.
    """
    from lakehouse_platform.nfs.service import NfsServer

    session = ctx.ensure_object(Session)
    server = NfsServer(
        session.lakehouse.source(source),
        port=port,
        host=host,
        read_only=read_only,
        allow_other=allow_other,
        state_dir=state,
    )
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    server.start()
    try:
        _announce(server, session)
        stop.wait()
        if mountpoint is not None:
            _unmount(mountpoint)
    finally:
        server.shutdown()


@nfs.command(
    cls=AccountCommand,
    section="Mount",
    examples=(
        "lakehouse login alice --password-stdin < password.txt && lakehouse nfs ticket",
        "lakehouse nfs ticket --json",
    ),
)
@click.pass_obj
def ticket(session: Session) -> None:
    """Print the ticket with which who is signed in mounts from a server that runs.

    It stands for the owner's ticket in the path that `lakehouse nfs serve` prints, and is void when the sign-in ends.
    Whoever has it acts as you there; `lakehouse mount --from` fetches it by itself.
    """
    text = session.accounts.mount_ticket()
    session.output.say(text, {"ticket": text})


def _announce(server: NfsServer, session: Session) -> None:
    command = server.get_mount_command("/mnt/lake")
    if session.as_json:
        facts = {"port": server.port, "exports": server.exports, "mount_command": command}
        click.echo(json.dumps(facts))
    else:
        click.echo(f"Serving on port {server.port}. Mount it with:\n  {command}\nCtrl-C ends it.")
    sys.stdout.flush()


def _unmount(mountpoint: Path) -> None:
    from lakehouse_platform.errors import MountFailedError
    from lakehouse_platform.nfs import mounting

    if not mounting.is_mounted(mountpoint):
        return
    try:
        mounting.unmount(mountpoint)
    except MountFailedError as error:
        click.echo(
            f"{error.message} The server ends nevertheless; programs there will wait for it.", err=True
        )
