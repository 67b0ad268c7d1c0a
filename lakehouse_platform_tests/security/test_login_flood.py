"""The short version of `campaigns.login_flood`, which also measures how long the checks take."""

from __future__ import annotations

from pathlib import Path

from lakehouse_platform_tests.campaigns import login_flood


def test_tokens_are_accepted_throughout_a_flood_of_sign_ins_that_are_all_refused(tmp_path: Path) -> None:
    report = login_flood.measure(tmp_path, seconds=1.5, logins_per_second=50)
    # Each check was answered with 200, or else `measure` fails.
    assert len(report.checks_ms) > 10
    assert sum(report.sign_ins.values()) > 10
    assert report.sign_ins.keys() <= {401, 429}
