"""Every test that the page on security names is there, and every attack on it names one."""

from __future__ import annotations

import re

import pytest

from lakehouse_platform_tests.docs.test_snippets import ROOT

_NAMED = re.compile(r"`((?:\w+/)*test_\w+\.py)::(\w+)`")
_PAGE = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
_ATTACKS = _PAGE.split("\n## Attacks\n", 1)[1].split("\n## ", 1)[0]
NAMED = sorted(set(_NAMED.findall(_PAGE)))


@pytest.mark.parametrize(("module", "name"), NAMED)
def test_a_test_that_the_page_names_is_there(module: str, name: str) -> None:
    text = (ROOT / "lakehouse_platform_tests" / module).read_text(encoding="utf-8")
    assert name in re.findall(r"^def (\w+)\(", text, re.MULTILINE)


def test_every_attack_names_what_stops_it_and_a_test() -> None:
    rows = [
        line for line in _ATTACKS.splitlines() if line.startswith("| ") and not line.startswith("| Attack ")
    ]
    assert len(rows) > 30
    assert [row for row in rows if len(row.split(" | ")) != 3 or not _NAMED.search(row)] == []


def test_every_hostile_test_module_is_named_on_the_page() -> None:
    modules = {path.name for path in (ROOT / "lakehouse_platform_tests" / "security").glob("test_*.py")}
    named = {module.removeprefix("security/") for module, _ in NAMED if module.startswith("security/")}
    assert modules == named
