"""Commands that mount tables as files, list the mounts and undo them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lakehouse_platform.cli.command import AccountCommand, PlatformCommand
from lakehouse_platform.cli.session import Session
from lakehouse_platform.errors import InvalidArgumentError, MountFailedError, SourceNotFoundError

if TYPE_CHECKING:
    from lakehouse_platform.nfs.mounting import Target
    from lakehouse_platform.nfs.mounts import MountRegistry

_COLUMNS = ("source", "mountpoint", "profile", "port", "pid", "state")
_STOP_SECONDS = 60.0
_LAST_PORT = 65_535
_PROFILES = ("sync", "bulk")  # importing the enum would load the server for --help
_ELSEWHERE = (
    "whoever owns the lakehouse's files runs `lakehouse nfs serve`, and you mount it with --from HOST:PORT."
)


@click.command(
    cls=AccountCommand,
    section="Mount",
    examples=(
        "sudo lakehouse mount customers ./files",
        "lakehouse mount ./lakehouse ./files --profile bulk --print && lakehouse unmount ./files",
        "lakehouse login alice --password-stdin < password.txt && lakehouse mount lake ./new --from nas:12049 --print",
    ),
)
@click.argument(
    "source", help="Table, its path or URI, or a lakehouse; with --from a table's name, or `lake`."
)
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
@click.option(
    "--from", "running", metavar="HOST:PORT", help="Start nothing: mount from `lakehouse nfs serve` there."
)
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
    running: str | None,
) -> None:
    """Show a table, or all tables of a lakehouse, as files.

    Starts a server in the background and mounts it, which needs root or sudo without a password. `unmount` ends both.
    Whoever is signed in sees and changes what their rights allow, as long as the sign-in lasts. With --from a server
    that runs elsewhere is mounted for who is signed in, at --server or here; `umount` of the system ends that.
    """
    session = ctx.ensure_object(Session)
    wishes = _Wishes(mountpoint, profile, read_only=read_only, print_only=print_only)
    if running is None:
        if session.server is not None:
            raise click.UsageError(f"--server tells who mounts, not from where: {_ELSEWHERE}")
        _mount_started(session, source, wishes, port=port, allow_other=allow_other)
    elif port or allow_other:
        raise click.UsageError(
            "--port and --allow-other are for a server that is started: --from starts none."
        )
    else:
        _mount_running(session, source, wishes, running)


@dataclass(frozen=True, slots=True)
class _Wishes:
    """Where and how something is to be mounted."""

    mountpoint: Path
    profile: str
    read_only: bool
    print_only: bool


def _mount_started(session: Session, source: str, wishes: _Wishes, *, port: int, allow_other: bool) -> None:
    """Start a server and mount it, for who is signed in at the lakehouse itself or the owner of its files."""
    from lakehouse_platform.nfs import mounting
    from lakehouse_platform.nfs.mounts import MountRecord
    from lakehouse_platform.nfs.tickets import user_path

    place = _free_place(wishes.mountpoint, registry := _registry())
    served, ticket = _for_whom(session, source)
    flags = [*(["--read-only"] if wishes.read_only else []), *(["--allow-other"] if allow_other else [])]
    ready, pid = _start_server(session, served, port, place, flags, registry)
    registry.add(
        MountRecord(
            source=source,
            mountpoint=str(place),
            profile=wishes.profile,
            read_only=wishes.read_only,
            pid=pid,
            port=ready["port"],
        )
    )
    export = ready["exports"][wishes.profile]
    target = mounting.Target(
        host="127.0.0.1",
        port=ready["port"],
        export=export if ticket is None else user_path(export, ticket),
        profile=mounting.Profile(wishes.profile),
        read_only=wishes.read_only,
    )
    facts = {
        "mountpoint": str(place),
        "port": target.port,
        "pid": pid,
        "mounted": not wishes.print_only,
        "acts_as": "owner" if ticket is None else "user",
    }
    whose = "the owner of the files" if ticket is None else "who is signed in"
    if wishes.print_only:
        session.output.say(_by_hand(target, place, whose), {**facts, "commands": _commands(target, place)})
        return
    mounting.mount(target, place)
    session.output.say(
        f"{source} is mounted at {place} for {whose}; `lakehouse unmount {wishes.mountpoint}` ends it.", facts
    )


def _mount_running(session: Session, name: str, wishes: _Wishes, running: str) -> None:
    """Mount from a server that runs, for who is signed in at a server of the HTTP API or at the lakehouse itself."""
    from lakehouse_platform.nfs import mounting, tickets

    host, port = _address(running)
    if "/" in name:
        raise InvalidArgumentError(
            f"{name!r} is no name that a server shows: with --from name a table, or `lake` for all of them."
        )
    wanted = tickets.Profile[wishes.profile.upper()]
    exported = tickets.export_name(name.encode(), wanted).decode()
    ticket = session.accounts.mount_ticket()
    place = _free_place(wishes.mountpoint, _registry())
    target = mounting.Target(
        host=host,
        port=port,
        export=tickets.user_path(exported, ticket),
        profile=mounting.Profile(wishes.profile),
        read_only=wishes.read_only,
    )
    facts = {"mountpoint": str(place), "port": port, "mounted": not wishes.print_only, "acts_as": "user"}
    if wishes.print_only:
        said = _lines("Mount it by hand for who is signed in, `sudo umount` ends it.", target, place)
        session.output.say(said, {**facts, "commands": _commands(target, place)})
        return
    mounting.mount(target, place)
    session.output.say(
        f"{name} of {running} is mounted at {place} for who is signed in; `sudo umount {wishes.mountpoint}` ends it.",
        facts,
    )


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
        raise SourceNotFoundError(
            f"No server of ours is mounted at {place}: see `lakehouse mounts`; `sudo umount` ends others."
        )
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


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not (port.isascii() and port.isdigit()) or not 0 < int(port) <= _LAST_PORT:
        raise InvalidArgumentError(f"{text!r} is no HOST:PORT: give both, as `lakehouse nfs serve` has them.")
    return host, int(port)


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


def _for_whom(session: Session, source: str) -> tuple[str, str | None]:
    """Return what to serve and the ticket of who is signed in there; as it was named, and None, for the files' owner.

    By a symbolic link it is the same table or lakehouse, and the user's rights are on its own name.

    Raises:
        AuthError: Somebody has signed in, but the sign-in does not count any more.
    """
    from lakehouse_platform.cli.local_sign_in import LocalSignIn
    from lakehouse_platform.services.lakehouse import Lakehouse

    here = session.lakehouse
    try:
        found = here.source(source)
    except SourceNotFoundError as error:
        if session.config.server is None:
            raise
        raise SourceNotFoundError(
            f"{error.message} A mount is made where the files are; for those of {session.config.server} "
            f"{_ELSEWHERE}",
            **error.details,
        ) from error
    if isinstance(found, Lakehouse):
        lakehouse = here if here.is_same(found) else found
        place = lakehouse.store.base
    elif (name := here.name_of(found)) is not None:
        lakehouse, place = here, here.store.table(name).location
    else:
        return source, None
    with lakehouse:
        actor = LocalSignIn(lakehouse).actor()
        if actor.session_id is None:
            return source, None
        return place.uri, lakehouse.accounts.mount_ticket(actor)


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


def _by_hand(target: Target, place: Path, whose: str) -> str:
    how = f"Mount it by hand for {whose}, `lakehouse unmount {place}` ends it."
    return _lines(f"The server answers on port {target.port}. {how}", target, place)


def _lines(said: str, target: Target, place: Path) -> str:
    return "\n".join([said, *(f"{name}:\n  {line}" for name, line in _commands(target, place).items())])
