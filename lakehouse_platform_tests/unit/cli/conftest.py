"""A directory with a small lakehouse and the files of the examples; each test works in a copy of its own."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from argon2 import PasswordHasher
from click.testing import CliRunner, Result

from lakehouse_platform.cli.main import cli
from lakehouse_platform_tests.unit.cli.running import NEW_PASSWORD, PASSWORD, Run

_CUSTOMERS = '[{"id": 1, "name": "Alice"}, {"id": 2, "name": "Bob"}, {"id": 3, "name": null}]'
_ORDERS = """\
id,customer,amount,country
1,1,10.5,FR
2,1,250.0,DE
3,2,120.25,FR
4,3,15.0,DE
"""


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The original that tests copy."""
    directory = tmp_path_factory.mktemp("prepared")
    _write_files(directory)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        for variable in [name for name in os.environ if name.startswith("LAKEHOUSE_")]:
            patch.delenv(variable)
        patch.chdir(directory)
        _hash_quickly(patch)
        for words in _set_up():
            result = CliRunner().invoke(cli, words, input=f"{PASSWORD}\n")
            assert result.exit_code == 0, (words, result.output, result.exception)
    return directory


@pytest.fixture
def workplace(prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory: files, and `./lakehouse` with customers (versions 0 to 3) and orders.

    Its superadmin is root, its users are alice and bob; carol waits for approval. All have the same password.
    The program loader has an API key.
    """
    directory = tmp_path / "work"
    shutil.copytree(prepared, directory)
    monkeypatch.chdir(directory)
    _hash_quickly(monkeypatch)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return directory


@pytest.fixture
def run(workplace: Path) -> Run:
    """Runs a command in the workplace and returns its result; output is a pipe."""
    del workplace

    def run_command(
        *words: str, stdin: str | bytes | None = None, env: Mapping[str, str] | None = None
    ) -> Result:
        return CliRunner(env=env).invoke(cli, list(words), input=stdin)

    return run_command


def _hash_quickly(patch: pytest.MonkeyPatch) -> None:
    """Let this process hash passwords with so little work that tests may sign in often."""
    quick = partial(PasswordHasher, time_cost=1, memory_cost=8, parallelism=1)
    patch.setattr("lakehouse_platform.identity.passwords.PasswordHasher", quick)


def _set_up() -> list[list[str]]:
    return [
        ["init"],
        ["create", "customers", "--schema", "id:Int32,name:String", "--primary-key", "id"],
        ["insert", "customers", _CUSTOMERS],
        ["update", "customers", "--set", "name='Alice A.'", "--where", "id = 1"],
        ["insert", "customers", '{"id": 4, "name": "Dave"}'],
        ["create", "orders", "--from-csv", "orders.csv", "--partition-by", "country"],
        ["users", "bootstrap", "root", "root@example.com", "--password-stdin"],
        *(
            ["users", "add", name, f"{name}@example.com", "--approve", "--password-stdin"]
            for name in ("alice", "bob")
        ),
        ["users", "add", "carol", "carol@example.com", "--password-stdin"],
        ["users", "add-service", "loader"],
        ["keys", "create", "loader", "--label", "nightly"],
    ]


def _write_files(directory: Path) -> None:
    (directory / "password.txt").write_text(f"{PASSWORD}\n")
    (directory / "new_password.txt").write_text(f"{NEW_PASSWORD}\n")
    (directory / "two_passwords.txt").write_text(f"{PASSWORD}\n{NEW_PASSWORD}\n")
    (directory / "lakehouse.toml").write_text('durability = "os"\n')
    (directory / "orders.csv").write_text(_ORDERS)
    (directory / "new_orders.csv").write_text("id,customer,amount,country\n5,2,99.0,IT\n")
    (directory / "new_orders.jsonl").write_text('{"id": 6, "customer": 3, "amount": 1.5, "country": "FR"}\n')
    (directory / "rows.json").write_text('[{"id": 20, "name": "Tim"}, {"id": 21, "name": "Vint"}]')
    (directory / "more").mkdir()
    for number in (7, 8):
        rows = pa.table({"id": [number], "customer": [1], "amount": [5.0], "country": ["DE"]})
        pq.write_table(rows, directory / "more" / f"{number}.parquet")
