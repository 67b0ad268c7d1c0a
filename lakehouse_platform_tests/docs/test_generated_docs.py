"""The reference pages say what the code says."""

from __future__ import annotations

import pytest

from docs.generate import DOCS, PAGES
from lakehouse_platform.settings import LakehouseConfig


@pytest.mark.parametrize("name", PAGES)
def test_a_generated_page_is_current(name: str) -> None:
    written = (DOCS / name).read_text(encoding="utf-8")
    assert written == PAGES[name](), f"docs/{name} is stale: run python -m docs.generate"


@pytest.mark.parametrize("name", LakehouseConfig.model_fields)
def test_every_setting_says_what_it_does_in_a_sentence(name: str) -> None:
    description = LakehouseConfig.model_fields[name].description
    assert description
    assert description.endswith(".")
