"""Carries out what must not happen twice, even if the server was killed before the client had its answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from lakehouse_platform.nfs.edits.editor import Editor
from lakehouse_platform.nfs.tree.calls import carrying_out
from lakehouse_platform.nfs.tree.scratch import Scratch

_T = TypeVar("_T")


async def once(
    scratch: Scratch,
    editor: Editor,
    call: bytes,
    act: Callable[[], Awaitable[_T]],
    again: Callable[[], Awaitable[_T]],
) -> _T:
    """Carry a call out, or answer for one that an earlier server has carried out.

    Args:
        scratch: Remembers calls over a restart.
        editor: Likewise, those that removed a view.
        call: What makes the call known; empty if it is not to be remembered.
        act: Carries it out.
        again: Answers if that was done.
    """
    if scratch.has_done(call) or editor.has_removed(call):
        return await again()
    with carrying_out(call):
        result = await act()
        scratch.note_done(call)
    return result
