"""The fuzz campaign, for a moment."""

from __future__ import annotations

from lakehouse_platform_tests.campaigns.nfs_fuzz import fuzz, fuzz_connections
from lakehouse_platform_tests.support.nfs_recording import recorded_calls


def test_recorded_calls_cover_every_procedure() -> None:
    def number(call: bytes, at: int) -> int:
        return int.from_bytes(call[at : at + 4], "big")

    seen = {(number(call, 12), number(call, 20)) for call in recorded_calls()}
    assert {(100003, procedure) for procedure in range(22)} <= seen
    assert {(100005, procedure) for procedure in range(6)} <= seen


def test_damaged_calls_are_answered_or_refused() -> None:
    report = fuzz(seconds=60, seed=7)
    assert report.problems == []
    assert report.rounds > 5000
    assert report.outcomes["answered"] > 1000


def test_damaged_streams_end_their_own_connection_at_most() -> None:
    report = fuzz_connections(seed=7, connections=100)
    assert report.problems == []
    assert report.outcomes["closed"] + report.outcomes["hung up on"] == 100
