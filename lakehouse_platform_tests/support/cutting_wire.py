"""A TCP proxy in front of a server that can break connections: the request arrives, the answer does not, or in part."""

from __future__ import annotations

import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

_PIECE = 65_536


class CuttingWire:
    """Passes bytes on until it is told to cut.

    Attributes:
        base_url: Where it listens.
        connections: How many were made through it.
    """

    def __init__(self, upstream: str) -> None:
        self._upstream = urlsplit(upstream)
        self._lock = threading.Lock()
        self._left: list[int] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.base_url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.connections = 0

    def cut(self, *after: int) -> None:
        """Break the connections of the next answers, each after so many of its bytes; 0 for before the first."""
        with self._lock:
            self._left = list(after)

    def cuts_left(self) -> int:
        """Return how many answers are still to be cut."""
        with self._lock:
            return len(self._left)

    def serve(self) -> None:
        """Take connections until `close`."""
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self.connections += 1
                threading.Thread(target=self._connect, args=(client,), daemon=True).start()

    def close(self) -> None:
        """Take no more connections."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _connect(self, client: socket.socket) -> None:
        assert self._upstream.hostname is not None
        server = socket.create_connection((self._upstream.hostname, self._upstream.port or 80))
        threading.Thread(target=self._pass_on, args=(client, server), daemon=True).start()
        self._answer(server, client)

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while piece := source.recv(_PIECE):
                target.sendall(piece)
            target.shutdown(socket.SHUT_WR)

    def _answer(self, server: socket.socket, client: socket.socket) -> None:
        with suppress(OSError):
            while piece := server.recv(_PIECE):
                allowed = self._allowed(len(piece))
                client.sendall(piece[:allowed])
                if allowed < len(piece):
                    break
        for end in (client, server):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _allowed(self, count: int) -> int:
        with self._lock:
            if not self._left:
                return count
            if self._left[0] >= count:
                self._left[0] -= count
                return count
            return self._left.pop(0)


@contextmanager
def cutting_wire(upstream: str) -> Generator[CuttingWire]:
    """Run a proxy in front of a server."""
    wire = CuttingWire(upstream)
    thread = threading.Thread(target=wire.serve, daemon=True)
    thread.start()
    try:
        yield wire
    finally:
        wire.close()
        thread.join()
