"""Requests made from the server's own description: each is answered as the description says, and none breaks anything.

`python -m lakehouse_platform_tests.campaigns.http_fuzz --seconds 600 [--seed 1]`

Schemathesis makes them: what fits the description, what does not, and every limit in it. It signs in as a
superadmin, for whom most is reachable. It finds out its own sign-in and ends it, takes its own role away and
disables itself: then the account is given back what it had (`_keeping`), and `http_fuzz_hooks` signs in anew, or
all further requests would be refused alike and nothing would be tried any more.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from lakehouse_platform.errors import LakehouseError
from lakehouse_platform.model.actors import AccountStatus, Role, SubscriptionTier
from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform_tests.support.http_server import LiveHttp, Person, http_server
from lakehouse_platform_tests.support.people import PASSWORD

# They would end the sign-in that all other requests are sent with, or make it wait.
_ENDING = "^/v1/auth/(logout|logout-everywhere|password|login)$"
_CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,"
    "response_schema_conformance,unsupported_method,ignored_auth"
)
# Beyond the time that the tests themselves have: starting, and shrinking what was found.
_GRACE_SECONDS = 120
_KEEPING_SECONDS = 2.0
# The check that nothing is done without a token makes some; a campaign that has lost its sign-in makes nearly all.
_MOST_REFUSED = 0.5


def fuzz(
    live: LiveHttp,
    person: Person,
    seconds: int,
    seed: int,
    *,
    phases: str = "examples,coverage,fuzzing",
    most: int = 100,
) -> tuple[bool, str]:
    """Send requests to a server for some time.

    Args:
        live: The server.
        person: As whom they are sent.
        seconds: How long.
        seed: Which requests are made.
        phases: Kinds of requests, as Schemathesis names them.
        most: Invented requests for each operation.

    Returns:
        Whether every answer was as it should be, and what Schemathesis says about it.
    """
    command = [sys.executable, "-m", "schemathesis.cli", "run", f"{live.base_url}/openapi.json"]
    command += ["--checks", _CHECKS]
    command += ["--exclude-path-regex", _ENDING, "--phases", phases, "--max-time", str(seconds)]
    command += ["--seed", str(seed), "--max-examples", str(most), "--request-timeout", "60", "--no-color"]
    command += ["--continue-on-failure", "--suppress-health-check", "all", "--warnings", "off"]
    around = os.environ | {
        "SCHEMATHESIS_HOOKS": "lakehouse_platform_tests.campaigns.http_fuzz_hooks",
        "HTTP_FUZZ_URL": live.base_url,
        "HTTP_FUZZ_LOGIN": person.user.username,
        "HTTP_FUZZ_PASSWORD": PASSWORD,
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    with tempfile.TemporaryDirectory(prefix="http-fuzz-") as place, _keeping(live, person):
        done = subprocess.run(
            command, cwd=place, env=around, capture_output=True, text=True, check=False,
            timeout=seconds + _GRACE_SECONDS,
        )  # fmt: skip
    return done.returncode == 0, done.stdout + done.stderr


@contextmanager
def _keeping(live: LiveHttp, person: Person) -> Generator[None]:
    """Give the account back what it takes from itself, as the owner of the files, until the block ends."""
    accounts, user_id, ended = live.lakehouse.accounts, person.user_id, threading.Event()

    def keep() -> None:
        while not ended.wait(_KEEPING_SECONDS):
            try:
                now = accounts.user(user_id)
                if now.status is not AccountStatus.ACTIVE:
                    accounts.enable(user_id)
                if now.role is not Role.SUPERADMIN:
                    accounts.change_role(user_id, Role.SUPERADMIN)
                if now.tier is not SubscriptionTier.ENTERPRISE:
                    accounts.change_tier(user_id, SubscriptionTier.ENTERPRISE)
                accounts.follow_tier(user_id)
            except LakehouseError as error:
                sys.stderr.write(f"the account is not kept: {error}\n")

    thread = threading.Thread(target=keep, name="keeping")
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def fuzzed(place: Path, seconds: int, seed: int, *, phases: str, most: int) -> tuple[bool, str]:
    """Start a server over a new lakehouse, send requests to it, and tell what they found; see `fuzz`."""
    config = LakehouseConfig(base_path=str(place / "lake"), state_path=str(place / "state"), durability="os")
    with http_server(config, {"registrations_per_hour": 1_000_000}) as live:
        boss = live.person("the-fuzzer", Role.SUPERADMIN)
        # For requests that name no table of their own making.
        body = {"name": "target", "schema": "id:Int64 not null,name:String", "primary_key": ["id"]}
        live.post("/v1/tables", boss, json=body).raise_for_status()
        is_well, told = fuzz(live, boss, seconds, seed, phases=phases, most=most)
        # Somebody new: the requests may well have ended the fuzzer's own sign-in.
        after = [live.get("/readyz"), live.get("/v1/me", live.person("somebody-new"))]
        problems = [
            f"Afterwards {one.url} gives {one.status_code}: {one.text}" for one in after if one.is_error
        ]
        refused = _refused_share(live)
        chain = live.lakehouse.audit.verify()
    if refused > _MOST_REFUSED:
        problems.append(
            f"{refused:.0%} of the requests were refused for want of a sign-in: little was tried."
        )
    if not chain.is_whole:
        problems.append(f"The audit log is not whole: {chain.problems}")
    return is_well and not problems, "\n".join([told, *problems])


def _refused_share(live: LiveHttp) -> float:
    """Return the share of requests that were answered with 401, from the server's own numbers."""
    numbers = live.get("/metrics", live.person("the-counter", Role.SUPERADMIN)).text
    counts = [
        (line, float(line.rpartition(" ")[2]))
        for line in numbers.splitlines()
        if line.startswith("lakehouse_http_requests_total")
    ]
    return sum(count for line, count in counts if 'status="401"' in line) / sum(count for _, count in counts)


def main() -> None:
    """Run a campaign from the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--examples", type=int, default=1_000, help="invented requests for each operation")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="http-fuzz-") as place:
        is_well, told = fuzzed(
            Path(place),
            asked.seconds,
            asked.seed,
            phases="examples,coverage,fuzzing,stateful",
            most=asked.examples,
        )
    sys.stdout.write(told)
    sys.exit(0 if is_well else 1)


if __name__ == "__main__":
    main()
