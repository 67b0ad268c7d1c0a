"""Schemathesis invents requests from the server's own description; `campaigns/http_fuzz.py` does so for longer."""

from __future__ import annotations

from pathlib import Path

from lakehouse_platform_tests.campaigns.http_fuzz import fuzzed


def test_invented_requests_are_answered_as_the_description_says(tmp_path: Path) -> None:
    is_well, told = fuzzed(tmp_path, seconds=20, seed=1, phases="examples,coverage,fuzzing", most=2)
    assert is_well, told
