"""Which call is being carried out, so that its effect on scratch files and the fact that it is done are stored as one.

A client whose server is killed before the answer sends the call again. The second RENAME of a file that is at its new
place already would be refused with NOENT, although it was done; a replay cache in memory does not outlive the kill.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

_current: ContextVar[bytes] = ContextVar("call", default=b"")


@contextmanager
def carrying_out(call: bytes) -> Generator[None]:
    """Have what is stored meanwhile by this task note the call; an empty one is not noted."""
    token = _current.set(call)
    try:
        yield
    finally:
        _current.reset(token)


def current_call() -> bytes:
    """Return the call that this task carries out; empty if none is to be noted."""
    return _current.get()
