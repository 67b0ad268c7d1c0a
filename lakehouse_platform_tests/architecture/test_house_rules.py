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
    classes = [node for node in ast.walk(tree(path)) if isinstance(node, ast.ClassDef)]
    own = [c.name for c in classes if c.name.endswith(("Error", "Exception")) and path.name != "errors.py"]
    assert own == []
