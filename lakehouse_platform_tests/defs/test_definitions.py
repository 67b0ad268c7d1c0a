"""The code location: what is in it, and that it loads whatever the lakehouse is like."""

import ast
import gc
import json
import os
import socket
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import dagster as dg
import pytest
import yaml

import lakehouse_platform
from lakehouse_platform.defs.build import build_defs
from lakehouse_platform.errors import ConfigError
from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform_tests.support.tables import PEOPLE

PACKAGE = Path(lakehouse_platform.__file__).parent
PROJECT = PACKAGE.parent

BuildDefs = Callable[[], dg.Definitions]


def keys(definitions: dg.Definitions) -> list[str]:
    return sorted(key.to_user_string() for key in definitions.resolve_asset_graph().get_all_asset_keys())


def test_the_code_location_holds_exactly_this(defs: BuildDefs) -> None:
    definitions = defs()
    repository = definitions.get_repository_def()

    assert keys(definitions) == [
        "lakehouse/api_keys", "lakehouse/audit_log", "lakehouse/grants", "lakehouse/sessions",
        "lakehouse/user_actions", "lakehouse/users",
    ]  # fmt: skip
    assert sorted(job.name for job in repository.get_all_jobs() if not job.name.startswith("__")) == [
        "compact_tables", "refresh_tables", "session_cleanup", "vacuum_tables", "verify_audit_log",
        "z_order_tables",
    ]  # fmt: skip
    assert {schedule.name: schedule.cron_schedule for schedule in repository.schedule_defs} == {
        "session_cleanup_hourly": "5 * * * *",
        "compact_tables_every_6_hours": "20 */6 * * *",
        "z_order_tables_daily": "40 2 * * *",
        "vacuum_tables_weekly": "10 4 * * 0",
        "verify_audit_log_daily": "30 3 * * *",
    }
    assert sorted(sensor.name for sensor in repository.sensor_defs) == [
        "delta_commit_sensor", "run_failure_audit_sensor",
    ]  # fmt: skip
    assert sorted({key.name for key in definitions.resolve_asset_graph().asset_check_keys}) == [
        "hash_chain_is_intact", "primary_key_is_unique", "schema_matches_registry", "small_file_ratio_is_low",
        "table_is_fresh",
    ]  # fmt: skip


def test_automation_runs_by_itself_and_in_utc(defs: BuildDefs) -> None:
    repository = defs().get_repository_def()

    assert {schedule.default_status for schedule in repository.schedule_defs} == {
        dg.DefaultScheduleStatus.RUNNING
    }
    assert {schedule.execution_timezone for schedule in repository.schedule_defs} == {"UTC"}
    assert {sensor.default_status for sensor in repository.sensor_defs} == {dg.DefaultSensorStatus.RUNNING}


def test_every_asset_job_schedule_and_sensor_is_described_and_owned(
    defs: BuildDefs, store: DeltaStore
) -> None:
    store.create("orders", PEOPLE)
    definitions = defs()
    repository = definitions.get_repository_def()
    for spec in definitions.resolve_all_asset_specs():
        assert spec.description
        assert spec.owners
        assert spec.group_name in {"system_tables", "user_tables"}
        assert spec.code_version
        assert "deltalake" in spec.kinds
        assert spec.freshness_policy is not None
        assert set(spec.metadata) >= {"dagster/uri", "dagster/table_name", "dagster/storage_kind"}
    described = [
        *(job for job in repository.get_all_jobs() if not job.name.startswith("__")),
        *repository.schedule_defs,
        *repository.sensor_defs,
    ]
    assert [item.name for item in described if not item.description] == []


def test_a_table_in_the_lakehouse_becomes_an_asset(defs: BuildDefs, store: DeltaStore) -> None:
    store.create("orders", PEOPLE)

    assert "lakehouse/orders" in keys(defs())


def test_table_names_that_look_alike_to_dagster_do_not_collide(defs: BuildDefs, store: DeltaStore) -> None:
    for name in ("a.b", "a-b", "a_b", "2026"):
        store.create(name, PEOPLE)
    definitions = defs()
    dg.Definitions.validate_loadable(definitions)

    assert {f"lakehouse/{name}" for name in ("a.b", "a-b", "a_b", "2026")} <= set(keys(definitions))


def test_loading_creates_nothing(defs: BuildDefs, config: LakehouseConfig) -> None:
    dg.Definitions.validate_loadable(defs())

    assert not Path(config.base_path).exists()


def test_named_tables_are_used_instead_of_looking(config: LakehouseConfig) -> None:
    assert "lakehouse/given" in keys(build_defs(config=config, tables=["given"]))


def test_resources_can_be_replaced(config: LakehouseConfig) -> None:
    definitions = build_defs(config=config, resources={"extra": object()})

    assert set(definitions.resources or {}) == {"lakehouse", "extra"}


@pytest.mark.slow
def test_storage_that_does_not_answer_leaves_the_platform_tables_and_a_warning(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        options = {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{silent.getsockname()[1]}",
            "AWS_ALLOW_HTTP": "true",
            "AWS_ACCESS_KEY_ID": "k",
            "AWS_SECRET_ACCESS_KEY": "s",
            "AWS_REGION": "us-east-1",
        }
        monkeypatch.setenv("LAKEHOUSE_STORAGE_OPTIONS", json.dumps(options))
        monkeypatch.setenv("LAKEHOUSE_URI", "s3://bucket/lake")
        definitions = build_defs()

    assert len(keys(definitions)) == 6
    assert "Only the platform's own tables are shown" in caplog.text


def test_storage_options_given_only_in_code_are_refused(config: LakehouseConfig) -> None:
    hidden = config.model_copy(update={"storage_options": {"AWS_REGION": "x"}})
    with pytest.raises(ConfigError, match="LAKEHOUSE_STORAGE_OPTIONS"):
        build_defs(config=hidden)


def test_settings_are_checked_at_load(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEHOUSE_VACUUM_RETENTION", "1")
    with pytest.raises(ConfigError, match="LAKEHOUSE_VACUUM_RETENTION"):
        build_defs()


def test_workspace_and_project_file_name_the_same_code_location() -> None:
    workspace = yaml.safe_load((PROJECT / "workspace.yaml").read_text())
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["tool"]["dagster"]

    assert workspace["load_from"] == [
        {
            "python_module": {
                "module_name": project["module_name"],
                "location_name": project["code_location_name"],
            }
        }
    ]


def test_the_instance_settings_are_accepted_by_dagster(tmp_path: Path) -> None:
    (tmp_path / "dagster.yaml").write_text((PROJECT / "dagster.yaml").read_text())
    with dg.DagsterInstance.from_config(str(tmp_path)) as instance:
        assert instance.get_settings("telemetry")["enabled"] is False
        assert instance.get_settings("sensors")["use_threads"] is True
        assert instance.get_concurrency_config().pool_config.default_pool_limit == 1


@pytest.mark.slow
def test_the_workspace_loads_in_a_fresh_interpreter_with_nothing_set(tmp_path: Path) -> None:
    (tmp_path / "workspace.yaml").write_text((PROJECT / "workspace.yaml").read_text())
    clean = {
        name: value for name, value in os.environ.items() if not name.startswith(("LAKEHOUSE", "DAGSTER"))
    }
    done = subprocess.run(
        [sys.executable, "-m", "dagster", "definitions", "validate", "-w", "workspace.yaml"],
        cwd=tmp_path,
        env={**clean, "PYTHONPATH": str(PROJECT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert "lakehouse_platform" in done.stderr + done.stdout
    assert not (tmp_path / "lakehouse").exists()


def sources(root: Path) -> list[tuple[Path, ast.Module]]:
    return [(path, parsed(path)) for path in sorted(root.rglob("*.py"))]


def parsed(path: Path) -> ast.Module:
    # A garbage collection in the middle of parsing can end in a SystemError (CPython 3.11, gh-106905).
    gc.disable()
    try:
        return ast.parse(path.read_text())
    finally:
        gc.enable()


def imported(tree: ast.Module) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
    return names


def roots(tree: ast.Module) -> set[str]:
    return {name.partition(".")[0] for name in imported(tree)}


def test_only_the_definitions_import_dagster() -> None:
    users = {
        path.relative_to(PACKAGE).parts[0] for path, tree in sources(PACKAGE) if "dagster" in roots(tree)
    }

    assert users <= {"defs", "definitions.py"}


def test_the_definitions_do_not_postpone_annotations() -> None:
    # Dagster reads the annotations of config classes and resources at run time.
    checked = [
        *sources(PACKAGE / "defs"),
        (PACKAGE / "definitions.py", parsed(PACKAGE / "definitions.py")),
    ]

    assert [path.name for path, tree in checked if "__future__" in imported(tree)] == []


def test_the_definitions_reach_storage_only_through_the_layers_between() -> None:
    offenders = {
        path.name: name
        for path, tree in sources(PACKAGE / "defs")
        for name in imported(tree)
        if name.startswith(("lakehouse_platform.store", "deltalake", "datafusion"))
    }

    assert offenders == {}
