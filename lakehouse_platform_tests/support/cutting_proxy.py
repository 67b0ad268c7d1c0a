"""An HTTP proxy in front of the S3 server that can lose answers: a request arrives, its outcome is never told.

It runs in a process of its own: the engine holds Python's lock while it lists an object store (deltalake 1.6.6), so a
proxy in the test's process would wait for itself.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from lakehouse_platform_tests.support.s3_server import ROOT, S3Server

_HOP = {"connection", "transfer-encoding", "content-length", "keep-alive"}
# The commit of a table, not one to a transaction's private copy.
COMMIT = r"PUT (?!.*/tx-).*/_delta_log/\d{20}\.json"


@dataclass(frozen=True, slots=True)
class CuttingProxy:
    """What the proxy shall do, and what it did.

    Attributes:
        server: The S3 server as seen through the proxy.
        directory: Where the proxy reads its plan and notes what happened.
    """

    server: S3Server
    directory: Path

    def plan(
        self, *, lose: str | None = None, refuse: str | None = None, dead_after_loss: bool = False
    ) -> None:
        """Begin anew.

        Args:
            lose: Pattern of `METHOD path`; the first such request reaches the server, its answer is thrown away.
            refuse: Pattern of requests that never reach the server.
            dead_after_loss: Refuse everything once an answer was lost.
        """
        (self.directory / "lost").unlink(missing_ok=True)
        text = json.dumps({"lose": lose, "refuse": refuse, "dead": dead_after_loss})
        (self.directory / "next").write_text(text)
        (self.directory / "next").replace(self.directory / "plan")

    def lost(self) -> bool:
        """Tell whether an answer was lost since the plan was made."""
        return (self.directory / "lost").exists()


@contextmanager
def cutting_proxy(server: S3Server, directory: Path) -> Generator[CuttingProxy]:
    """Run a proxy that passes everything on until it gets another plan."""
    module = "lakehouse_platform_tests.support.cutting_proxy"
    command = [sys.executable, "-m", "lakehouse_platform_tests.support.guard"]
    command += [sys.executable, "-m", module, server.endpoint, str(directory)]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, cwd=ROOT, start_new_session=True, **pipes) as process:
        assert process.stdout is not None
        try:
            endpoint = f"http://127.0.0.1:{int(process.stdout.readline())}"
            # Few and quick retries, so that a dead server is noticed within the test's patience.
            quick = {"max_retries": "2", "retry_timeout": "5s"}
            options = {**server.options, "AWS_ENDPOINT_URL": endpoint, **quick}
            proxy = CuttingProxy(replace(server, endpoint=endpoint, options=options), directory)
            proxy.plan()
            yield proxy
        finally:
            os.killpg(process.pid, signal.SIGKILL)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    upstream = ""
    directory = Path()

    def pass_on(self) -> None:
        """Pass one request on as the plan says."""
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        plan = json.loads((self.directory / "plan").read_text())
        request, lost = f"{self.command} {self.path}", self.directory / "lost"
        if (plan["dead"] and lost.exists()) or (plan["refuse"] and re.match(plan["refuse"], request)):
            self.close_connection = True
            return
        answer, data = self._forward(body)
        if plan["lose"] and re.match(plan["lose"], request) and not lost.exists():
            lost.touch()
            self.close_connection = True
            return
        self._answer(answer, data)

    def _forward(self, body: bytes) -> tuple[http.client.HTTPResponse, bytes]:
        connection = http.client.HTTPConnection(self.upstream, timeout=30)
        connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for key, value in self.headers.items():
            connection.putheader(key, value)
        connection.endheaders(body or None)
        answer = connection.getresponse()
        data = answer.read()
        connection.close()
        return answer, data

    def _answer(self, answer: http.client.HTTPResponse, data: bytes) -> None:
        self.send_response_only(answer.status, answer.reason)
        for key, value in answer.getheaders():
            if key.lower() not in _HOP:
                self.send_header(key, value)
        length = answer.getheader("Content-Length") if self.command == "HEAD" else str(len(data))
        self.send_header("Content-Length", length or "0")
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - http.server's name
        """Say nothing."""

    do_GET = do_PUT = do_HEAD = do_DELETE = do_POST = pass_on  # noqa: N815 - http.server's names


def main() -> None:
    """Serve on a free port, which is printed, until killed."""
    _Handler.upstream = urlsplit(sys.argv[1]).netloc
    _Handler.directory = Path(sys.argv[2])
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    sys.stdout.write(f"{server.server_address[1]}\n")
    sys.stdout.flush()
    server.serve_forever()


if __name__ == "__main__":
    main()
