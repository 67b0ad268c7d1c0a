"""A bare asyncio TCP sender in a process of its own: what the mount's server is measured against.

`python -m bench.nfs_peers SIZE` holds so many bytes in memory and prints its port. It is asked with 8 bytes, the number
of bytes to send, and sends them.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import subprocess
import sys
from dataclasses import dataclass
from typing import Self

_PIECE = 1 << 20
_ASKED = struct.Struct(">Q")


async def serve(size: int) -> None:
    """Serve until killed."""
    data = memoryview(bytes(range(256)) * (size // 256 + 1))

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                (wanted,) = _ASKED.unpack(await reader.readexactly(_ASKED.size))
                for start in range(0, wanted, _PIECE):
                    writer.write(data[start : min(start + _PIECE, wanted)])
                    await writer.drain()
        except asyncio.IncompleteReadError:
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await server.serve_forever()


@dataclass(frozen=True, slots=True)
class BareSender:
    """A running sender and a connection to it."""

    process: subprocess.Popen[str]
    connection: socket.socket

    @classmethod
    def start(cls, size: int) -> Self:
        """Start one that can send up to `size` bytes."""
        process = subprocess.Popen(
            [sys.executable, "-m", "bench.nfs_peers", str(size)], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout
        port = int(process.stdout.readline())
        connection = socket.create_connection(("127.0.0.1", port))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return cls(process, connection)

    def receive(self, size: int) -> None:
        """Ask for bytes and receive them all."""
        buffer = memoryview(bytearray(min(size, _PIECE)))
        self.connection.sendall(_ASKED.pack(size))
        while size:
            size -= self.connection.recv_into(buffer[:size], 0, socket.MSG_WAITALL)

    def close(self) -> None:
        """End it."""
        self.connection.close()
        self.process.kill()
        self.process.communicate()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))
