"""Two clients edit one table through a whole server, in random order and on a bad wire: a short run of the campaign."""

from __future__ import annotations

import pytest

from lakehouse_platform_tests.campaigns.mount_sequences import run_one


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_the_table_holds_what_the_edits_of_a_random_sequence_mean(seed: int) -> None:
    assert [problem for number in range(5) if (problem := run_one(seed, number))] == []
