"""Which local user holds the other end of a loopback connection: what AUTH_SYS claims, the kernel knows.

Linux lists every TCP socket with the user id of its owner in /proc/net/tcp and /proc/net/tcp6 (proc(5)). The kernel's
own NFS client shows as 0.
"""

from __future__ import annotations

import ipaddress
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_ESTABLISHED = "01"
# The kernel writes the tables while sockets come and go, and may skip one that has been there all along.
_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One end of a TCP connection; IPv4 addresses mapped into IPv6 are the IPv4 addresses they stand for."""

    address: ipaddress.IPv4Address | ipaddress.IPv6Address
    port: int

    @classmethod
    def of(cls, name: tuple[str, int] | tuple[str, int, int, int]) -> Endpoint:
        """Return the endpoint that `getpeername` or `getsockname` names."""
        host, port = name[:2]
        return cls(_unmapped(ipaddress.ip_address(host.partition("%")[0])), port)

    @property
    def is_loopback(self) -> bool:
        """Whether it is on this machine."""
        return self.address.is_loopback


def can_tell_owners() -> bool:
    """Tell whether this system lists the owners of sockets; elsewhere only the ticket keeps other users out."""
    return sys.platform == "linux" and _TABLES[0].exists()


def owner_of_peer(peer: Endpoint, local: Endpoint) -> int | None:
    """Return the user id of the owner of a loopback connection's other end, or None if it is gone.

    Takes time in proportion to the machine's TCP sockets (4 000 on two busy cores: 0.1 s): once for each connection.

    Args:
        peer: The other end.
        local: Our end.
    """
    for _ in range(_ATTEMPTS):
        for line in _candidates(peer.port, local.port):
            owner = _owner(line, peer, local)
            if owner is not None:
                return owner
    return None


def _candidates(near_port: int, far_port: int) -> Iterator[str]:
    near, far = f":{near_port:04X} ", f":{far_port:04X} {_ESTABLISHED} "
    for table in _TABLES:
        if table.exists():
            lines = table.read_text(encoding="ascii").splitlines()
            yield from (line for line in lines if near in line and far in line)


def _owner(line: str, peer: Endpoint, local: Endpoint) -> int | None:
    _, near, far, _, _, _, _, owner, _, inode, *_ = line.split()
    # A socket that its process has closed belongs to nobody and shows as 0, as root's would. It is not established any
    # more then, and has no inode.
    is_it = inode != "0" and _endpoint(near) == peer and _endpoint(far) == local
    return int(owner) if is_it else None


def _endpoint(text: str) -> Endpoint:
    """Read `0100007F:1F90`: 32-bit words of the address in the machine's order, the port in the network's."""
    address, port = text.split(":")
    words = (int(address[at : at + 8], 16) for at in range(0, len(address), 8))
    packed = b"".join(word.to_bytes(4, sys.byteorder) for word in words)
    return Endpoint(_unmapped(ipaddress.ip_address(packed)), int(port, 16))


def _unmapped(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return address if mapped is None else mapped
