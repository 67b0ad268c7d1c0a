"""Rules of the house that neither the linter nor the import contracts can hold."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path

import pytest

from lakehouse_platform_tests.architecture.source import (
    package_files,
    python_files,
    relative,
    text_files,
    tree,
)

_SOMEBODYS_HOME = re.compile(r"/(?:root|home/\w+)/")
_IS_ERROR = re.compile(r"(?:Error|Exception|ExceptionGroup)$").search
# Exceptions that say no more than how to go on, to code in the same room, which always catches them: no caller of the
# platform ever sees one, so they are not part of its errors. By name: where it is defined, and the room.
_SIGNALS = {
    "Declined": ("lakehouse_platform/cli/confirm.py", "lakehouse_platform/cli/"),
    "NfsError": ("lakehouse_platform/nfs/operations.py", "lakehouse_platform/nfs/"),
    "_OpenQuote": ("lakehouse_platform/text/csv_records.py", "lakehouse_platform/text/csv_records.py"),
}


def test_no_file_names_a_place_on_the_machine_it_was_written_on() -> None:
    assert _offences(text_files(), _homes) == {}


def test_annotations_are_never_evaluated_except_where_dagster_reads_them() -> None:
    assert [relative(path) for path in package_files() if not _is_annotated_as_it_should(path)] == []


def test_no_exception_is_swallowed() -> None:
    assert _offences(python_files(), _silent_handlers) == {}


def test_a_module_says_what_it_is_for() -> None:
    assert [relative(path) for path in package_files() if ast.get_docstring(tree(path)) is None] == []


def test_only_the_hierarchy_of_errors_defines_errors() -> None:
    assert _offences(package_files(), _stray_errors) == {}


@pytest.mark.parametrize("signal", _SIGNALS)
def test_a_signal_does_not_leave_its_room(signal: str) -> None:
    _, room = _SIGNALS[signal]
    users = [relative(path) for path in package_files() if signal in _names(path)]
    assert users
    assert [user for user in users if not user.startswith(room)] == []


def _offences(
    paths: Iterable[Path], found: Callable[[Path], Sequence[object]]
) -> dict[str, Sequence[object]]:
    return {relative(path): offences for path in paths if (offences := found(path))}


def _homes(path: Path) -> list[str]:
    if path == Path(__file__):
        return []
    return [line for line in path.read_text(encoding="utf-8").splitlines() if _SOMEBODYS_HOME.search(line)]


def _is_annotated_as_it_should(path: Path) -> bool:
    is_dagster = "/defs/" in relative(path) or path.name == "definitions.py"
    imports = [
        node for node in tree(path).body if isinstance(node, ast.ImportFrom) and node.module == "__future__"
    ]
    has_code = len(tree(path).body) > 1
    return bool(imports) == (has_code and not is_dagster)


def _silent_handlers(path: Path) -> list[int]:
    handlers = [node for node in ast.walk(tree(path)) if isinstance(node, ast.ExceptHandler)]
    return [h.lineno for h in handlers if all(isinstance(step, ast.Pass | ast.Continue) for step in h.body)]


def _stray_errors(path: Path) -> list[str]:
    """Return the errors that a file defines though it may not, and the signals that it should define and does not."""
    signals = {name for name, (home, _) in _SIGNALS.items() if home == relative(path)}
    return [] if path.name == "errors.py" else sorted(set(_exception_classes(path)) ^ signals)


def _exception_classes(path: Path) -> list[str]:
    """Return the classes that are errors by their name or by what they are made from."""
    classes = [node for node in ast.walk(tree(path)) if isinstance(node, ast.ClassDef)]
    return [one.name for one in classes if any(map(_IS_ERROR, [one.name, *map(ast.unparse, one.bases)]))]


@cache
def _names(path: Path) -> set[str]:
    nodes = list(ast.walk(tree(path)))
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    return names | {node.name for node in nodes if isinstance(node, ast.ClassDef | ast.alias)}
