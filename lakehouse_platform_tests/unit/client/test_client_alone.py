"""The client is used where nothing of the server is wanted: it imports nothing of it."""

from __future__ import annotations

import subprocess
import sys

import pytest

_SERVER = (
    "fastapi", "uvicorn", "starlette", "prometheus_client", "deltalake", "datafusion", "polars", "pandas", "dagster",
    "argon2", "zxcvbn", "jwt", "pydantic",
)  # fmt: skip


@pytest.mark.parametrize("name", ["LakehouseClient", "AsyncLakehouseClient"])
def test_importing_and_making_a_client_loads_nothing_of_the_server(name: str) -> None:
    code = (
        f"import sys; from lakehouse_platform import {name}; {name}(base_url='http://localhost:1'); "
        f"print([m for m in {_SERVER!r} if m in sys.modules], "
        "[m for m in sys.modules if m.startswith('lakehouse_platform.') and m.split('.')[1] not in "
        "('client', 'errors', 'model')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[] []"
