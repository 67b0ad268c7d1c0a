"""Progress on standard error, on a terminal only: pipes, logs and --json stay clean."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager

from lakehouse_platform.cli.session import Session

_BYTES_PER_MB = 1_000_000


@contextmanager
def row_progress(session: Session, title: str, total: int | None) -> Generator[Callable[[int], None] | None]:
    """Show how many rows are done; the value takes the rows so far, and is None where nothing is shown."""
    with _bar(session, title, "rows") as bar:
        yield bar and (lambda done: bar(done, total))


@contextmanager
def byte_progress(session: Session, title: str) -> Generator[Callable[[int, int], None] | None]:
    """Show how much is read; the value takes the bytes so far and in total, and is None where nothing is shown."""
    with _bar(session, title, "MB") as bar:
        yield bar and (lambda done, total: bar(done / _BYTES_PER_MB, total / _BYTES_PER_MB))


@contextmanager
def _bar(session: Session, title: str, unit: str) -> Generator[Callable[[float, float | None], None] | None]:
    if session.as_json or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn(f"{{task.completed:,.0f}} {unit}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(title, total=None)
        yield lambda done, total: shown.update(task, completed=done, total=total)


@contextmanager
def working(session: Session, title: str) -> Generator[None]:
    """Show that something goes on that reports no progress of its own."""
    if session.as_json or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(title):
        yield
