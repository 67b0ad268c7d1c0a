"""Files and functions stay small enough to be read in one go."""

from __future__ import annotations

import ast
from pathlib import Path
from statistics import median

import pytest

from lakehouse_platform_tests.architecture.source import package_files, python_files, relative, tree

MAX_FILE_LINES = 500
MAX_FUNCTION_LINES = 60
MAX_MEDIAN_FILE_LINES = 200


@pytest.mark.parametrize("path", python_files(), ids=relative)
def test_a_file_is_one_room(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MAX_FILE_LINES


def test_the_typical_file_of_the_package_is_short() -> None:
    assert (
        median(len(path.read_text(encoding="utf-8").splitlines()) for path in package_files())
        <= MAX_MEDIAN_FILE_LINES
    )


@pytest.mark.parametrize("path", python_files(), ids=relative)
def test_a_function_fits_on_a_screen(path: Path) -> None:
    functions = [
        node for node in ast.walk(tree(path)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    too_long = {
        f.name: f.end_lineno - f.lineno + 1
        for f in functions
        if f.end_lineno - f.lineno >= MAX_FUNCTION_LINES
    }
    assert too_long == {}
