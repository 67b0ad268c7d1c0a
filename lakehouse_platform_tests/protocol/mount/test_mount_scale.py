"""The campaign of thirty million rows, with a few: every byte is compared after each step."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakehouse_platform_tests.campaigns import mount_scale


@pytest.mark.slow
@pytest.mark.parametrize("rows", [1_000, 120_000])
def test_reading_and_editing_a_table_is_exact_and_takes_bounded_memory(tmp_path: Path, rows: int) -> None:
    lines = mount_scale.run(tmp_path, rows)
    assert [line for line in lines if line.startswith(("first cat", "grep", "append", "sed", "cat new"))]
