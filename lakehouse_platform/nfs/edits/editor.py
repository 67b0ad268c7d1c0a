"""The edits of all clients: what the file tree asks for and tells."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from lakehouse_platform.nfs.content import Content
from lakehouse_platform.nfs.edits.client import Client, Refusing
from lakehouse_platform.nfs.edits.driver import Clocks, Driver
from lakehouse_platform.nfs.edits.recovery import Found, Recovery
from lakehouse_platform.nfs.edits.session import HOLD_S, RECOVERED_QUIET_S, Act
from lakehouse_platform.nfs.edits.view import View
from lakehouse_platform.nfs.operations import NfsError, Stable, Status, Written
from lakehouse_platform.nfs.tree.image import Form, Image

__all__ = ["Clocks", "Editor", "Sight"]

_STORAGE_AWAY_S = 10.0


@dataclass(frozen=True, slots=True)
class Sight:
    """What a client sees in place of the table's newest image.

    Attributes:
        content: The bytes.
        changed_ns: ctime and mtime.
    """

    content: Content
    changed_ns: int

    @property
    def size(self) -> int:
        """How many bytes there are."""
        return self.content.size


class Editor(Driver):
    """The edits of one server. All methods are called on the event loop's thread.

    Errors are raised as `NfsError` or as `LakehouseError`, which the engine makes a status of.
    """

    # ── What clients see ──────────────────────────────────────────────────────────────────────────

    def seen(self, mount: bytes, view: View) -> Sight | Image | None:
        """Return what a client sees: its draft, what it wrote last, or the newest image; None if none is known."""
        current = view.images.current(Form.CSV)
        client = self._clients.get((mount, view.key))
        if client is None or client.edit is None:
            return current
        if client.is_open:
            return Sight(client.edit.content, client.changed_ns)
        ghost = client.ghost
        if ghost and ghost.version is not None and (current is None or current.version < ghost.version):
            return Sight(ghost.base, client.changed_ns)
        return current

    def tell(self, mount: bytes, view: View, image: Image) -> None:
        """Note that a client is being given the attributes of an image of this view."""
        client = self._client(mount, view)
        if client.is_open:
            return
        if client.note_told(image, self._clocks.now()):
            self._told.put(mount, view.key, image.version, self._clocks.now_ns())
        if client.superseded_at is not None and client.timer is None:
            self._wake_later(client)

    def note_read(self, mount: bytes, view: View, image: Image) -> None:
        """Note that a client was given bytes of an image of this view."""
        if self._client(mount, view).note_read(image, self._clocks.now()):
            self._told.put_read(mount, view.key, image.version, self._clocks.now_ns())

    def is_dirty(self, mount: bytes, view_key: bytes) -> bool:
        """Tell whether a client has a draft, so that its GETATTR is a `close_signal`."""
        client = self._clients.get((mount, view_key))
        return client is not None and (client.is_open or client.lock.locked() or client.refusing is not None)

    def is_hole(self, mount: bytes, view_key: bytes) -> bool:
        """Tell whether the view was removed or moved away, and nothing has taken its place yet: nobody sees it."""
        del mount
        return self._gaps.get(view_key) is not None

    def has_moved(self, mount: bytes, view_key: bytes) -> bool:
        """Tell whether this client has moved the view away, and nothing has taken its place yet."""
        gap = self._gaps.get(view_key)
        return gap is not None and gap.hole.mount == mount and not gap.hole.is_removed

    # ── Changes ───────────────────────────────────────────────────────────────────────────────────

    async def write(self, mount: bytes, view: View, offset: int, data: memoryview, stable: Stable) -> Written:
        """Take a WRITE; durable when it returns, unless it was UNSTABLE.

        Raises:
            LakehouseError: A row is wrong, or an edit of before failed.
            NfsError: FBIG, NOSPC, IO.
        """
        client = self._client(mount, view)
        async with client.lock:
            await self._refuse_late(client, offset, data)
            unstable = stable is Stable.UNSTABLE
            taken = await self._thread(
                self._steps.write, client, offset, data, self._clocks.now(), not unstable
            )
            await self._took(client, taken, unstable=unstable)
        return Written(len(data), Stable.UNSTABLE if stable is Stable.UNSTABLE else Stable.FILE_SYNC, None)

    async def truncate(self, mount: bytes, view: View, size: int) -> None:
        """Cut the file, or empty it, which begins to overwrite it.

        Raises:
            NfsError: INVAL if it would grow or a row would be cut; NOSPC.
            LakehouseError: The rest is not fit for the table.
        """
        client = self._client(mount, view)
        async with client.lock:
            client.refusing = None
            if size == 0 and (client.state.is_append or client.state.is_finished):
                await self._settle(client)
            taken = await self._thread(self._steps.truncate, client, size, self._clocks.now())
            await self._took(client, taken, unstable=False)
            edit = client.edit if client.is_open else None
        if edit is not None and size:
            await self._thread(edit.log.sync)

    async def create(self, mount: bytes, view: View) -> None:
        """Make an empty file where the view was removed or moved away: an overwrite begins. Empties it otherwise."""
        client = self._client(mount, view)
        async with client.lock, self._order(view):
            gap = self._gaps.close(view.key)
            if gap is not None:
                taken = await self._thread(self._steps.fill, client, gap, self._clocks.now())
                await self._took(client, taken, unstable=False)
        if gap is None:
            await self.truncate(mount, view, 0)

    async def commit(self, mount: bytes, view: View) -> None:
        """Make unstable WRITEs durable.

        Raises:
            NfsError: IO: some were refused.
        """
        client = self._client(mount, view)
        async with client.lock:
            error = client.refusing.error if client.refusing else client.sticky
            client.refusing = client.sticky = None
            if error is not None:
                raise NfsError(Status.IO, str(error)) from error
            edit = client.edit
            if edit is None:
                return
            await self._thread(edit.commit)
            edit.is_uncommitted = False
            client.state = client.state.on_commit(self._clocks.now())
            self._wake_later(client)

    async def close_signal(self, mount: bytes, view: View) -> None:
        """Publish a client's draft if its asking for attributes looks like a close; returns when that is done."""
        client = self._client(mount, view)
        async with client.lock:
            if client.refusing and not client.refusing.awaits_commit:
                client.refusing = None
            client.state = client.state.on_asked(self._clocks.now())
            act = client.state.on_close(self._clocks.now())
            if act is not Act.HOLD:
                await self._do(client, act)
                return
            changes = client.state.changes
            client.written.clear()
        try:
            await asyncio.wait_for(client.written.wait(), HOLD_S)
        except TimeoutError:
            async with client.lock:
                await self._do(client, client.state.on_hold_over(changes))

    async def replace(self, mount: bytes, view: View, content: Content) -> None:
        """Publish a file that is renamed over the view.

        Raises:
            LakehouseError, NfsError: It cannot be; its bytes are in `.rejected`, and the table is as it was.
            AuditError, InfrastructureError: It is in the table, but not in the audit log; see `.last_error`.
        """
        client = self._client(mount, view)
        async with client.lock:
            client.refusing = None
            await self._settle(client)
            async with self._order(view):
                gap = self._gaps.get(view.key)
                done = await self._thread(self._steps.replace, client, gap, content, self._clocks.now())
                self._committed(view.key)
                await self._end_gap(view.key)
            await self._let_go(client)
            if done.image is not None:
                self._saw(client, done.image)
            else:
                self._start(self._show(view))
            await self._owe(client, done.untold)
            if done.untold is not None:
                # As through every other door: nothing succeeds that is not written down.
                raise done.untold.error

    def has_removed(self, call: bytes) -> bool:
        """Tell whether an earlier server removed a view for this call, so that it is not to be done again."""
        return bool(call) and call in self._removals

    # ── Names ─────────────────────────────────────────────────────────────────────────────────────

    async def remove(self, mount: bytes, view: View) -> None:
        """Remove the view: unless a file takes its place within a second, all rows are deleted, in one commit.

        Raises:
            NfsError: NOENT: it is removed already; NOSPC.
        """
        client = self._client(mount, view)
        async with client.lock:
            await self._settle(client)
            async with self._order(view):
                self._check_there(view)
                gap = await self._thread(self._steps.remove, client, self._clocks.now())
                self._open_gap(gap, client)
                self._saw(client, gap.image)

    async def rename_away(self, mount: bytes, view: View) -> Image:
        """Move the view to another name and return the image that this name shows; rows stay.

        Raises:
            NfsError: NOENT: it is removed or moved already.
        """
        client = self._client(mount, view)
        async with client.lock:
            await self._settle(client)
            async with self._order(view):
                self._check_there(view)
                gap = await self._thread(self._steps.move, client, self._clocks.now())
                self._open_gap(gap, client)
                self._saw(client, gap.image)
            return gap.image

    def _check_there(self, view: View) -> None:
        if self._gaps.get(view.key) is not None:
            raise NfsError(Status.NOENT)

    async def rename_back(self, mount: bytes, view: View) -> None:
        """Move the view back to its name: nothing has changed."""
        del mount
        async with self._order(view):
            await self._end_gap(view.key)

    # ── Life ──────────────────────────────────────────────────────────────────────────────────────

    async def recover(self) -> None:
        """Go on with what an earlier server left: publish appends, keep other drafts for their clients."""
        self._told.forget_old(self._clocks.now_ns())
        recovery = Recovery(self.spool, self._find_view, self.rejected, self._clocks.now_ns)
        self._removals = recovery.removals
        for found in await recovery.begin():
            await self._go_on(found)
        self._go_on_refusing(recovery)
        if recovery.waiting:
            self._rest = self._start(self._recover_rest(recovery))
        await self._thread(self.spool.prepare)

    async def _recover_rest(self, recovery: Recovery) -> None:
        while recovery.waiting and not self._is_closing:
            await asyncio.sleep(_STORAGE_AWAY_S)
            for found in await recovery.go_on():
                await self._go_on(found)
            self._go_on_refusing(recovery)

    def _go_on_refusing(self, recovery: Recovery) -> None:
        """Refuse also what is still to come of edits that were refused: alone it would mean something else."""
        until = self._clocks.now() + RECOVERED_QUIET_S
        for refused in recovery.refused:
            client = self._client(refused.mount, refused.view)
            if client.edit is None:
                error = NfsError(Status.IO, f"After a restart of the server: {refused.why}")
                client.refusing = Refusing(error, refused.name, until, False)
        recovery.refused.clear()

    async def _go_on(self, found: Found) -> None:
        client = self._client(found.mount, found.view)
        async with client.lock:
            now = self._clocks.now()
            if found.is_removed:
                self._open_gap(found.gap(client.view, now), client)
                return
            # A client has one edit at a time; what it did before is published, or is now.
            await self._settle(client)
            await self._let_go(client)
            client.edit = found.edit
            client.changed_ns = self._clocks.now_ns()
            if found.shape is not None:
                client.state = client.state.on_recovered(found.shape, now, unstable=found.edit.awaits_commit)
            elif (client.told_version or -1) >= (found.edit.version or 0):
                client.superseded_at = now
                await self._remember_read(client, found.edit.version or 0)
            self._wake_later(client)

    async def _remember_read(self, client: Client, version: int) -> None:
        """Note again what a client had read before a restart, if that holds its last edit."""
        read = self._told.get_read(client.mount, client.view.key)
        if read is None or read < version:
            return
        image = await self._thread(self._steps.image, client.view, read)
        if image is not None:
            client.read = image, self._clocks.now()

    async def run_due(self) -> None:
        """Do what is due. Only for an editor that does not wake itself."""
        for client in list(self._clients.values()):
            await self._tick(client)
        for gap in self._gaps.all():
            await self._tick_gap(gap)
        await self._write_down()

    async def drain(self) -> None:
        """Publish what is complete and keep the rest for the next start; the editor is closed then."""
        self._is_closing = True
        for client in list(self._clients.values()):
            async with client.lock:
                await self._drain_one(client)
        if self._rest is not None:
            self._rest.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._write_down()
        self.close()

    def close(self) -> None:
        """Let go of files and timers; what is not published stays in the spool."""
        self._is_closing = True
        for owner in (*self._clients.values(), *self._gaps.all()):
            if owner.timer is not None:
                owner.timer.cancel()
        self._told.close()
