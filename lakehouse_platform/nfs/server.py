"""A TCP port on which NFS, MOUNT and the port mapper are served."""

from __future__ import annotations

import asyncio
import logging
import resource
from collections.abc import Callable
from typing import Final

from lakehouse_platform.nfs.connection import Connection, Shared, receive_buffer
from lakehouse_platform.nfs.engine import Engine, Peer

_logger = logging.getLogger(__name__)

_ACCEPT_BACKLOG: Final = 1024
_RESERVED_FILES: Final = 512  # left for tables, segments and spools


class NfsListener:
    """Accepts connections and answers what comes over them.

    Args:
        engine: Answers the records.
        admit: Says who is at the other end of a connection; None turns it away.
        max_connections: How many may be open; fewer if the process may not have so many files.
    """

    def __init__(
        self,
        engine: Engine,
        admit: Callable[[asyncio.Transport], Peer | None],
        *,
        max_connections: int = 16_384,
    ) -> None:
        self._engine = engine
        self._admit = admit
        self._max_connections = max_connections
        self._is_closing = False
        self._connections: set[Connection] = set()
        self._shared = Shared(
            engine, self._admit_one, self._connections.add, self._connections.discard, receive_buffer()
        )
        self._server: asyncio.Server | None = None

    @property
    def port(self) -> int:
        """The port that was bound; 0 before the start."""
        return self._server.sockets[0].getsockname()[1] if self._server and self._server.sockets else 0

    @property
    def connections(self) -> int:
        """How many clients are connected."""
        return len(self._connections)

    async def start(self, host: str, port: int) -> None:
        """Listen on a host's address and a port; port 0 takes a free one."""
        files = _raise_file_limit(self._max_connections + _RESERVED_FILES)
        self._max_connections = min(self._max_connections, files - _RESERVED_FILES)
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: Connection(self._shared), host, port, backlog=_ACCEPT_BACKLOG
        )
        self._engine.serve_at(self.port)

    async def serve_forever(self) -> None:
        """Serve until cancelled or closed."""
        if self._server:
            await self._server.serve_forever()

    async def close(self, drain_seconds: float = 10.0) -> None:
        """Accept no more, answer what is under way, and close every connection.

        Args:
            drain_seconds: How long to wait for operations and for clients that do not take their answers.
        """
        if self._server is None:
            return
        self._is_closing = True
        self._server.close()
        await self._drain(drain_seconds)
        for connection in list(self._connections):
            connection.abort()
        await self._server.wait_closed()

    async def _drain(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await asyncio.gather(*(connection.drain() for connection in list(self._connections)))
        except TimeoutError:
            _logger.warning("closing %d connections with unanswered calls", len(self._connections))

    def _admit_one(self, transport: asyncio.Transport) -> Peer | None:
        if self._is_closing:
            return None
        if len(self._connections) < self._max_connections:
            return self._admit(transport)
        _logger.warning("turned a connection away: %d are open", len(self._connections))
        return None


def _raise_file_limit(wanted: int) -> int:
    """Let the process open so many files, or as many as it may, and return how many that is."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return wanted
    reachable = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (reachable, hard))
    except (OSError, ValueError):  # macOS says unlimited and means kern.maxfilesperproc
        _logger.warning("the process may open only %d files", soft)
        return soft
    return reachable
