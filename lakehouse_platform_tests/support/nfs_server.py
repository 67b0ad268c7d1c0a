"""A live NFS server on a free port, its event loop in a thread of this process."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from lakehouse_platform.nfs.engine import Engine, Peer
from lakehouse_platform.nfs.operations import Filesystem
from lakehouse_platform.nfs.replay import ReplayCache
from lakehouse_platform.nfs.server import NfsListener

_T = TypeVar("_T")


def trust_everyone(transport: asyncio.Transport) -> Peer | None:
    """Admit every connection."""
    host, port = transport.get_extra_info("peername")[:2]
    return Peer(f"{host}:{port}", trusted=True)


@dataclass(frozen=True, slots=True)
class LiveServer:
    """A server that answers on `port`; `do` runs a coroutine on its loop and returns the result."""

    port: int
    listener: NfsListener
    loop: asyncio.AbstractEventLoop

    def do(self, coroutine: Coroutine[Any, Any, _T]) -> _T:
        """Run a coroutine on the server's loop."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(60)


@contextmanager
def nfs_server(
    filesystem: Filesystem,
    *,
    admit: Callable[[asyncio.Transport], Peer | None] = trust_everyone,
    max_connections: int = 16_384,
) -> Generator[LiveServer]:
    """Serve a file system until the block ends."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="nfs-server")
    thread.start()
    engine = Engine(filesystem, ReplayCache(), now=time.monotonic)
    listener = NfsListener(engine, admit, max_connections=max_connections)
    asyncio.run_coroutine_threadsafe(listener.start("127.0.0.1", 0), loop).result(10)
    server = LiveServer(listener.port, listener, loop)
    try:
        yield server
    finally:
        server.do(listener.close(drain_seconds=5))
        loop.call_soon_threadsafe(loop.stop)
        thread.join(30)
        loop.close()
