"""What an editor does by itself after a commit."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from lakehouse_platform.nfs.edits.permits import OwnersPermits, Tell, untold
from lakehouse_platform.nfs.edits.view import View
from lakehouse_platform.store import commit
from lakehouse_platform_tests.support.byte_image import ByteContent
from lakehouse_platform_tests.support.editing import PEOPLE_FILE, Bench, Running

Story = Callable[[Running], Coroutine[None, None, None]]
_ROW = b"4,n4,34\n"


def test_a_row_is_shown_to_others_though_the_storage_failed_right_after_its_commit(
    tell: Callable[[Story], None],
) -> None:
    async def story(run: Running) -> None:
        client = run.mount()
        await client.read()
        await client.append(_ROW)
        log = run.view.table.location.path / "_delta_log"
        aside = log.with_name("_log")

        with _warning("cannot be shown yet") as warned:
            await run.editor.close_signal(client.id, client.view)
            log.rename(aside)
            log.write_bytes(b"")
            await warned.wait()
        mine = run.editor.seen(client.id, client.view)
        assert mine is not None
        assert mine.size == len(PEOPLE_FILE + _ROW), "its client goes on seeing what it wrote"

        log.unlink()
        aside.rename(log)
        await asyncio.gather(*run.editor._tasks)
        image = run.view.images.current()
        assert image is not None
        assert image.size == len(PEOPLE_FILE + _ROW)

    tell(story)


class AwayAfter(OwnersPermits):
    """The table cannot be read any more right after a commit, until it is brought back."""

    def publish(self, mount: bytes, view: View, act: Callable[[Tell], int]) -> int:
        del mount
        version = act(untold)
        log = view.table.location.path / "_delta_log"
        log.rename(log.with_name("_log"))
        log.write_bytes(b"")
        return version

    @staticmethod
    def bring_back(run: Running) -> None:
        log = run.view.table.location.path / "_delta_log"
        log.unlink()
        log.with_name("_log").rename(log)


def test_a_rename_that_landed_is_not_undone_by_the_removal_before_it_though_the_storage_failed_after_it(
    bench: Bench, tell: Callable[[Story], None]
) -> None:
    bench.permits = AwayAfter()

    async def story(run: Running) -> None:
        before, client = run.version, run.mount()
        await client.read()
        await run.editor.remove(client.id, client.view)
        await run.editor.replace(client.id, client.view, ByteContent(PEOPLE_FILE + _ROW))
        AwayAfter.bring_back(run)
        await run.wait(5.0)
        assert run.version == before + 1
        assert run.shown() == PEOPLE_FILE + _ROW
        assert run.rejected() == []

    tell(story)


def test_rows_that_were_deleted_are_not_said_to_remain_though_the_storage_failed_after_it(
    bench: Bench, tell: Callable[[Story], None]
) -> None:
    bench.permits = AwayAfter()

    async def story(run: Running) -> None:
        client = run.mount()
        await client.read()
        await run.editor.remove(client.id, client.view)
        await run.wait(2.0)
        AwayAfter.bring_back(run)
        assert run.rows() == []
        assert run.last_error() == "No edit was refused.\n"

    tell(story)


class DiskFailsOnce(OwnersPermits):
    """The disk does not confirm the first commit, which has landed."""

    has_failed = False

    def publish(self, mount: bytes, view: View, act: Callable[[Tell], int]) -> int:
        del mount
        if self.has_failed:
            return act(untold)
        self.has_failed = True
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(commit, "_fsync", _fail)
            return act(untold)


def _fail(_: Path) -> None:
    raise OSError(errno.EIO, os.strerror(errno.EIO))


@pytest.fixture
def unsure(bench: Bench) -> Bench:
    """A server that does not know at first whether a commit has landed."""
    durable = bench.table.config.model_copy(update={"durability": "fsync"})
    bench.table, bench.permits = replace(bench.table, config=durable), DiskFailsOnce()
    return bench


@pytest.mark.usefixtures("unsure")
@pytest.mark.parametrize("seconds", [0.0, 5.0])
def test_a_row_goes_on_though_the_outcome_of_those_before_it_was_not_known(
    tell: Callable[[Story], None], seconds: float
) -> None:
    async def story(run: Running) -> None:
        before, client = run.version, run.mount()
        await client.read()
        await client.append(_ROW + b"5,n5", pages=False)
        await run.wait(0.5)
        assert run.version == before + 1
        assert run.shown() == PEOPLE_FILE + _ROW
        await run.wait(seconds)
        await client.append(b",35\n", pages=False)
        await client.getattr()
        assert run.version == before + 2
        assert run.shown() == PEOPLE_FILE + _ROW + b"5,n5,35\n"
        assert run.rejected() == []

    tell(story)


@pytest.mark.usefixtures("unsure")
def test_half_a_row_is_kept_aside_though_the_outcome_of_those_before_it_was_not_known(
    tell: Callable[[Story], None],
) -> None:
    async def story(run: Running) -> None:
        client = run.mount()
        await client.read()
        await client.append(_ROW + b"5,n5", pages=False)
        for _ in range(4):
            await run.wait(5.0)
        assert run.shown() == PEOPLE_FILE + _ROW
        assert run.rejected() == [b"5,n5"]

    tell(story)


@contextmanager
def _warning(text: str) -> Generator[asyncio.Event]:
    """Set an event when a warning holds a text."""
    warned, logger = asyncio.Event(), logging.getLogger("lakehouse_platform.nfs.edits.driver")

    class Watch(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if text in record.getMessage():
                warned.set()

    watch = Watch(logging.WARNING)
    logger.addHandler(watch)
    try:
        yield warned
    finally:
        logger.removeHandler(watch)
