from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq

from lakehouse_platform.demo.inputs import write_inputs


def test_the_files_are_the_same_bytes_every_time(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for directory in (first, second):
        directory.mkdir()
        write_inputs(directory)
    names = sorted(path.relative_to(first) for path in first.rglob("*") if path.is_file())
    assert len(names) == 6
    assert all((first / name).read_bytes() == (second / name).read_bytes() for name in names)


def test_the_input_is_a_few_megabytes_of_rows(tmp_path: Path) -> None:
    inputs = write_inputs(tmp_path)
    assert 2e6 < inputs.trips.stat().st_size < 5e6
    assert inputs.trips.read_text().count("\n") > 40_000
    assert sum(pq.read_metadata(path).num_rows for path in (tmp_path / "riders").iterdir()) == 4_000
    assert sum(map(len, inputs.next_day)) > 300
