"""The error tree holds no class that nothing raises, and groups only group."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache

import pytest

from lakehouse_platform import errors
from lakehouse_platform_tests.architecture.source import package_files, tree

GROUPS = (errors.LakehouseError, *errors.LakehouseError.__subclasses__())
# They define the errors, and say what NFS clients are told.
NAMING_ONLY = {"errors.py", "statuses.py"}


def _leaves(cls: type[errors.LakehouseError]) -> Iterator[type[errors.LakehouseError]]:
    for child in cls.__subclasses__():
        yield child
        yield from _leaves(child)


@cache
def _made() -> set[str]:
    """Return the names of all classes that the package makes or hands on as the class to raise."""
    names: set[str] = set()
    for path in package_files():
        if path.name not in NAMING_ONLY:
            names |= {node.id for node in ast.walk(tree(path)) if isinstance(node, ast.Name)}
            names |= {node.attr for node in ast.walk(tree(path)) if isinstance(node, ast.Attribute)}
    return names


@cache
def _raised_directly() -> set[str]:
    calls = (
        node.func
        for path in package_files()
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute)
    )
    return {call.id if isinstance(call, ast.Name) else call.attr for call in calls}


@pytest.mark.parametrize("cls", [cls for cls in _leaves(errors.LakehouseError) if cls not in GROUPS])
def test_every_error_class_is_raised_somewhere(cls: type[errors.LakehouseError]) -> None:
    assert cls.__name__ in _made()


@pytest.mark.parametrize("cls", GROUPS)
def test_a_group_is_never_raised_itself(cls: type[errors.LakehouseError]) -> None:
    assert cls.__name__ not in _raised_directly()
