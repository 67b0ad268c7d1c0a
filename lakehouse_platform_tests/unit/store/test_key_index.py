"""The key index: it says what the table says, and survives whatever happens to its directory."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakehouse_platform.errors import DuplicateKeyError, InvalidRowsError
from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.store.engine import open_table
from lakehouse_platform.store.key_entries import entries_in
from lakehouse_platform.store.key_index import KeyFiles, KeyIndex
from lakehouse_platform.store.new_keys import find_duplicate_key
from lakehouse_platform.store.pinned import Pinned
from lakehouse_platform.store.table import Table
from lakehouse_platform_tests.support.deletion_vectors import inline_vector
from lakehouse_platform_tests.support.handmade import HandmadeTable, Protocol, column

SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.string())])


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "keys"


@pytest.fixture
def indexed(config: LakehouseConfig, directory: Path) -> DeltaStore:
    return DeltaStore(config.model_copy(update={"key_index_path": str(directory)}))


@pytest.fixture
def table(indexed: DeltaStore) -> Table:
    """Keys 0 to 9 in each of five files."""
    made = indexed.create("t", SCHEMA, primary_key=["id"])
    for first in range(0, 50, 10):
        made.append(rows(*range(first, first + 10)))
    return made


@pytest.fixture
def forget() -> Callable[[], None]:
    """Forgets what this process has in memory, as a new process would not have it."""
    return entries_in.cache_clear


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": ids, "v": ["x"] * len(ids)}, schema=SCHEMA)


def entries(directory: Path) -> list[Path]:
    return sorted(path for path in directory.rglob("*") if path.is_file())


def says(table: Table, *ids: int) -> bool:
    return find_duplicate_key(Pinned.open(table), rows(*ids)) is not None


def test_it_says_what_the_table_holds(table: Table, directory: Path) -> None:
    assert [number for number in range(-5, 60) if says(table, number)] == list(range(50))
    assert len(entries(directory)) == 5


def test_it_names_the_key(table: Table) -> None:
    assert find_duplicate_key(Pinned.open(table), rows(99, 42, 98)) == "key id = 42 is already in the table"
    assert find_duplicate_key(Pinned.open(table), rows(99, 99)) == "key id = 99 occurs twice in the rows"
    assert find_duplicate_key(Pinned.open(table), rows()) is None
    with pytest.raises(InvalidRowsError):
        find_duplicate_key(Pinned.open(table), pa.table({"v": ["x"]}))


def test_a_table_without_a_key_has_no_duplicates(indexed: DeltaStore, directory: Path) -> None:
    table = indexed.create("t", SCHEMA)
    table.append(rows(1))
    assert find_duplicate_key(Pinned.open(table), rows(1)) is None
    assert not directory.exists()


def test_appends_are_refused_with_and_without_it_alike(table: Table, store: DeltaStore) -> None:
    for some in (table, store.table("t")):
        with pytest.raises(DuplicateKeyError, match="id = 7 of t is already in the table"):
            some.append(rows(100, 7))
        some.append(rows(some.version() + 1_000))
    assert table.version() == 7


def test_a_stream_is_checked_too(table: Table) -> None:
    with pytest.raises(DuplicateKeyError):
        table.append(rows(100, 7).to_reader())
    table.append(rows(*range(1_000, 5_000)).to_reader(max_chunksize=100))
    assert says(table, 4_999)


EVERY_KEY: dict[str, tuple[pa.DataType, list[Any]]] = {
    "int8": (pa.int8(), [-1, 0, 1]),
    "text": (pa.string(), ["", "é", "e\u0301"]),
    "bytes": (pa.binary(), [b"", b"\0", b"\xff"]),
    "flag": (pa.bool_(), [True, False]),
    "date": (pa.date32(), [date(1, 1, 1), date(9999, 12, 31)]),
    "time": (pa.timestamp("us", "UTC"), [datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)]),
    "local": (pa.timestamp("us"), [datetime(2026, 1, 1), datetime(2026, 1, 2)]),  # noqa: DTZ001
    "decimal": (pa.decimal128(30, 2), [Decimal("1.20"), Decimal("1.21"), Decimal("-1.20")]),
}


@pytest.mark.parametrize("name", EVERY_KEY)
@pytest.mark.parametrize("partitioned", [False, True])
def test_every_type_of_key_is_found(indexed: DeltaStore, name: str, partitioned: bool) -> None:
    kind, values = EVERY_KEY[name]
    if partitioned and name in {"bytes", "text"}:
        return  # the engine cannot partition by these values
    schema = pa.schema([("k", kind), ("n", pa.int32())])
    table = indexed.create("t", schema, primary_key=["k", "n"], partition_by=["k"] if partitioned else [])
    made = table.arrow_schema()
    table.append(pa.table({"k": values[:-1], "n": [1] * (len(values) - 1)}, schema=made))
    told = [
        find_duplicate_key(Pinned.open(table), pa.table({"k": [v], "n": [1]}, schema=made)) for v in values
    ]
    assert [found is not None for found in told] == [True] * (len(values) - 1) + [False]
    assert find_duplicate_key(Pinned.open(table), pa.table({"k": values[:1], "n": [2]}, schema=made)) is None


def test_rewritten_files_are_looked_at_anew(table: Table) -> None:
    table.delete("id = 7")
    assert not says(table, 7)
    table.append(rows(7))
    table.compact()
    table.z_order(["v"])
    assert says(table, 7)
    assert not says(table, 50)


def test_entries_of_files_that_are_gone_are_deleted_in_time(
    table: Table, directory: Path, forget: Callable[[], None]
) -> None:
    says(table, 1)
    table.compact()
    says(table, 1)
    assert len(entries(directory)) == 6
    forget()
    table.append(rows(100))
    says(table, -1)
    assert len(entries(directory)) == 2
    for number in range(70):
        table.append(rows(200 + number))
        table.compact()
    assert len(entries(directory)) <= 2 + 2 * 64


def test_tables_that_nobody_uses_are_forgotten(
    table: Table, directory: Path, forget: Callable[[], None]
) -> None:
    old = directory / ("0" * 32)
    young = directory / ("1" * 32)
    old.mkdir(parents=True)
    young.mkdir()
    os.utime(old, (0, 0))
    forget()
    says(table, -1)
    assert (old.exists(), young.exists()) == (False, True)


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(path.read_bytes()[:-1]),
        lambda path: path.write_bytes(path.read_bytes() + b"x" * 8),
        lambda path: path.write_bytes(path.read_bytes()[:24] + bytes(path.stat().st_size - 24)),
        lambda path: path.write_bytes(bytes(path.stat().st_size)),
        lambda path: (path.unlink(), path.mkdir()),
        lambda path: path.unlink(),
    ],
    ids=["empty", "short", "long", "zeros", "all zeros", "directory", "gone"],
)
def test_a_damaged_entry_is_built_anew(
    table: Table, directory: Path, damage: Callable[[Path], object], forget: Callable[[], None]
) -> None:
    assert says(table, 1)
    for entry in entries(directory):
        damage(entry)
    forget()
    assert [number for number in range(-5, 60) if says(table, number)] == list(range(50))


def test_a_large_entry_is_mapped_and_checked_alike(
    indexed: DeltaStore, directory: Path, forget: Callable[[], None]
) -> None:
    table = indexed.create("t", SCHEMA, primary_key=["id"])
    table.append(rows(*range(0, 400_000, 2)))
    assert (says(table, 399_998), says(table, 399_999)) == (True, False)
    (entry,) = entries(directory)
    entry.write_bytes(entry.read_bytes()[:24] + bytes(entry.stat().st_size - 24))
    forget()
    assert (says(table, 0), says(table, 1), says(table, *range(1, 400_000, 2))) == (True, False, False)
    entry.unlink()
    assert says(table, 399_998)


def test_a_directory_that_cannot_be_used_costs_time_only(table: Table, directory: Path) -> None:
    directory.parent.mkdir(exist_ok=True)
    shutil.rmtree(directory, ignore_errors=True)
    directory.write_text("in the way")
    assert (says(table, 49), says(table, 50)) == (True, False)


def test_another_process_reads_what_this_one_wrote(table: Table, directory: Path) -> None:
    assert says(table, 1)
    before = {path: path.stat().st_mtime_ns for path in entries(directory)}
    code = (
        "import sys, pyarrow as pa\n"
        "from lakehouse_platform.settings import LakehouseConfig\n"
        "from lakehouse_platform.store.delta_store import DeltaStore\n"
        "from lakehouse_platform.store.new_keys import find_duplicate_key\n"
        "from lakehouse_platform.store.pinned import Pinned\n"
        "store = DeltaStore(LakehouseConfig(base_path=sys.argv[1], key_index_path=sys.argv[2]))\n"
        "pinned = Pinned.open(store.table('t'))\n"
        "print([find_duplicate_key(pinned, pa.table({'id': [n]})) is None for n in (49, 50)])\n"
    )
    arguments = [sys.executable, "-c", code, table.config.base_path, str(directory)]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[False, True]"
    assert {path: path.stat().st_mtime_ns for path in entries(directory)} == before


def test_threads_may_ask_while_others_append(table: Table, forget: Callable[[], None]) -> None:
    wrong: list[int] = []

    def ask(seed: int) -> None:
        chance = random.Random(seed)
        for _ in range(30):
            number = chance.randrange(100)
            if number < 50 and not says(table, number):
                wrong.append(number)

    forget()
    threads = [threading.Thread(target=ask, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for number in range(5):
        table.append(rows(1_000 + number))
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_table_made_anew_under_the_same_name_has_other_keys(indexed: DeltaStore, table: Table) -> None:
    assert says(table, 1)
    table.drop()
    anew = indexed.create("t", SCHEMA, primary_key=["id"])
    anew.append(rows(7))
    assert (says(anew, 1), says(anew, 7)) == (False, True)


def test_rows_hidden_by_deletion_vectors_are_not_in_the_way(indexed: DeltaStore) -> None:
    home = HandmadeTable(Path(indexed.config.base_path) / "h").create(
        [column("id", pa.int64())],
        protocol=Protocol.with_features("deletionVectors"),
        configuration={"lakehouse.primaryKey": '["id"]'},
    )
    home.commit(1, home.add(pa.table({"id": [1, 2, 3]}), deletion_vector=inline_vector([1])))
    table = indexed.table("h")
    told = [find_duplicate_key(Pinned.open(table), pa.table({"id": [number]})) for number in (1, 2, 3)]
    assert [found is None for found in told] == [False, True, False]


def test_asking_for_many_keys_is_asking_for_each(table: Table, directory: Path) -> None:
    index = KeyIndex(directory, table.location)
    files = KeyFiles.of(table.location, open_table(table.location), ["id"])
    absent = list(range(100, 50_000))
    assert index.duplicates(files, rows(*absent).select(["id"])) is None
    random.Random(1).shuffle(absent)
    assert index.duplicates(files, rows(*absent, 33).select(["id"])) == {"id": 33}
