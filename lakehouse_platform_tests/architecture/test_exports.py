"""The package's front door: few names, each loaded when it is first used."""

from __future__ import annotations

import subprocess
import sys

import pytest

import lakehouse_platform


@pytest.mark.parametrize("name", lakehouse_platform.__all__)
def test_every_exported_name_is_there_under_its_own_name(name: str) -> None:
    assert getattr(lakehouse_platform, name).__name__ == name


def test_the_names_are_sorted() -> None:
    assert list(lakehouse_platform.__all__) == sorted(lakehouse_platform.__all__)


def test_a_name_that_is_not_exported_is_refused_like_any_attribute() -> None:
    with pytest.raises(AttributeError, match="Nothing"):
        lakehouse_platform.Nothing  # noqa: B018


def test_importing_the_package_loads_no_engine() -> None:
    heavy = ("deltalake", "datafusion", "polars", "pyarrow", "dagster", "click", "rich")
    code = f"import sys, lakehouse_platform; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
