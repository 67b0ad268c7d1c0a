"""Reads the code blocks of a Markdown page and runs them in order, the way a reader would type them.

* `python` blocks share one namespace; `sh run` blocks run under `sh -e` in the same directory.
* A `text` block right after one of these is what it prints; `…` in it stands for anything.
* On a page that says `<!-- Served: … -->` with an address, a server of `./lakehouse` answers there while it runs; its
  real port stands in the code in place of the documented one.
* Other blocks are not run. `sh` blocks without `run` are for what sets up the machine or does not end.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_FENCE = re.compile(r"^```([^\n`]*)\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
_SERVED = re.compile(r"^<!-- Served: (http://(?:127\.0\.0\.1|localhost):\d+) -->$", re.MULTILINE)
_RUNNABLE = ("python", "sh run")


@dataclass(frozen=True)
class Block:
    """A fenced block: the text after the fence, its code, its line, and what it is documented to print."""

    info: str
    code: str
    line: int
    output: str | None

    @property
    def runs(self) -> bool:
        """Whether a reader's session runs it."""
        return self.info in _RUNNABLE


def blocks(page: str) -> list[Block]:
    """Return the fenced blocks of a page."""
    found = list(_FENCE.finditer(page))
    return [
        Block(
            match[1].strip(),
            match[2],
            page.count("\n", 0, match.start()) + 2,
            _output(page, found[index : index + 2]),
        )
        for index, match in enumerate(found)
    ]


def _output(page: str, pair: list[re.Match[str]]) -> str | None:
    """Return the text of the second block if it is the output of the first."""
    if len(pair) < 2 or pair[1][1].strip() != "text" or page[pair[0].end() : pair[1].start()].strip():
        return None
    return pair[1][2]


def run_page(path: Path, directory: Path, programs: Path) -> int:
    """Run every runnable block of a page and return their number.

    Args:
        path: The page.
        directory: Where it is run.
        programs: Where `lakehouse` is.

    Raises:
        AssertionError: A block printed something else than its page says.
    """
    page = path.read_text(encoding="utf-8")
    with _served(page, directory) as page:
        return _run_blocks(path, page, directory, programs)


@contextlib.contextmanager
def _served(page: str, directory: Path) -> Generator[str]:
    """Give out the page with the address of a server, if it wants one."""
    wanted = _SERVED.search(page)
    if wanted is None:
        yield page
        return
    # Here, not at the top: most pages need no server.
    from lakehouse_platform.services.lakehouse import Lakehouse
    from lakehouse_platform.settings import LakehouseConfig
    from lakehouse_platform_tests.support.http_server import running

    config = LakehouseConfig(base_path=str(directory / "lakehouse"), api_port=0)
    with Lakehouse.open(config) as lakehouse:
        lakehouse.init()
        with running(lakehouse, config) as live:
            yield page.replace(wanted[1], live.base_url)


def _run_blocks(path: Path, page: str, directory: Path, programs: Path) -> int:
    namespace: dict[str, Any] = {"__name__": "__main__"}
    runnable = [block for block in blocks(page) if block.runs]
    for block in runnable:
        where = f"{path.name}:{block.line}"
        if block.info == "python":
            printed = _run_python(block, where, namespace)
        else:
            printed = _run_sh(block, where, directory, programs)
        if block.output is not None:
            assert matches(printed, block.output), f"{where} printed:\n{printed}\ndocumented:\n{block.output}"
    return len(runnable)


def matches(printed: str, documented: str) -> bool:
    """Tell whether a print-out is the documented one; `…` stands for anything, blanks at ends for nothing."""
    pattern = ".*?".join(re.escape(part) for part in _trimmed(documented).split("…"))
    return re.fullmatch(pattern, _trimmed(printed), re.DOTALL) is not None


def _trimmed(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines())


def _run_python(block: Block, where: str, namespace: dict[str, Any]) -> str:
    # Empty lines in front, so that a traceback names the page's own line.
    code = compile("\n" * (block.line - 1) + block.code, where, "exec", dont_inherit=True)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(code, namespace)
    return printed.getvalue()


def _run_sh(block: Block, where: str, directory: Path, programs: Path) -> str:
    path = os.pathsep.join(map(str, (programs, Path(sys.executable).parent, os.environ["PATH"])))
    done = subprocess.run(
        ["sh", "-e", "-c", block.code],
        cwd=directory,
        env=os.environ | {"PATH": path, "NO_COLOR": "1", "COLUMNS": "110"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, f"{where} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}"
    return done.stdout
