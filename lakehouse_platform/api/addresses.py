"""Where a request comes from: the connection's other end, or what a trusted proxy says."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

from starlette.datastructures import Headers
from starlette.types import Scope

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class Proxies:
    """The proxies that are believed. Anybody can send the header; only what a proxy of ours added counts."""

    def __init__(self, trusted: Sequence[str]) -> None:
        """Take the setting `api_trusted_proxies`."""
        self._networks: tuple[_Network, ...] = tuple(map(ipaddress.ip_network, trusted))

    def client_of(self, scope: Scope) -> str | None:
        """Return the address that a request comes from; None if it came over no network.

        Each proxy appends the address that it was called from, so the list is read from its end, and the first address
        that is none of the trusted proxies is the client's. What stands before it may be invented.
        """
        client = scope.get("client")
        peer = _address(client[0]) if client else None
        if peer is None or not self._is_trusted(peer):
            return str(peer) if peer else None
        told = ",".join(Headers(scope=scope).getlist("x-forwarded-for")).split(",")
        for text in reversed(told):
            hop = _address(text)
            if hop is None:
                break
            peer = hop
            if not self._is_trusted(hop):
                break
        return str(peer)

    def _is_trusted(self, address: _Address) -> bool:
        return any(address in network for network in self._networks)


def is_loopback(address: str | None) -> bool:
    """Tell whether an address is this machine's own."""
    found = _address(address or "")
    return found is not None and found.is_loopback


def _address(text: str) -> _Address | None:
    try:
        address = ipaddress.ip_address(text.strip())
    except ValueError:
        return None
    # One address has one text, or limits by address could be had twice.
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address
