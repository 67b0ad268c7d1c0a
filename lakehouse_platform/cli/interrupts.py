"""Ctrl-C that works at once, although KeyboardInterrupt has to wait for the engine to return to Python."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager

from lakehouse_platform.cli.exits import ExitStatus

# Python code ends in this time by itself, cleaning up behind it; only a call into the engine does not.
_GRACE_SECONDS = 1.0


@contextmanager
def prompt_interrupts() -> Generator[None]:
    """End the process on Ctrl-C even inside the engine; a commit is there wholly or not at all."""
    watched, wakeup = socket.socketpair()
    wakeup.setblocking(False)
    before = signal.set_wakeup_fd(wakeup.fileno(), warn_on_full_buffer=False)
    finished = threading.Event()
    threading.Thread(target=_watch, args=(watched, finished), name="interrupts", daemon=True).start()
    try:
        yield
    finally:
        finished.set()
        signal.set_wakeup_fd(before)
        wakeup.close()


@contextmanager
def patient_interrupts() -> Generator[None]:
    """Leave Ctrl-C to the signal handlers of what runs in the block, however long its orderly end takes."""
    before = signal.set_wakeup_fd(-1)
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)


def _watch(watched: socket.socket, finished: threading.Event) -> None:
    """Wait for the byte that the C signal handler writes, then for the program to end."""
    while number := watched.recv(1):
        if number[0] == signal.SIGINT and not finished.wait(_GRACE_SECONDS):
            sys.stderr.write("Interrupted.\n")
            sys.stderr.flush()
            os._exit(ExitStatus.INTERRUPTED)
