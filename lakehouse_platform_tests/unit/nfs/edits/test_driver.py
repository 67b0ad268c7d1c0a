"""What an editor does by itself after a commit."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager

from lakehouse_platform_tests.support.editing import PEOPLE_FILE, Running

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
