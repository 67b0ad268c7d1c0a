"""A mount's server for synchronous programs: it runs in a thread of its own."""

from __future__ import annotations

import asyncio
import ipaddress
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Self, TypeAlias

from lakehouse_platform.errors import InvalidArgumentError
from lakehouse_platform.nfs import mounting
from lakehouse_platform.nfs.composition import MountOptions, OpenedTree, open_file_tree, source_uri
from lakehouse_platform.nfs.engine import Engine, Peer
from lakehouse_platform.nfs.replay import ReplayCache
from lakehouse_platform.nfs.server import NfsListener
from lakehouse_platform.nfs.state import default_state_directory
from lakehouse_platform.nfs.tickets import user_path
from lakehouse_platform.services.lakehouse import Lakehouse
from lakehouse_platform.store.database import DatabaseOps
from lakehouse_platform.store.location import Location
from lakehouse_platform.store.table import Table
from lakehouse_platform.store.tables import SYSTEM_TABLES

Servable: TypeAlias = Lakehouse | Table | DatabaseOps | str
# Threads for what blocks: slow queries must not keep edits from being written.
_THREADS = 32
_DRAIN_SECONDS = 10.0


class NfsServer:
    """Serves a lakehouse or a table over NFSv3.

    Use as a context manager, or call `start` and `shutdown`.
    """

    def __init__(
        self,
        source: Servable,
        port: int = 0,
        *,
        host: str = "127.0.0.1",
        state_dir: Path | None = None,
        read_only: bool = False,
        allow_other: bool = False,
        options: MountOptions | None = None,
    ) -> None:
        """Prepare a server; nothing is opened before `start`.

        Args:
            source: A lakehouse, a table, or what names one: a table's name, a path or a URI.
            port: TCP port of NFS and MOUNT; 0 takes a free one.
            host: Address to listen on; with one that other machines reach, the ticket in the export's path is all that
                keeps them out.
            state_dir: Where edits and caches are kept; by default a directory for each source below the user's state
                directory. The same directory after a restart lets mounts go on.
            read_only: Whether every change is refused.
            allow_other: Whether all users of a mount are let in, not only the owner and root.
            options: Everything else; takes the place of the two before, and says whether other machines are let in.

        Raises:
            InvalidArgumentError: It is a system table.
            SourceNotFoundError: The text names nothing.
        """
        self._source = _resolved(source)
        self._host = host
        self._wanted_port = port
        self._state_dir = state_dir or default_state_directory(source_uri(self._source))
        self._options = options or MountOptions(
            read_only=read_only, allow_other=allow_other, allow_remote=not _is_loopback(host)
        )
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._port = 0
        self._exports: dict[str, str] = {}

    # ── Life ──────────────────────────────────────────────────────────────────────────────────────

    def start(self) -> Self:
        """Serve in the background; returns when clients can connect.

        Raises:
            ConfigError: Another server uses the state directory.
            StorageIoError, StoragePermissionError: The state directory cannot be used.
            OSError: The port is taken.
        """
        if self._thread is not None:
            return self
        ready: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, args=(ready,), name="nfs-server", daemon=True)
        self._thread.start()
        try:
            ready.result()
        except BaseException:
            self._thread.join()
            self._thread = None
            raise
        return self

    def shutdown(self) -> None:
        """Publish what is complete, keep the rest for the next start, and end."""
        thread, loop, stop = self._thread, self._loop, self._stop
        if thread is None or loop is None or stop is None:
            return
        if thread.is_alive():
            loop.call_soon_threadsafe(stop.set)
        thread.join()
        self._thread = None
        self._port = 0

    def serve(self) -> None:
        """Serve until interrupted."""
        self.start()
        try:
            while self.is_ready():
                time.sleep(1.0)
        finally:
            self.shutdown()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.shutdown()

    # ── Facts ─────────────────────────────────────────────────────────────────────────────────────

    def is_ready(self) -> bool:
        """Tell whether clients can connect."""
        return self._port != 0 and self._thread is not None and self._thread.is_alive()

    @property
    def port(self) -> int:
        """The port that is served; 0 while there is none."""
        return self._port

    @property
    def exports(self) -> dict[str, str]:
        """The paths to mount, by profile: `sync` and `bulk`. Whoever knows one may mount."""
        return dict(self._exports)

    def get_mount_command(self, mountpoint: str, *, profile: str = "sync", ticket: str | None = None) -> str:
        """Return the command that mounts this server here, to be run by hand.

        Args:
            mountpoint: An empty directory.
            profile: `sync` or `bulk`.
            ticket: The ticket of the user whose mount it is to be, from `AuthActor.mount_ticket`; None for the owner.
        """
        export = self._exports[profile]
        target = mounting.Target(
            host=self._host,
            port=self.port,
            export=export if ticket is None else user_path(export, ticket),
            profile=mounting.Profile(profile),
            read_only=self._options.read_only,
        )
        return mounting.command_line(target, mountpoint, mounting.this_platform())

    # ── The server's thread ───────────────────────────────────────────────────────────────────────

    def _run(self, ready: Future[None]) -> None:
        try:
            asyncio.run(self._serve(ready))
        except BaseException as error:
            if ready.done():
                raise
            ready.set_exception(error)

    async def _serve(self, ready: Future[None]) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        self._loop.set_default_executor(ThreadPoolExecutor(_THREADS, "nfs"))
        async with open_file_tree(self._source, self._state_dir, self._options) as opened:
            listener = _listener(opened)
            await listener.start(self._host, self._wanted_port)
            self._port, self._exports = listener.port, opened.exports
            ready.set_result(None)
            try:
                await self._stop.wait()
            finally:
                await listener.close(_DRAIN_SECONDS)


def _listener(opened: OpenedTree) -> NfsListener:
    def admit(transport: asyncio.Transport) -> Peer | None:
        peer, local = transport.get_extra_info("peername"), transport.get_extra_info("sockname")
        if peer is None or local is None:
            return None
        return Peer(f"{peer[0]}:{peer[1]}", opened.access.is_trusted(peer, local))

    engine = Engine(opened.tree, ReplayCache(), now=time.monotonic)
    return NfsListener(engine, admit)


def _resolved(source: Servable) -> Lakehouse | Table:
    if isinstance(source, str):
        source = Lakehouse.open().source(source)
    found = source.table if isinstance(source, DatabaseOps) else source
    if isinstance(found, Table) and _is_system_table(found):
        raise InvalidArgumentError(
            f"{found.name} is a system table: it holds secrets, and only the platform changes it. Serve another one."
        )
    return found


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _is_system_table(table: Table) -> bool:
    base = Location.parse(table.config.base_path)
    return table.name in SYSTEM_TABLES and table.location.uri == base.child(table.name).uri
