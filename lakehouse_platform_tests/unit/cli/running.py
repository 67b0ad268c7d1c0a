"""What tests of commands share: the type of the `run` fixture, and reading what a command printed."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from click.testing import Result

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
