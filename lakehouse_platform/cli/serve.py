"""The command that serves the lakehouse over HTTP."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import click

from lakehouse_platform.cli.command import PlatformCommand
from lakehouse_platform.cli.interrupts import patient_interrupts
from lakehouse_platform.cli.session import Session

if TYPE_CHECKING:
    from lakehouse_platform.api.serving import Ready


@click.command(
    cls=PlatformCommand,
    section="Serve",
    examples=("lakehouse serve", "lakehouse serve --port 0 --json"),
)
@click.option("--host", metavar="ADDRESS", help="Address to listen on  [setting: api_host]")
@click.option(
    "--port", type=click.IntRange(0, 65535), metavar="N", help="0 picks a free one  [setting: api_port]"
)
@click.pass_obj
def serve(session: Session, host: str | None, port: int | None) -> None:
    """Serve the lakehouse over HTTP until Ctrl-C or SIGTERM, and say where once it answers.

    It then takes no further requests, lets the running ones end, and writes what the audit log still holds.
    """
    from lakehouse_platform.api.serving import serve as serve_http

    chosen: dict[str, Any] = {"api_host": host, "api_port": port}
    given = {name: value for name, value in chosen.items() if value is not None}
    config = session.config_with(**given)
    with patient_interrupts():
        serve_http(config, on_ready=lambda ready: _announce(ready, as_json=session.as_json))


def _announce(ready: Ready, *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps({"url": ready.url, "host": ready.host, "port": ready.port}))
    else:
        click.echo(f"Serving at {ready.url}. Ctrl-C ends it.")
    sys.stdout.flush()
