"""Record batches read in a thread of their own, a few ahead of whoever consumes them."""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterator
from contextlib import suppress
from queue import Empty, Full, Queue

import pyarrow as pa

# Enough to bridge one slow answer of an object store; each batch is a few MB.
_AHEAD = 4
_POLL_SECONDS = 0.2

_Item = pa.RecordBatch | BaseException | None


def read_ahead(batches: Iterator[pa.RecordBatch]) -> Generator[pa.RecordBatch]:
    """Yield the batches; their producer runs in another thread, and its error is raised here.

    The engine pulls rows from one of its own threads, in which its object-store client refuses to work ("Cannot start a
    runtime from within a runtime", deltalake 1.6.6): a source in an object store has to be read elsewhere.
    """
    queue: Queue[_Item] = Queue(_AHEAD)
    stopped = threading.Event()
    thread = threading.Thread(target=_fill, args=(batches, queue, stopped), name="read-ahead", daemon=True)
    thread.start()
    try:
        while (item := _next(queue, thread)) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        stopped.set()
        thread.join()


def _fill(batches: Iterator[pa.RecordBatch], queue: Queue[_Item], stopped: threading.Event) -> None:
    try:
        for batch in batches:
            if not _put(queue, batch, stopped):
                return
        _put(queue, None, stopped)
    except BaseException as error:  # noqa: BLE001 - raised again in the consumer's thread, panics too
        _put(queue, error, stopped)


def _put(queue: Queue[_Item], item: _Item, stopped: threading.Event) -> bool:
    while not stopped.is_set():
        with suppress(Full):  # looks again whether anybody still wants it
            queue.put(item, timeout=_POLL_SECONDS)
            return True
    return False


def _next(queue: Queue[_Item], thread: threading.Thread) -> _Item:
    while True:
        try:
            return queue.get(timeout=_POLL_SECONDS)
        except Empty:
            if not thread.is_alive() and queue.empty():
                return None
