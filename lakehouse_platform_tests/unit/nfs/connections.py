"""Real connections over loopback: made here, or by a process of another user."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager

NOBODY = 65534
_PATIENCE = 30.0
# Drops its rights in time to make its socket without them, but when all of Python that it needs is loaded.
_STRANGER = """
import os, socket, sys

os.setgroups([])
os.setgid(65534)
os.setuid(65534)
with socket.socket() as connection:
    connection.connect((sys.argv[1], int(sys.argv[2])))
    sys.stdin.readline()
    connection.close()
    print("closed", flush=True)
    sys.stdin.read()
"""


@contextmanager
def connected(
    family: socket.AddressFamily = socket.AF_INET, address: str = "127.0.0.1"
) -> Generator[tuple[socket.socket, socket.socket]]:
    """Yield the server's and the client's end of a connection that this process made with itself."""
    with socket.create_server((address, 0), family=family) as listener, socket.socket(family) as client:
        client.connect(listener.getsockname()[:2])
        server, _ = listener.accept()
        with server:
            yield server, client


@contextmanager
def connected_by_stranger() -> Generator[tuple[socket.socket, subprocess.Popen[str]]]:
    """Yield the server's end of a connection that another user made, and its process; a line makes it close its end."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(_PATIENCE)
        command = [sys.executable, "-c", _STRANGER, *map(str, listener.getsockname())]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as stranger:
            server, _ = listener.accept()
            with server:
                yield server, stranger
            stranger.kill()
