"""HTTP servers that are no lakehouse: proxies, portals and whatever else may answer in one's place."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Stranger:
    """A server and what it was asked.

    Attributes:
        base_url: Where it answers.
        asked: Method, path and headers of each request, in order.
    """

    base_url: str = ""
    asked: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)


@contextmanager
def stranger(answer: Callable[[BaseHTTPRequestHandler], None]) -> Generator[Stranger]:
    """Run a server that answers every request with a function; the body of the request has been read.

    Args:
        answer: Writes the answer with the methods of the handler.
    """
    seen = Stranger()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def take(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            seen.asked.append((self.command, self.path, headers))
            self._read_body()
            self.close_connection = True
            answer(self)

        def _read_body(self) -> None:
            if self.headers.get("transfer-encoding") != "chunked":
                self.rfile.read(int(self.headers.get("content-length") or 0))
                return
            while size := int(self.rfile.readline(), 16):
                self.rfile.read(size + 2)
            self.rfile.readline()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - http.server's name
            """Say nothing."""

        do_GET = do_PUT = do_POST = do_DELETE = do_PATCH = take  # noqa: N815 - http.server's names

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    seen.base_url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield seen
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def page(
    status: int, body: bytes, kind: str = "text/html", **headers: str
) -> Callable[[BaseHTTPRequestHandler], None]:
    """Return the answer with one body."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in {
            "content-type": kind,
            "content-length": str(len(body)),
            "connection": "close",
            **headers,
        }.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(body)

    return answer
