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


def test_a_table_of_the_lakehouse_has_its_name_however_it_is_reached(lake: Lakehouse, tmp_path: Path) -> None:
    base = lake.store.base.path
    (tmp_path / "link").symlink_to(base / "users")
    (tmp_path / "door").symlink_to(base)
    for way in (
        f"{base}/users",
        f"{base}/../{base.name}/users",
        f"{tmp_path}/link",
        f"{tmp_path}/door/users",
    ):
        assert lake.name_of(lake.resolve(way)) == "users", way
    assert (
        lake.name_of(lake.resolve("users")) == lake.name_of(lake.resolve(f"file://{base}/users")) == "users"
    )
    for way in (f"{tmp_path}/users", f"{base}/users/below", f"{base}/not a name"):
        assert lake.name_of(lake.resolve(way)) is None, way


def test_the_owner_goes_through_a_gate_where_there_is_an_audit_log(config: LakehouseConfig) -> None:
    with Lakehouse.open(config) as new:
        assert (new.gate_of(), new.work_of()) == (None, None)
        assert new.store.tables() == []
        new.init()
        assert new.gate_of() is new.gate_of() is not None
        assert new.accounts.gate is new.gate_of()


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


def test_through_another_door_it_has_the_same_accounts_which_stay_open(lake: Lakehouse) -> None:
    with lake:
        with lake.through(Origin(door=Door.HTTP, run_id="request-1")) as other:
            assert other.accounts is lake.accounts
            assert other.through(Origin(door=Door.NFS)).accounts is lake.accounts
            assert other.audit.verify().is_whole
        lake.audit.verify()
        found = lake.accounts.audit.search()
        assert [(entry.door, entry.request_id) for entry in found] == [
            ("http", "request-1"),
            (lake.store.origin.door, lake.store.origin.run_id),
        ]


def test_a_lakehouse_is_the_same_however_it_was_reached(tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    (tmp_path / "link").symlink_to("lake")
    lake, link, other = (Lakehouse.open(str(tmp_path / name)) for name in ("lake", "link", "other"))
    assert lake.is_same(link)
    assert link.is_same(lake)
    assert not lake.is_same(other)
