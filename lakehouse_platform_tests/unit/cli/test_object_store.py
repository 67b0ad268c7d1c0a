from __future__ import annotations

import pytest

from lakehouse_platform.store.tables import SYSTEM_TABLES
from lakehouse_platform_tests.support.s3_server import S3Server
from lakehouse_platform_tests.unit.cli.running import Run, document

pytestmark = pytest.mark.object_store


@pytest.fixture
def options(s3: S3Server) -> list[str]:
    return [word for key, value in s3.options.items() for word in ("--storage-option", f"{key}={value}")]


def test_a_table_at_a_uri_is_created_changed_queried_and_exported(
    run: Run, s3: S3Server, options: list[str]
) -> None:
    uri = f"{s3.fresh_uri()}/orders"
    assert document(run("create", uri, "--from-csv", "orders.csv", "--json", *options))["rows"] == 4
    assert document(run("append", uri, "new_orders.csv", "--json", *options))["rows"] == 1
    assert document(run("query", uri, "SELECT count(*) AS n FROM orders", "--json", *options)) == [{"n": 5}]
    out = f"{uri}-out.parquet"
    assert document(run("export", uri, out, "--json", *options))["rows"] == 5
    assert document(run("create", "back", "--from-parquet", out, "--json", *options))["rows"] == 5


def test_a_whole_lakehouse_stands_in_a_bucket(run: Run, s3: S3Server, options: list[str]) -> None:
    base = ["--base-path", s3.fresh_uri(), *options]
    assert document(run("init", "--json", *base))["created"] == [*SYSTEM_TABLES]
    run("create", "t", "--schema", "id:Int32", *base)
    run("insert", "t", '[{"id": 1}, {"id": 2}]', *base)
    assert document(run("sql", "SELECT sum(id) AS total FROM t", "--json", *base)) == [{"total": 3}]
    assert {one["status"] for one in document(run("doctor", "--json", *base))} == {"ok"}


def test_wrong_credentials_are_a_problem_that_doctor_finds(
    run: Run, s3: S3Server, options: list[str]
) -> None:
    wrong = [word.replace("SECRET_ACCESS_KEY=", "SECRET_ACCESS_KEY=x") for word in options]
    result = run("doctor", "--json", "--base-path", s3.fresh_uri(), *wrong)
    assert result.exit_code == 1
    assert '"check": "storage"' in result.stdout
    assert not [value for key, value in s3.options.items() if "SECRET" in key and value in result.output]
