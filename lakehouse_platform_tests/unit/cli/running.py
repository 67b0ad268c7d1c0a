"""What tests of commands share: the type of the `run` fixture, and reading what a command printed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from click.testing import Result

from lakehouse_platform.services.lakehouse import Lakehouse
from lakehouse_platform.settings import LakehouseConfig

PASSWORD = "seven small boats at noon"
NEW_PASSWORD = "eight large boats at dusk"

Run = Callable[..., Result]


def document(result: Result) -> Any:
    """Return the one JSON document that a successful command printed."""
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def error(result: Result) -> dict[str, Any]:
    """Return the JSON error that a failed command printed; its standard output is empty."""
    assert result.exit_code != 0
    assert result.stdout == ""
    return json.loads(result.stderr)


def lakehouse_here(directory: Path) -> Lakehouse:
    """Open the lakehouse of the workplace past the command line, as the owner of its files."""
    return Lakehouse.open(LakehouseConfig(base_path=str(directory / "lakehouse"), durability="os"))


def sign_in_file(directory: Path) -> Path:
    """Return the file with the one sign-in that is kept."""
    (found,) = (directory.parent / "state").rglob("sign_in_*.json")
    return found
