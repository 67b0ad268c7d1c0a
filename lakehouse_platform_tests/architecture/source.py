"""The project's own files, as the rules about them read them."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
_CODE = ("lakehouse_platform", "lakehouse_platform_tests", "bench", "docs")


@cache
def python_files() -> tuple[Path, ...]:
    """Return every Python file of the project."""
    return tuple(sorted(path for folder in _CODE for path in (ROOT / folder).rglob("*.py")))


@cache
def package_files() -> tuple[Path, ...]:
    """Return the Python files of the package itself."""
    return tuple(path for path in python_files() if relative(path).startswith("lakehouse_platform/"))


@cache
def text_files() -> tuple[Path, ...]:
    """Return every file that a person wrote: code, pages, scripts and the files at the top."""
    folders = [ROOT / folder for folder in (*_CODE, ".ci")]
    inside = [path for folder in folders for path in folder.rglob("*") if "__pycache__" not in path.parts]
    return tuple(sorted(path for path in [*ROOT.iterdir(), *inside] if path.is_file()))


@cache
def tree(path: Path) -> ast.Module:
    """Return a file's syntax tree."""
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def relative(path: Path) -> str:
    """Return a path as it is named from the project's root."""
    return path.relative_to(ROOT).as_posix()
