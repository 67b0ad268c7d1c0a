"""A mount's server without sockets and threads, which can be killed at any moment and started again."""

from __future__ import annotations

import asyncio
import os
import time
import weakref
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from contextvars import Context as Surroundings
from contextvars import ContextVar, copy_context
from pathlib import Path
from typing import Any

from lakehouse_platform.nfs.composition import MountOptions, make_context
from lakehouse_platform.nfs.context import Context
from lakehouse_platform.nfs.engine import Engine, Peer
from lakehouse_platform.nfs.filetree import FileTree
from lakehouse_platform.nfs.replay import ReplayCache
from lakehouse_platform.nfs.state import StateDirectory
from lakehouse_platform.nfs.tickets import Profile, Ticket
from lakehouse_platform.nfs.tree.served import Times
from lakehouse_platform.store.table import Table
from lakehouse_platform_tests.support.nfs_client import auth_sys, call_message

_PEER = Peer("127.0.0.1:900", trusted=True)
_is_servers: ContextVar[bool] = ContextVar("_is_servers", default=False)


class SimulatedServer:
    """Serves one table from a state directory.

    Args:
        table: The table.
        state: The state directory.
    """

    def __init__(self, table: Table, state: Path) -> None:
        self._table = table
        self._state = state
        self._tasks: weakref.WeakSet[asyncio.Task[Any]] = weakref.WeakSet()
        self._surroundings: Surroundings = copy_context()
        self._surroundings.run(_is_servers.set, True)
        self._stack = AsyncExitStack()
        self._engine: Engine
        self._is_up = asyncio.Event()
        self._is_dead = asyncio.Event()
        self.context: Context
        self.export = ""
        self.kills = 0

    async def start(self) -> None:
        """Start, going on with what is in the state directory."""
        loop = asyncio.get_running_loop()
        # The factory also has to take generators, which nobody makes tasks of any more.
        loop.set_task_factory(self._new_task)  # pyright: ignore[reportArgumentType]
        await loop.create_task(self._start(), context=self._surroundings)
        self._is_dead = asyncio.Event()
        self._is_up.set()

    async def _start(self) -> None:
        loop = asyncio.get_running_loop()
        state = self._stack.enter_context(StateDirectory(self._state))
        ticket = Ticket(state.path)
        times = Times(loop.time, time.time_ns)
        self.context = make_context(self._stack, self._table, state, MountOptions(cache_bytes=1 << 24), times)
        await self.context.editor.recover()
        self._engine = Engine(FileTree(self.context, ticket), ReplayCache(), now=loop.time)
        self.export = ticket.path(self._table.name.encode(), Profile.SYNC).decode()

    async def kill(self) -> None:
        """End at once, as by SIGKILL: what was not on the disk is lost, what runs is not finished."""
        self._is_up.clear()
        self._is_dead.set()
        self.kills += 1
        await self._end_tasks()
        self.context.editor.close()
        await self._stack.aclose()

    async def stop(self) -> None:
        """End properly."""
        self._is_up.clear()
        self._is_dead.set()
        await self.context.editor.drain()
        await self._end_tasks()
        await self._stack.aclose()

    def _new_task(
        self, loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Any], **options: Any
    ) -> asyncio.Task[Any]:
        """Make a task, and remember it if a task or timer of the server asks for it."""
        task: asyncio.Task[Any] = asyncio.Task(work, loop=loop, **options)
        surroundings: Surroundings = options.get("context") or copy_context()
        if surroundings.get(_is_servers):
            self._tasks.add(task)
        return task

    async def _end_tasks(self) -> None:
        mine = [task for task in self._tasks if not task.done()]
        for task in mine:
            task.cancel()
        await asyncio.gather(*mine, return_exceptions=True)

    async def ask(
        self,
        machine: bytes,
        xid: int,
        program: int,
        procedure: int,
        arguments: bytes,
        *,
        is_awaited: Callable[[], bool] = lambda: True,
    ) -> bytes:
        """Send one call, again after each kill, until it is answered; return the reply's record.

        Over a new connection a client repeats only what it still awaits; for what it does not, the answer is empty.
        """
        credential = auth_sys(machine, os.getuid())
        record = call_message(xid, program, procedure, arguments, credential)
        while True:
            await self._is_up.wait()
            answer = self._surroundings.run(self._engine.handle, record, _PEER)
            assert answer is not None
            if not isinstance(answer, asyncio.Future):
                return b"".join(answer)
            dead = asyncio.ensure_future(self._is_dead.wait())
            await asyncio.wait({answer, dead}, return_when=asyncio.FIRST_COMPLETED)
            dead.cancel()
            if answer.done() and not answer.cancelled():
                return b"".join(answer.result())
            if not is_awaited():
                return b""
