"""Tables in the states that maintenance cares about."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.store.tables import SYSTEM_TABLES
from lakehouse_platform_tests.support.tables import PEOPLE, people


def scattered(store: DeltaStore, name: str, *, files: int) -> None:
    """Make a table of so many files with one row each."""
    store.create(name, PEOPLE)
    for number in range(files):
        store.append(name, people(number))


def with_sessions(store: DeltaStore, expiries: Sequence[str]) -> None:
    """Make the sessions table with one session for each end."""
    store.ensure(SYSTEM_TABLES["sessions"])
    rows = [
        {
            "session_id": f"s{number}",
            "user_id": "u",
            "token_hash": f"h{number}",
            "expires_at": expiry,
            "created_at": "2026-01-01T00:00:00Z",
            "ip_address": None,
            "user_agent": None,
        }
        for number, expiry in enumerate(expiries)
    ]
    store.append("sessions", rows)


def break_log(store: DeltaStore, name: str) -> None:
    """Make a table unreadable: its first log entry is no JSON any more."""
    log = Path(store.table(name).location.uri) / "_delta_log"
    for entry in log.iterdir():
        entry.write_text("{broken")
