from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lakehouse_platform.errors import SourceFormatError
from lakehouse_platform.services import json_source
from lakehouse_platform.services.json_source import open_json

SCHEMA = pa.schema([("id", pa.int64()), ("text", pa.string())])


def written(tmp_path: Path, text: str) -> str:
    path = tmp_path / "rows.jsonl"
    path.write_text(text)
    return str(path)


def read(path: str) -> list[dict[str, object]]:
    return open_json(path, SCHEMA, {}).reader.read_all().to_pylist()


@pytest.mark.parametrize("block", [1, 7, 64, 4096])
def test_the_size_of_the_blocks_does_not_show(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    monkeypatch.setattr(json_source, "_BLOCK_BYTES", block)
    lines = [f'{{"id": {number}, "text": "é{"x" * number}"}}' for number in range(30)]
    path = written(tmp_path, "\n\n".join(lines))
    assert read(path) == [{"id": number, "text": "é" + "x" * number} for number in range(30)]


@pytest.mark.parametrize("text", ["", "\n", "  \n\n"])
def test_a_file_without_rows_has_none(tmp_path: Path, text: str) -> None:
    assert read(written(tmp_path, text)) == []


@pytest.mark.parametrize("block", [5, 4096])
@pytest.mark.parametrize("bad", ['{"id": "x"}', '{"id": 1', "[1]", '{"other": 1}'])
def test_an_error_names_the_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int, bad: str
) -> None:
    monkeypatch.setattr(json_source, "_BLOCK_BYTES", block)
    path = written(tmp_path, f'{{"id": 1}}\n\n{{"id": 2}}\n{bad}\n{{"id": 3}}\n')
    source = open_json(path, SCHEMA, {})
    with pytest.raises(SourceFormatError, match="Line 4 of"):
        source.reader.read_all()
    assert source.error is not None
    assert source.error.details["line"] == 4


def test_a_line_without_end_does_not_fill_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_source, "_BLOCK_BYTES", 1024)
    monkeypatch.setattr(json_source, "_LONGEST_LINE", 4096)
    with pytest.raises(SourceFormatError, match="not JSON Lines"):
        read(written(tmp_path, "x" * 10_000))
