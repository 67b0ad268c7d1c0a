"""Who owns the other end of a connection, asked of the real kernel."""

from __future__ import annotations

import os
import socket
import sys

import pytest

from lakehouse_platform.nfs.sockets import Endpoint, can_tell_owners, owner_of_peer
from lakehouse_platform_tests.unit.nfs.connections import NOBODY, connected, connected_by_stranger

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells")


def owner(server: socket.socket) -> int | None:
    return owner_of_peer(Endpoint.of(server.getpeername()), Endpoint.of(server.getsockname()))


def test_linux_tells_owners() -> None:
    assert can_tell_owners()


def test_our_own_connection_is_ours() -> None:
    with connected() as (server, _):
        assert owner(server) == os.getuid()


def test_a_connection_over_ipv6_is_found() -> None:
    if not socket.has_ipv6:
        pytest.skip("this machine has no IPv6")
    with connected(socket.AF_INET6, "::1") as (server, _):
        assert owner(server) == os.getuid()


def test_an_ipv4_connection_of_an_ipv6_socket_is_found() -> None:
    if not socket.has_dualstack_ipv6():
        pytest.skip("this machine has no IPv6")
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket(socket.AF_INET6) as client:
        client.connect((f"::ffff:{listener.getsockname()[0]}", listener.getsockname()[1]))
        server, _ = listener.accept()
        with server:
            assert owner(server) == os.getuid()


def test_a_connection_that_does_not_exist_has_no_owner() -> None:
    with connected() as (server, client):
        peer, local = Endpoint.of(server.getpeername()), Endpoint.of(server.getsockname())
        assert owner_of_peer(Endpoint(peer.address, 1), local) is None
        assert owner_of_peer(peer, Endpoint(local.address, 1)) is None
        client.close()
        assert owner(server) is None


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_another_users_connection_is_theirs() -> None:
    with connected_by_stranger() as (server, _):
        assert owner(server) == NOBODY


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_a_connection_that_another_user_has_closed_does_not_pass_for_roots() -> None:
    with connected_by_stranger() as (server, stranger):
        assert stranger.stdin is not None
        assert stranger.stdout is not None
        stranger.stdin.write("\n")
        stranger.stdin.flush()
        assert stranger.stdout.readline() == "closed\n"
        assert owner(server) is None
