"""What a page points to is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lakehouse_platform_tests.docs.test_snippets import PAGES, ROOT

_LINK = re.compile(r"\]\((?!https?://|#)([^)#\s]+)")
_MODULE = re.compile(r"`((?:\w+/)*\w+\.py)`")


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CHANGELOG.md"], ids=lambda page: page.name)
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    links = _LINK.findall(page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_the_map_of_the_house_names_files_that_exist() -> None:
    named = _MODULE.findall((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    missing = [
        name
        for name in named
        if not (ROOT / name).exists() and not (ROOT / "lakehouse_platform" / name).exists()
    ]
    assert missing == []


def test_the_map_of_the_house_shows_every_room() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rooms = [
        folder.name for folder in (ROOT / "lakehouse_platform").iterdir() if (folder / "__init__.py").exists()
    ]
    assert [room for room in rooms if f"{room}/" not in page] == []
