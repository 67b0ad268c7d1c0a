import socket

import httpx
import pytest

from lakehouse_platform.model.actors import Role
from lakehouse_platform_tests.support.http_server import LiveHttp, Person


@pytest.fixture
def admin(live: LiveHttp) -> Person:
    return live.person("ada", Role.ADMIN)


def test_the_form_is_settled_before_anything_is_read(live: LiveHttp, admin: Person) -> None:
    answer = live.get("/v1/tables/users/rows", admin, headers={"accept": "image/png", "x-request-id": "png"})
    assert answer.status_code == 406
    assert not [entry for entry in live.lakehouse.audit.search() if entry.request_id == "png"]


def test_several_accept_headers_are_one(live: LiveHttp, admin: Person) -> None:
    url = httpx.URL(live.base_url)
    with socket.create_connection((url.host, url.port or 0)) as client:
        client.sendall(
            f"GET /v1/tables/users/rows?limit=0 HTTP/1.1\r\nHost: {url.host}\r\nConnection: close\r\n"
            f"Authorization: {admin.headers['Authorization']}\r\n"
            "Accept: image/png\r\nAccept: text/csv;q=0.5\r\n\r\n".encode()
        )
        answer = b""
        while part := client.recv(65_536):
            answer += part
    assert answer.startswith(b"HTTP/1.1 200")
    assert b"text/csv" in answer


def test_a_head_reads_no_rows_to_their_end_and_is_audited(live: LiveHttp, admin: Person) -> None:
    answer = live.request("HEAD", "/v1/tables/users/rows", admin, headers={"x-request-id": "head"})
    assert answer.status_code == 200
    (entry,) = [entry for entry in live.lakehouse.audit.search() if entry.request_id == "head"]
    assert (entry.action, entry.resource, entry.outcome) == ("data_read", "users", "done")
