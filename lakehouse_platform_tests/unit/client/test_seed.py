"""The example of the documentation that this client was asked for runs as it is written there."""

from __future__ import annotations

import contextlib
import io
import json
import re
from datetime import UTC, datetime
from pathlib import Path

from lakehouse_platform.model.actors import Role
from lakehouse_platform.model.times import to_epoch_ms
from lakehouse_platform_tests.support.http_server import LiveHttp
from lakehouse_platform_tests.support.people import PASSWORD

# As written, but for the package's name; `localhost:8080` is where the test's server is.
CONNECT = """
from lakehouse_platform import LakehouseClient

client = LakehouseClient(base_url="http://localhost:8080")
"""
READ = """
# Read current state
current = client.scan("users")

# Time-travel to version 5
old = client.read_version("users", version=5)

# Time-travel to a timestamp
snapshot = client.read_timestamp("users", "2026-02-01T12:00:00Z")

# Get version history
history = client.history("users", limit=10)
for entry in history:
    print(f"v{entry['version']}: {entry['operation']} at {entry['timestamp']}")
"""
_LINE = re.compile(r"v\d+: [A-Z ]+ at \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def test_the_example_for_time_travel_in_python_runs(live: LiveHttp) -> None:
    for number in range(4):
        live.person(f"user-{number}")
    live.person("root", Role.SUPERADMIN)
    users = live.lakehouse.store.table("users")
    _date_back(Path(users.location.uri), datetime(2026, 1, 1, tzinfo=UTC))
    namespace: dict[str, object] = {}
    exec(CONNECT.replace("http://localhost:8080", live.base_url), namespace)
    # The example says nothing of it, but accounts are shown to superadmins only.
    exec(f"client.login('root', {PASSWORD!r})", namespace)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(READ, namespace)
    exec("client.close()", namespace)
    sizes = [namespace[name].num_rows for name in ("old", "snapshot", "current")]  # type: ignore[attr-defined]
    assert sizes == sorted(sizes)
    assert sizes[-1] == 5
    assert "password_hash" not in namespace["current"].column_names  # type: ignore[attr-defined]
    lines = printed.getvalue().splitlines()
    assert len(lines) == 10
    assert [line for line in lines if not _LINE.fullmatch(line)] == []


def _date_back(table: Path, start: datetime) -> None:
    """Let all but the newest commits of a table have been made, a second apart, in January."""
    for number, entry in enumerate(sorted((table / "_delta_log").glob("*.json"))[:-1]):
        actions = [json.loads(line) for line in entry.read_text().splitlines()]
        for action in actions:
            if "commitInfo" in action:
                action["commitInfo"]["timestamp"] = to_epoch_ms(start) + number * 1000
        entry.write_text("".join(json.dumps(action) + "\n" for action in actions))
