"""Files and functions stay small enough to be read in one go."""

from __future__ import annotations

import ast
from statistics import median

from lakehouse_platform_tests.architecture.source import package_files, python_files, relative, tree

MAX_FILE_LINES = 500
MAX_FUNCTION_LINES = 60
MAX_MEDIAN_FILE_LINES = 200


def test_a_file_is_one_room() -> None:
    sizes = {relative(path): len(path.read_text(encoding="utf-8").splitlines()) for path in python_files()}
    assert {path: size for path, size in sizes.items() if size > MAX_FILE_LINES} == {}


def test_the_typical_file_of_the_package_is_short() -> None:
    assert (
        median(len(path.read_text(encoding="utf-8").splitlines()) for path in package_files())
        <= MAX_MEDIAN_FILE_LINES
    )


def test_a_function_fits_on_a_screen() -> None:
    too_long = {
        f"{relative(path)}:{node.name}": node.end_lineno - node.lineno + 1
        for path in python_files()
        for node in ast.walk(tree(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno >= MAX_FUNCTION_LINES
    }
    assert too_long == {}
