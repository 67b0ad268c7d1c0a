"""Free TCP ports on the loopback address, in blocks that two test runs never share."""

from __future__ import annotations

import random
import socket
from collections.abc import Generator
from contextlib import ExitStack, contextmanager

_HOST = "127.0.0.1"
_BLOCK = 16
# Below the kernel's range for outgoing connections (32768 and up): no client socket sits on them by chance.
_BLOCK_STARTS = range(10_240, 32_000, _BLOCK)


@contextmanager
def reserved_ports(count: int) -> Generator[list[int]]:
    """Yield `count` free ports that stay ours until the block ends.

    The first port of a block is its lock: we keep it bound, and every run of these tests binds it before it
    uses the rest.
    """
    for start in random.sample(_BLOCK_STARTS, len(_BLOCK_STARTS)):
        with socket.socket() as lock:
            ports = list(range(start + 1, start + 1 + count))
            if _binds(lock, start) and _all_free(ports):
                yield ports
                return
    raise OSError("No block of free ports is left on the loopback address.")


def _all_free(ports: list[int]) -> bool:
    with ExitStack() as probes:
        return all(_binds(probes.enter_context(socket.socket()), port) for port in ports)


def _binds(probe: socket.socket, port: int) -> bool:
    try:
        probe.bind((_HOST, port))
    except OSError:
        return False
    return True
