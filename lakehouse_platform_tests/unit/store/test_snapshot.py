"""What an opened version says about itself, and the tables that the engine would damage."""

from __future__ import annotations

import json
from collections.abc import Callable
from urllib.parse import unquote

import pyarrow as pa
import pytest

from lakehouse_platform.errors import UnsupportedFeatureError
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.store.table import Table

SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.string())])


def with_path(table: Table, directory: str) -> None:
    """Move the data file of version 1 into a directory whose name the log writes as given."""
    log = table.location.path / "_delta_log" / f"{1:020}.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    (add,) = [action["add"] for action in actions if "add" in action]
    target = table.location.path / unquote(directory)
    target.mkdir()
    (table.location.path / add["path"]).rename(target / add["path"])
    add["path"] = f"{directory}/{add['path']}"
    log.write_text("\n".join(map(json.dumps, actions)))


@pytest.fixture
def table(store: DeltaStore) -> Table:
    made = store.create("t", SCHEMA)
    made.append([{"id": 1, "v": "a"}, {"id": 2, "v": "b"}])
    return made


_REWRITES: dict[str, Callable[[Table], object]] = {
    "delete": lambda table: table.delete("id = 1"),
    "update": lambda table: table.update({"v": "'c'"}),
    "merge": lambda table: table.merge([{"id": 1, "v": "c"}], on=["id"]),
    "overwrite": lambda table: table.overwrite([{"id": 3}]),
    "overwrite_where": lambda table: table.overwrite_where("id = 1", [{"id": 1}]),
    "compact": lambda table: table.compact(),
    "z_order": lambda table: table.z_order(["id"]),
    "restore": lambda table: table.restore(0),
    "transaction": lambda table: table.transaction().__enter__(),
}


@pytest.mark.parametrize("rewrite", _REWRITES)
def test_paths_that_the_engine_cannot_remove_are_left_alone(table: Table, rewrite: str) -> None:
    """Spark writes p=ü as it is; the engine's removal entry says p=%C3%BC, and the old rows would stay."""
    with_path(table, "p=ü")
    with pytest.raises(UnsupportedFeatureError, match="p=ü"):
        _REWRITES[rewrite](table)
    assert table.append([{"id": 3, "v": "c"}]) == 2
    assert sorted(row["id"] for row in table.scan().to_pylist()) == [1, 2, 3]


@pytest.mark.parametrize("directory", ["p=%c3%bc", "p%3Dx", "p=x%2Ey", "p=<", "p=🙂"])
def test_other_ways_to_write_a_path_are_told_apart_too(table: Table, directory: str) -> None:
    with_path(table, directory)
    with pytest.raises(UnsupportedFeatureError):
        table.delete("id = 1")


@pytest.mark.parametrize("directory", ["p=a", "p=a%20b", "p=%C3%BC", "p=a%2520b", "p=a:b@c,d;e+f&g!h'i(j)$~"])
@pytest.mark.parametrize("rewrite", ["delete", "update", "merge", "transaction"])
def test_usual_paths_are_removed_right(table: Table, directory: str, rewrite: str) -> None:
    with_path(table, directory)
    if rewrite == "transaction":
        with table.transaction() as tx:
            tx.delete("id = 1")
    else:
        _REWRITES[rewrite](table)
    assert table.scan().to_arrow().num_rows == (1 if rewrite in ("delete", "transaction") else 2)
    assert len(table.data_files()) == 1


def test_a_table_tells_its_files_key_and_constraints(store: DeltaStore) -> None:
    table = store.create("k", SCHEMA, primary_key=["id"], partition_by=["v"])
    table.append([{"id": 1, "v": "x y"}])
    table.append([{"id": 2, "v": "ü"}])
    table.add_constraint("positive", "id > 0")
    files = table.data_files()
    assert [(table.location.path / file.path).stat().st_size for file in files] == [
        file.size for file in files
    ]
    assert [file.rows for file in files] == [1, 1]
    info = table.info()
    assert (info.rows, info.files, info.primary_key, info.partition_columns) == (2, 2, ("id",), ("v",))
    assert list(info.constraints) == ["positive"]
