"""Every example in the README and the documentation runs and prints what its page says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lakehouse_platform_tests.docs.snippets import blocks, matches, run_page
from lakehouse_platform_tests.support.warm_commands import warm_commands

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
# What a test must not start: set-up of the machine, servers and what asks them, mounts and work in them, long
# campaigns, tools of git.
NOT_RUN = (
    "sh .ci/",
    "LAKEHOUSE_URI=",
    ".venv/bin/",
    "python -m bench",
    "python -m docs",
    "lakehouse serve",
    "lakehouse nfs serve",
    "lakehouse login alice --server",
    "lakehouse mount",
    "git ",
    "cd ",
    "sudo ",
    "grep ",
    "echo ",
    "sed ",
    "#",
)


@pytest.fixture(scope="module")
def programs() -> Iterator[Path]:
    """Where `lakehouse` is."""
    with warm_commands() as directory:
        yield directory


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_examples_of_a_page_run(
    page: Path, tmp_path: Path, programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_page(page, tmp_path, programs) == sum(
        block.runs for block in blocks(page.read_text(encoding="utf-8"))
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_has_no_example_that_is_left_out_without_a_reason(page: Path) -> None:
    left_out = [block for block in blocks(page.read_text(encoding="utf-8")) if block.info == "sh"]
    lines = [line for block in left_out for line in block.code.splitlines() if line.strip()]
    assert [line for line in lines if not line.startswith(NOT_RUN)] == []
    assert {block.info for block in blocks(page.read_text(encoding="utf-8"))} <= {
        "python",
        "sh",
        "sh run",
        "text",
        "toml",
    }


def test_an_ellipsis_stands_for_anything_and_nothing_else_does() -> None:
    assert matches("version 3 of 5\n", "version … of 5")
    assert not matches("version 3 of 6\n", "version … of 5")
    assert not matches("version 3 of 5\nand more\n", "version 3 of 5")


def test_only_a_text_block_right_behind_its_example_is_its_output() -> None:
    page = "```python\n1\n```\n\n```text\none\n```\n\n```sh run\ntrue\n```\nprose\n```text\ntwo\n```\n"
    assert [(block.info, block.output) for block in blocks(page)] == [
        ("python", "one\n"), ("text", None), ("sh run", None), ("text", None),
    ]  # fmt: skip
