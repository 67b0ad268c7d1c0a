"""Commands that mount tables as files, list the mounts and undo them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lakehouse_platform.cli.command import PlatformCommand
from lakehouse_platform.cli.session import Session
from lakehouse_platform.errors import InvalidArgumentError, MountFailedError, SourceNotFoundError

if TYPE_CHECKING:
    from lakehouse_platform.nfs.mounting import Target
    from lakehouse_platform.nfs.mounts import MountRegistry

_COLUMNS = ("source", "mountpoint", "profile", "port", "pid", "state")
_STOP_SECONDS = 60.0
_PROFILES = ("sync", "bulk")  # importing the enum would load the server for --help


@click.command(
    cls=PlatformCommand,
    section="Mount",
    examples=(
        "sudo lakehouse mount customers ./files",
        "lakehouse mount ./lakehouse ./files --profile bulk --print && lakehouse unmount ./files",
    ),
)
@click.argument("source", help="Table, its path or URI, or a lakehouse.")
@click.argument("mountpoint", type=click.Path(path_type=Path), help="Empty directory; made if missing.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, help="Port of the server  [default: a free one]"
)
@click.option(
    "--profile",
    type=click.Choice(_PROFILES),
    default="sync",
    show_default=True,
    help="sync: every write waits for its answer. bulk: faster for big files, but a shell's own echo sees no error.",
)
@click.option("--read-only", is_flag=True, help="Refuse every change.")
@click.option("--allow-other", is_flag=True, help="Let all local users in, not only you and root.")
@click.option("--print", "print_only", is_flag=True, help="Start the server, but only print how to mount.")
@click.pass_context
def mount(
    ctx: click.Context,
    source: str,
    mountpoint: Path,
    port: int,
    profile: str,
    read_only: bool,
    allow_other: bool,
    print_only: bool,
) -> None:
    """Show a table, or all tables of a lakehouse, as files.

    Starts a server in the background and mounts it, which needs root or sudo without a password. `unmount` ends both.
    """
    from lakehouse_platform.nfs import mounting
    from lakehouse_platform.nfs.mounts import MountRecord

    session = ctx.ensure_object(Session)
    place = _free_place(mountpoint, registry := _registry())
    flags = [*(["--read-only"] if read_only else []), *(["--allow-other"] if allow_other else [])]
    ready, pid = _start_server(session, source, port, place, flags, registry)
    registry.add(
        MountRecord(
            source=source,
            mountpoint=str(place),
            profile=profile,
            read_only=read_only,
            pid=pid,
            port=ready["port"],
        )
    )
    target = mounting.Target(
        host="127.0.0.1",
        port=ready["port"],
        export=ready["exports"][profile],
        profile=mounting.Profile(profile),
        read_only=read_only,
    )
    facts = {"mountpoint": str(place), "port": target.port, "pid": pid, "mounted": not print_only}
    if print_only:
        session.output.say(_by_hand(target, place), {**facts, "commands": _commands(target, place)})
        return
    mounting.mount(target, place)
    session.output.say(f"{source} is mounted at {place}; `lakehouse unmount {mountpoint}` ends it.", facts)


@click.command(cls=PlatformCommand, section="Mount", examples=("sudo lakehouse unmount ./files",))
@click.argument("mountpoint", type=click.Path(path_type=Path), help="Where it is mounted.")
@click.pass_context
def unmount(ctx: click.Context, mountpoint: Path) -> None:
    """Publish what is complete, unmount, and end the server."""
    from lakehouse_platform.nfs import mounting

    session, registry = ctx.ensure_object(Session), _registry()
    place = mountpoint.absolute()
    record = registry.find(str(place))
    if record is None:
        raise SourceNotFoundError(f"Nothing of ours is mounted at {place}: see `lakehouse mounts`.")
    if record.is_alive and mounting.is_mounted(place):
        mounting.unmount(place)
    elif mounting.is_mounted(place):
        mounting.unmount(place, force=True)  # its server is gone, so nothing can be written any more
    record.stop(_STOP_SECONDS)
    registry.remove(str(place))
    session.output.say(f"{place} is unmounted.", {"mountpoint": str(place), "mounted": False})


@click.command(cls=PlatformCommand, section="Mount", examples=("lakehouse mounts", "lakehouse mounts --json"))
@click.pass_context
def mounts(ctx: click.Context) -> None:
    """List the mounts of this user and whether their servers run."""
    from lakehouse_platform.nfs import mounting

    items: list[dict[str, Any]] = []
    for record in _registry().all():
        mounted = mounting.is_mounted(Path(record.mountpoint))
        state = ("mounted" if mounted else "not mounted") if record.is_alive else "server is gone"
        items.append(
            {
                "source": record.source,
                "mountpoint": record.mountpoint,
                "profile": record.profile,
                "port": record.port,
                "pid": record.pid,
                "state": state,
            }
        )
    ctx.ensure_object(Session).output.listing(items, _COLUMNS)


def _registry() -> MountRegistry:
    from lakehouse_platform.nfs.mounts import MountRegistry
    from lakehouse_platform.nfs.state import state_home

    return MountRegistry(state_home() / "mounts")


def _free_place(mountpoint: Path, registry: MountRegistry) -> Path:
    from lakehouse_platform.nfs import mounting

    place = mountpoint.absolute()
    record = registry.find(str(place))
    if mounting.is_mounted(place) or (record is not None and record.is_alive):
        raise InvalidArgumentError(
            f"{place} is in use by a mount: run `lakehouse unmount {mountpoint}` first."
        )
    if place.exists() and not place.is_dir():
        raise InvalidArgumentError(f"{place} is a file: name a new or empty directory to mount at.")
    place.mkdir(parents=True, exist_ok=True)
    if any(place.iterdir()):
        raise InvalidArgumentError(f"{place} is not empty: name a new or empty directory to mount at.")
    return place


def _start_server(
    session: Session, source: str, port: int, place: Path, flags: list[str], registry: MountRegistry
) -> tuple[dict[str, Any], int]:
    """Start the server in the background and return what it prints once it answers."""
    registry.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    log_path = registry.log_path(str(place))
    words = ["nfs", "serve", source, "--port", str(port), "--json", "--mountpoint", str(place), *flags]
    with log_path.open("w") as log:
        process = subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-m", "lakehouse_platform", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,
            env={**os.environ, **_settings(session)},
        )
    assert process.stdout  # noqa: S101 - opened as a pipe
    line = process.stdout.readline()
    if line:
        return json.loads(line), process.pid
    process.wait()
    raise MountFailedError(f"The server did not start: {_reason(log_path)}", source=source)


def _reason(log_path: Path) -> str:
    text = log_path.read_text().strip()
    try:
        return json.loads(text.splitlines()[-1])["message"]
    except (ValueError, KeyError, IndexError, TypeError):
        return text or "it printed nothing."


def _settings(session: Session) -> dict[str, str]:
    """Hand the common options on without showing them in the list of processes."""
    given: dict[str, str] = {}
    if session.base_path:
        given["LAKEHOUSE_BASE_PATH"] = session.base_path
    if session.config_file:
        given["LAKEHOUSE_CONFIG"] = str(Path(session.config_file).absolute())
    if session.storage_options:
        given["LAKEHOUSE_STORAGE_OPTIONS"] = json.dumps(session.storage_options)
    return given


def _commands(target: Target, place: Path) -> dict[str, str]:
    from lakehouse_platform.nfs.mounting import Platform, command_line

    places = {Platform.LINUX: str(place), Platform.MACOS: str(place), Platform.WINDOWS: "Z:"}
    return {platform.value: command_line(target, where, platform) for platform, where in places.items()}


def _by_hand(target: Target, place: Path) -> str:
    lines = [
        f"The server answers on port {target.port}. Mount it by hand, `lakehouse unmount {place}` ends it."
    ]
    return "\n".join([*lines, *(f"{name}:\n  {line}" for name, line in _commands(target, place).items())])
