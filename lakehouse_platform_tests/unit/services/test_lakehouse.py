"""One lakehouse, opened: what it makes, and what a text means to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakehouse_platform.errors import InvalidNameError, StoragePermissionError
from lakehouse_platform.model.origin import Door, Origin
from lakehouse_platform.model.schema import Field, Schema
from lakehouse_platform.services.lakehouse import Lakehouse
from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform.store.tables import SYSTEM_TABLES
from lakehouse_platform_tests.support.s3_server import S3Server

SCHEMA = Schema([Field("id", "Int64")])


def test_opening_makes_nothing(tmp_path: Path) -> None:
    Lakehouse.open(str(tmp_path / "lake"))
    assert not (tmp_path / "lake").exists()


def test_init_makes_the_system_tables_once(config: LakehouseConfig) -> None:
    lake = Lakehouse.open(config, origin=Origin(actor="me", door=Door.CLI))
    assert sorted(lake.init()) == sorted(SYSTEM_TABLES) == lake.store.tables()
    lake.store.table("users").set_properties({"delta.appendOnly": "false"})
    assert sorted(lake.init()) == sorted(SYSTEM_TABLES)
    assert lake.store.table("users").version() == 1
    assert {info.actor for info in lake.store.history("users")} == {"me"}


def test_the_system_tables_are_as_registered(lake: Lakehouse) -> None:
    for spec in SYSTEM_TABLES.values():
        info = lake.store.describe(spec.name)
        assert (info.primary_key, info.partition_columns) == (spec.primary_key, spec.partition_by)
        assert [column.name for column in info.columns] == spec.schema.names


def test_init_in_a_place_that_is_a_file_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoragePermissionError, match="base_path"):
        Lakehouse.open(str(tmp_path / "file" / "lake")).init()


def test_a_word_is_a_table_of_the_lakehouse_first(
    lake: Lakehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lake.store.at("users").create(SCHEMA)
    lake.store.at("elsewhere").create(SCHEMA)
    assert lake.resolve("users").location.uri == f"{lake.store.base.uri}/users"
    assert lake.resolve("./users").location.uri == f"{tmp_path}/users"
    assert lake.resolve("elsewhere").location.uri == f"{tmp_path}/elsewhere"
    assert lake.resolve("neither").location.uri == f"{lake.store.base.uri}/neither"


@pytest.mark.parametrize("text", ["", "a%b", "s3://KEY:SECRET@b/t", "ftp://x/y"])
def test_a_text_that_means_nothing_is_refused(lake: Lakehouse, text: str) -> None:
    with pytest.raises(InvalidNameError) as caught:
        lake.resolve(text)
    assert "SECRET" not in str(caught.value)


@pytest.mark.object_store
def test_a_lakehouse_on_an_object_store(s3: S3Server) -> None:
    config = LakehouseConfig(base_path=s3.fresh_uri(), storage_options=dict(s3.options))
    lake = Lakehouse.open(config)
    assert sorted(lake.init()) == lake.store.tables()
    assert lake.resolve("users").exists()
    assert lake.resolve(f"{config.base_path}/users").primary_key() == ("user_id",)
