"""A setting that nothing reads is a lie."""

from __future__ import annotations

import ast
from functools import cache

import pytest

from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform_tests.architecture.source import package_files, relative, tree

# Read through the property that shows its secrets to the engine.
READ_AS = {"storage_options": "plain_storage_options"}

# What they read is no setting of the platform.
OTHER_READERS = {
    "lakehouse_platform/cli/session.py": "hands its --config to the settings by the variable that they read",
    "lakehouse_platform/cli/mount.py": "hands its own environment to the server that it starts",
    "lakehouse_platform/nfs/mounting.py": "finds the system's mount programs by PATH",
    "lakehouse_platform/private_files.py": "XDG_STATE_HOME, the standard place for what programs keep",
}


@cache
def _attributes() -> set[str]:
    return {
        node.attr
        for path in package_files()
        if relative(path) != "lakehouse_platform/settings.py"
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
    }


@pytest.mark.parametrize("name", LakehouseConfig.model_fields)
def test_every_setting_is_read_somewhere(name: str) -> None:
    assert READ_AS.get(name, name) in _attributes()


def test_only_the_settings_read_the_environment() -> None:
    found = {
        relative(path)
        for path in package_files()
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Attribute) and node.attr in {"environ", "getenv"}
    }
    assert found == {"lakehouse_platform/settings.py", *OTHER_READERS}
