"""Rules of the house that neither the linter nor the import contracts can hold."""

from __future__ import annotations

import ast
import re
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


@pytest.mark.parametrize("path", text_files(), ids=relative)
def test_no_file_names_a_place_on_the_machine_it_was_written_on(path: Path) -> None:
    if path == Path(__file__):
        return
    lines = path.read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if _SOMEBODYS_HOME.search(line)] == []


@pytest.mark.parametrize("path", package_files(), ids=relative)
def test_annotations_are_never_evaluated_except_where_dagster_reads_them(path: Path) -> None:
    is_dagster = "/defs/" in relative(path) or path.name == "definitions.py"
    imports = [
        node for node in tree(path).body if isinstance(node, ast.ImportFrom) and node.module == "__future__"
    ]
    has_code = len(tree(path).body) > 1
    assert bool(imports) == (has_code and not is_dagster)


@pytest.mark.parametrize("path", python_files(), ids=relative)
def test_no_exception_is_swallowed(path: Path) -> None:
    handlers = [node for node in ast.walk(tree(path)) if isinstance(node, ast.ExceptHandler)]
    silent = [h.lineno for h in handlers if all(isinstance(step, ast.Pass | ast.Continue) for step in h.body)]
    assert silent == []


@pytest.mark.parametrize("path", package_files(), ids=relative)
def test_a_module_says_what_it_is_for(path: Path) -> None:
    assert ast.get_docstring(tree(path)) is not None


@pytest.mark.parametrize("path", package_files(), ids=relative)
def test_only_the_hierarchy_of_errors_defines_errors(path: Path) -> None:
    signals = {name for name, (home, _) in _SIGNALS.items() if home == relative(path)}
    assert path.name == "errors.py" or set(_exception_classes(path)) == signals


@pytest.mark.parametrize("signal", _SIGNALS)
def test_a_signal_does_not_leave_its_room(signal: str) -> None:
    _, room = _SIGNALS[signal]
    users = [relative(path) for path in package_files() if signal in _names(path)]
    assert users
    assert [user for user in users if not user.startswith(room)] == []


def _exception_classes(path: Path) -> list[str]:
    """Return the classes that are errors by their name or by what they are made from."""
    classes = [node for node in ast.walk(tree(path)) if isinstance(node, ast.ClassDef)]
    return [one.name for one in classes if any(map(_IS_ERROR, [one.name, *map(ast.unparse, one.bases)]))]


def _names(path: Path) -> set[str]:
    nodes = list(ast.walk(tree(path)))
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    return names | {node.name for node in nodes if isinstance(node, ast.ClassDef | ast.alias)}
