"""What an editor does by itself: applies what threads return, wakes clients up, does what sessions decide."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from lakehouse_platform.errors import InfrastructureError, LakehouseError
from lakehouse_platform.nfs.edits.client import REFUSING_S, Client, Refusing
from lakehouse_platform.nfs.edits.edit import Edit
from lakehouse_platform.nfs.edits.gaps import Gap, Gaps
from lakehouse_platform.nfs.edits.permits import OWNERS, Permits
from lakehouse_platform.nfs.edits.rejected import Rejected
from lakehouse_platform.nfs.edits.session import Act, Session
from lakehouse_platform.nfs.edits.spool import Spool
from lakehouse_platform.nfs.edits.steps import Failed, Steps, Taken, Untold, refusal_of
from lakehouse_platform.nfs.edits.told import ToldStore
from lakehouse_platform.nfs.edits.view import View
from lakehouse_platform.nfs.operations import NfsError, Status
from lakehouse_platform.nfs.tree.image import Image

_LOG = logging.getLogger(__name__)
_T = TypeVar("_T")
_IDLE_S = 3600.0
_SHOW_AGAIN_S = 1.0
_WRITE_DOWN_AGAIN_S = 1.0
# A reply that is made has been sent by then.
_TOLD_S = 1.0


@dataclass(frozen=True, slots=True)
class Clocks:
    """The clocks: seconds for what lasts, nanoseconds since 1970 for what is shown."""

    now: Callable[[], float] = time.monotonic
    now_ns: Callable[[], int] = time.time_ns


class Driver:
    """The clients, their timers, and what is done for them. Used on the event loop's thread."""

    def __init__(
        self,
        state: Path,
        find_view: Callable[[bytes], Awaitable[View | None]],
        *,
        rejected: Rejected | None = None,
        quota_bytes: int = 16 << 30,
        clocks: Clocks | None = None,
        wakes_itself: bool = True,
        permits: Permits = OWNERS,
        committed: Callable[[bytes], None] | None = None,
    ) -> None:
        """Prepare; `recover` goes on from what an earlier server left.

        Args:
            state: The server's directory of state.
            find_view: Returns a table's view by its key.
            rejected: Keeps refused edits.
            quota_bytes: How many bytes all drafts may have together.
            clocks: The clocks.
            wakes_itself: Whether timers run by themselves; otherwise `run_due` is to be called.
            permits: As whom edits become commits, and whether they may.
            committed: Takes the key of a view that was just changed: others are to see it at once.
        """
        self.rejected = rejected or Rejected(state / "rejected")
        self.spool = Spool(state / "spool", quota_bytes)
        self._told = ToldStore(state)
        self._find_view = find_view
        self._clocks = clocks or Clocks()
        self._wakes_itself = wakes_itself
        self._clients: dict[tuple[bytes, bytes], Client] = {}
        self._orders: dict[bytes, asyncio.Lock] = {}
        self._gaps = Gaps()
        self._removals: set[bytes] = set()
        self._permits = permits
        self._committed = committed or _told_to_nobody
        self._steps = Steps(self.spool, self.rejected, self._clocks.now_ns, permits)
        self._untold: list[Untold] = []
        self._writing_down = asyncio.Lock()
        self._tasks: set[asyncio.Future[None]] = set()
        self._rest: asyncio.Future[None] | None = None
        self._is_closing = False

    # ── Inside ────────────────────────────────────────────────────────────────────────────────────

    def _client(self, mount: bytes, view: View) -> Client:
        client = self._clients.get((mount, view.key))
        if client is None:
            version = self._told.get(mount, view.key)
            mine = self._permits.view(mount, view)
            client = Client(mount, mine, told_version=version, used=self._clocks.now())
            self._clients[mount, view.key] = client
            self._sweep()
        client.used = self._clocks.now()
        return client

    def _order(self, view: View) -> asyncio.Lock:
        return self._orders.setdefault(view.key, asyncio.Lock())

    async def _thread(self, step: Callable[..., _T], *arguments: object) -> _T:
        return await asyncio.to_thread(step, *arguments)

    async def _took(self, client: Client, taken: Taken | None, *, unstable: bool) -> None:
        """Apply what a thread has made of a change."""
        now = self._clocks.now()
        client.state = client.state.on_back(now)
        if taken is None:
            return
        if taken.edit is not client.edit:
            await self._let_go(client)
            client.edit, client.superseded_at = taken.edit, None
            self._start(self._thread(self.spool.prepare))
        if taken.published:
            self._committed(client.view.key)
            client.state, client.before = Session(), []
        if taken.error is not None:
            await self._reject(client, taken.error, late=now + REFUSING_S, unstable=unstable)
            raise taken.error
        taken.edit.is_uncommitted = taken.edit.is_uncommitted or unstable
        client.superseded_at = None
        if taken.shape is not None:
            client.changed_ns = max(client.changed_ns + 1, self._clocks.now_ns())
            client.state = client.state.on_change(taken.shape, now, unstable=unstable)
            client.written.set()
        self._wake_later(client)

    async def _refuse_late(self, client: Client, offset: int, data: memoryview) -> None:
        """Refuse a WRITE that belongs to a refused edit, or that has to tell an error of before."""
        now = self._clocks.now()
        refusing = client.refusing
        if refusing is not None and now < refusing.until:
            refusing.until = now + REFUSING_S
            if refusing.name:
                await self._thread(self.rejected.add, client.shelf, refusing.name, data)
            raise refusing.error
        client.refusing = None
        if client.sticky is None:
            return
        error, client.sticky = client.sticky, None
        name = await self._thread(
            self.rejected.keep, client.shelf, [data], refusal_of(error), self._clocks.now_ns()
        )
        client.refusing = Refusing(NfsError(Status.IO, str(error)), name, now + REFUSING_S, False)
        if client.edit is not None and client.state.shape is not None and client.state.shape.size == 0:
            # What it was emptied for is refused, so it is not to stay empty.
            self._start(self._drop_when_told(client.edit))
            client.edit, client.superseded_at = None, None
            client.state = Session(changes=client.state.changes)
        raise NfsError(Status.IO, str(error)) from error

    async def _drop_when_told(self, edit: Edit) -> None:
        """Drop an edit once its client knows of the error; who asks again after a restart is to find it as it was."""
        if not self._is_closing:
            await asyncio.sleep(_TOLD_S)
        await self._thread(edit.drop)

    async def _do(self, client: Client, act: Act) -> None:
        """Do what the session says; the client's lock is held."""
        if act in {Act.PUBLISH_ALL, Act.PUBLISH_WHOLE_ROWS}:
            await self._publish(client, whole_rows=act is Act.PUBLISH_WHOLE_ROWS)
        elif act is Act.REJECT:
            error = client.why_unpublished
            await self._reject(client, error)
            client.sticky = error
        elif act is Act.SHOW_TABLE:
            text = "data.csv was emptied and nothing was written into it, so the table was left as it is."
            await self._thread(self.rejected.say, client.shelf, text, self._clocks.now_ns())
            await self._let_go(client)
            client.state = Session(changes=client.state.changes)
        self._wake_later(client)

    async def _publish(self, client: Client, *, whole_rows: bool) -> None:
        async with self._order(client.view):
            outcome = await self._thread(self._steps.publish, client, whole_rows)
        if isinstance(outcome, Failed):
            await self._failed(client, outcome)
            return
        self._committed(client.view.key)
        client.before, client.read = [], None
        client.state = client.state.on_published(outcome.rest)
        if outcome.image is not None:
            self._saw(client, outcome.image)
            await self._let_go(client)
        if not outcome.is_shown:
            self._start(self._show(client.view))
        await self._owe(client, outcome.untold)

    def _saw(self, client: Client, image: Image) -> None:
        """Note an image as what a client has before its eyes."""
        client.note_told(image, self._clocks.now())
        client.before, client.read = [], (image, self._clocks.now())
        for put in (self._told.put, self._told.put_read):
            put(client.mount, client.view.key, image.version, self._clocks.now_ns())

    async def _show(self, view: View) -> None:
        """Bring a table's images up to what was published; until then its client sees what it wrote."""
        while not self._is_closing:
            try:
                await self._thread(view.images.refresh)
            except InfrastructureError as error:
                _LOG.warning("what was published in %s cannot be shown yet: %s", view.table.name, error)
                await asyncio.sleep(_SHOW_AGAIN_S)
            except LakehouseError as error:
                _LOG.warning("what was published in %s cannot be shown: %s", view.table.name, error)
                return
            else:
                return

    async def _owe(self, client: Client, untold: Untold | None) -> None:
        """Tell that a commit is not in the audit log, and see to it that it comes there."""
        if untold is None:
            return
        version = untold.commit.version
        self._untold.append(untold)
        if self._wakes_itself and len(self._untold) == 1:
            self._start(self._write_down_later())
        # Not what the error says: to repeat what was done.
        text = (
            f"What was done to data.csv is in the table, as version {version}: do not repeat it. "
            "The audit log could not be written at that moment; its entry is made as soon as it can be."
        )
        try:
            await self._thread(self.rejected.say, client.shelf, text, self._clocks.now_ns())
        except OSError as full:
            _LOG.error(
                "version %d of %s is not in the audit log yet, which cannot be told: %s",
                version,
                client.view.table.name,
                full,
            )

    async def _write_down_later(self) -> None:
        while self._untold and not self._is_closing:
            await asyncio.sleep(_WRITE_DOWN_AGAIN_S)
            await self._write_down()

    async def _write_down(self) -> None:
        """Bring into the audit log what it does not have, in the order in which it was done."""
        async with self._writing_down:
            while self._untold:
                untold = await self._thread(self._steps.write_down, self._untold[0].commit)
                if untold is not None:
                    _LOG.error("%d commits are not in the audit log: %s", len(self._untold), untold.error)
                    return
                del self._untold[0]

    async def _failed(self, client: Client, failed: Failed) -> None:
        if failed.may_pass:
            client.state, client.failure = client.state.on_failed(self._clocks.now()), failed.error
            text = f"data.csv is kept and not written yet: {failed.error}"
            await self._thread(self.rejected.say, client.shelf, text, self._clocks.now_ns())
            return
        await self._reject(client, failed.error)
        client.sticky = failed.error

    async def _reject(
        self,
        client: Client,
        error: LakehouseError | NfsError,
        *,
        late: float = 0.0,
        unstable: bool = False,
    ) -> None:
        """Keep a draft's bytes aside and show the table again."""
        if client.edit is None:
            return
        name = await self._thread(self._steps.reject, client, client.edit, error)
        if not await self._thread(self._steps.revert, client.edit):
            await self._let_go(client)
        client.state = Session(changes=client.state.changes)
        client.written.set()
        if late:
            client.refusing = Refusing(error, name, late, unstable)

    async def _settle(self, client: Client) -> None:
        """Publish a draft that something else takes the place of, or keep it aside if that cannot be."""
        await self._do(client, client.state.on_settle())
        if client.is_open:
            await self._reject(client, client.why_unpublished)

    async def _let_go(self, client: Client) -> None:
        edit, client.edit, client.superseded_at = client.edit, None, None
        if edit is not None:
            await self._thread(edit.drop)

    async def _drain_one(self, client: Client) -> None:
        if client.timer is not None:
            client.timer.cancel()
        act = client.state.on_drain()
        if act is not Act.NOTHING:
            await self._do(client, act)
        if client.edit is not None:
            await self._thread(client.edit.log.sync)

    # ── Gaps ──────────────────────────────────────────────────────────────────────────────────────

    def _open_gap(self, gap: Gap, client: Client) -> None:
        self._gaps.open(gap)
        if gap.edit is client.edit:
            client.edit, client.superseded_at = None, None
        if self._wakes_itself:
            wait = max(0.0, gap.hole.due - self._clocks.now())
            gap.timer = asyncio.get_running_loop().call_later(wait, lambda: self._start(self._tick_gap(gap)))

    async def _end_gap(self, key: bytes) -> None:
        gap = self._gaps.close(key)
        if gap is not None and gap.edit is not None:
            await self._thread(gap.edit.drop)

    async def _tick_gap(self, gap: Gap) -> None:
        client = self._client(gap.hole.mount, gap.view)
        async with client.lock, self._order(gap.view):
            if self._gaps.get(gap.view.key) is not gap or self._clocks.now() < gap.hole.due:
                return
            if gap.hole.is_removed:
                untold = await self._thread(self._steps.delete_rows, gap)
                self._committed(gap.view.key)
                await self._owe(client, untold)
            await self._end_gap(gap.view.key)

    # ── Timers ────────────────────────────────────────────────────────────────────────────────────

    def _wake_later(self, client: Client) -> None:
        if client.timer is not None:
            client.timer.cancel()
            client.timer = None
        due = client.due
        if due is None or not self._wakes_itself or self._is_closing:
            return
        wait = max(0.0, due - self._clocks.now())
        client.timer = asyncio.get_running_loop().call_later(wait, lambda: self._start(self._tick(client)))

    async def _tick(self, client: Client) -> None:
        async with client.lock:
            due = client.due
            if not client.is_open and due is not None and self._clocks.now() >= due:
                await self._let_go(client)
            await self._do(client, client.state.on_time(self._clocks.now()))

    def _start(self, work: Awaitable[None]) -> asyncio.Future[None]:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Future[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            _LOG.error("An edit could not be finished; its bytes are in the spool.", exc_info=error)

    def _sweep(self) -> None:
        """Forget clients that did nothing for an hour."""
        if len(self._clients) % 64:
            return
        oldest = self._clocks.now() - _IDLE_S
        for key, client in list(self._clients.items()):
            if client.used < oldest and not client.is_open and not client.lock.locked():
                self._drop_client(key, client)

    def _drop_client(self, key: tuple[bytes, bytes], client: Client) -> None:
        del self._clients[key]
        if client.edit is not None:
            self._start(self._thread(client.edit.drop))


def _told_to_nobody(view_key: bytes) -> None:
    del view_key
