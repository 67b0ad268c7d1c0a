"""How long checks of tokens take over HTTP while sign-ins flood in, most of which are refused.

`python -m lakehouse_platform_tests.campaigns.login_flood --seconds 30 [--logins 50]`

The aim is a 99th percentile under 5 ms with 50 sign-ins a second, on a machine that does nothing else. The server
and the flood are processes of their own, with Argon2 as it is in production; each sign-in has another name and address.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from http import HTTPStatus
from http.client import HTTPConnection
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Event
from pathlib import Path

from lakehouse_platform.services.lakehouse import Lakehouse
from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform_tests.support.people import PASSWORD, user
from lakehouse_platform_tests.support.serve_process import serving_process

AIM_MS = 5.0
_MOST_AT_ONCE = 256


@dataclass
class Report:
    """What was measured.

    Attributes:
        checks_ms: How long each check of a token took, from sending to the whole answer.
        sign_ins: How many sign-ins ended with which status.
    """

    checks_ms: list[float] = field(default_factory=list[float])
    sign_ins: Counter[int] = field(default_factory=Counter[int])

    @property
    def p99_ms(self) -> float:
        """The 99th percentile of the checks."""
        return statistics.quantiles(self.checks_ms, n=100)[98]

    def __str__(self) -> str:
        middle = statistics.median(self.checks_ms)
        return (
            f"{len(self.checks_ms)} checks: median {middle:.2f} ms, p99 {self.p99_ms:.2f} ms, "
            f"most {max(self.checks_ms):.2f} ms; sign-ins by status: {dict(sorted(self.sign_ins.items()))}"
        )


def measure(place: Path, seconds: float, logins_per_second: int) -> Report:
    """Serve a new lakehouse, flood it with sign-ins, and check a token again and again meanwhile.

    Args:
        place: An empty directory.
        seconds: How long.
        logins_per_second: Sign-ins that begin in a second; 0 for none, to compare with.
    """
    config = LakehouseConfig(base_path=str(place / "lake"), state_path=str(place / "state"), durability="os")
    with Lakehouse.open(config) as lakehouse:
        lakehouse.init()
        user(lakehouse.accounts, "checked")
        tokens = lakehouse.accounts.login("checked", PASSWORD)
    report = Report()
    with serving_process(config, api_trusted_proxies=["127.0.0.1"]) as server:
        # Not in this process: its threads would take turns with the one that measures.
        spawned = multiprocessing.get_context("spawn")
        results, is_over = spawned.Queue(), spawned.Event()
        flood = spawned.Process(target=_flood, args=(server.base_url, logins_per_second, is_over, results))
        flood.start()
        results.get()
        _check(server.base_url, tokens.access_token, seconds, report)
        is_over.set()
        report.sign_ins = results.get()
        flood.join()
    return report


def _check(base_url: str, token: str, seconds: float, report: Report) -> None:
    headers = {"Authorization": f"Bearer {token}"}
    with closing(_connection(base_url)) as server:
        assert _status(server, "GET", "/v1/auth/verify", headers) == HTTPStatus.OK
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:
            began = time.perf_counter()
            status = _status(server, "GET", "/v1/auth/verify", headers)
            report.checks_ms.append((time.perf_counter() - began) * 1000)
            assert status == HTTPStatus.OK


def _flood(base_url: str, per_second: int, is_over: Event, results: Queue[Counter[int]]) -> None:
    """Begin so many sign-ins a second, however long their answers take."""

    def sign_in(number: int) -> int:
        headers = {
            "Content-Type": "application/json",
            "X-Forwarded-For": f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}",
        }
        body = json.dumps({"login": f"flood-{number}", "password": "wrong, and long enough"})
        with closing(_connection(base_url)) as server:
            return _status(server, "POST", "/v1/auth/login", headers, body)

    with ThreadPoolExecutor(_MOST_AT_ONCE) as pool:
        results.put(Counter())
        begun: list[Future[int]] = []
        while per_second and not is_over.wait(1 / per_second):
            begun.append(pool.submit(sign_in, len(begun)))
        results.put(Counter(one.result() for one in begun))


# The standard library's client, because it takes little of the processors that it shares with the server here.
def _connection(base_url: str) -> HTTPConnection:
    return HTTPConnection(base_url.removeprefix("http://"), timeout=60)


def _status(
    server: HTTPConnection, method: str, path: str, headers: Mapping[str, str], body: str | None = None
) -> int:
    server.request(method, path, body, dict(headers))
    answer = server.getresponse()
    answer.read()
    return answer.status


def main() -> None:
    """Run a campaign from the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--logins", type=int, default=50, help="sign-ins a second")
    asked = parser.parse_args()
    reports: list[Report] = []
    for logins in (0, asked.logins):
        with tempfile.TemporaryDirectory(prefix="login-flood-") as place:
            reports.append(measure(Path(place), asked.seconds, logins))
        sys.stdout.write(f"{logins} sign-ins a second: {reports[-1]}\n")
    sys.exit(0 if reports[-1].p99_ms < AIM_MS else 1)


if __name__ == "__main__":
    main()
