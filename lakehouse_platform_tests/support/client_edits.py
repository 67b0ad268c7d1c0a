"""Edits of data.csv as people's tools make them, by clients that behave like kernels."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field, replace

from lakehouse_platform.nfs.operations import Status
from lakehouse_platform_tests.support.kernel_client import PAGE, KernelClient, pages
from lakehouse_platform_tests.support.nfs_client import NfsStatusError
from lakehouse_platform_tests.support.row_model import HEADER, Edit, key_of, line, rows_of

TEXTS = ["a", "", None, 'say "hi"', "two\nlines", "x,y", "ü" * 9, "long " * 30, '"', "\n", "a\n1,b,2\n"]
SAME = line(0, "same", 0)
_BAD = b"seven,x,1\n"
# Longer than any time for which the server waits for the rest of a draft that may be whole.
_UNHURRIED_SECONDS, _RECOVERED_SECONDS = 3.0, 61.0


@dataclass
class Editing:
    """One client's edits.

    Attributes:
        client: The client.
        number: Which one it is.
        chance: Decides everything.
        ids: New keys.
        is_keyed: Whether the table has a key.
    """

    client: KernelClient
    number: int
    chance: random.Random
    ids: Iterator[int]
    is_keyed: bool
    edits: list[Edit] = field(default_factory=list[Edit])
    names: Iterator[int] = field(default_factory=itertools.count)

    async def do(self, count: int) -> list[Edit]:
        """Do some edits; return what they meant and whether they were acknowledged."""
        self.edits = []
        for _ in range(count):
            edit = self.chance.choices(list(_WEIGHTS), list(_WEIGHTS.values()))[0]
            await edit(self)
            await asyncio.sleep(self.chance.choice([0.0, 0.0, 0.001, 0.1, 1.5]))
        return self.edits

    async def _attempt(self, edit: Edit, work: Callable[[], Awaitable[None]]) -> None:
        """Carry an edit out and note it."""
        self.client.sent = []
        edit = replace(edit, client=self.number)
        self.edits.append(edit)
        at = len(self.edits) - 1
        try:
            await work()
        except NfsStatusError as error:
            edit = replace(edit, refused=True, status=error.status.name)
        self.edits[at] = replace(edit, sent=tuple(self.client.sent))

    async def _opened(self) -> bytes | None:
        try:
            # After a refused overwrite the file may be empty for a while.
            return await self.client.open() or None
        except NfsStatusError as error:
            if error.status not in {Status.NOENT, Status.STALE}:
                raise
            return None

    async def _close(self, *, unhurried: bool = False) -> None:
        """Close the file, or only stop writing."""
        if self.chance.random() < 0.7:
            await self.client.getattr()
        else:
            unhurried = True
        if unhurried:
            await self._wait()

    async def _wait(self) -> None:
        """Wait until the server takes the edit for complete, for which it waits longer after a restart."""
        lives = self.client.lives
        await asyncio.sleep(_UNHURRIED_SECONDS)
        while self.client.lives > lives:
            lives = self.client.lives
            await asyncio.sleep(_RECOVERED_SECONDS)

    def _row(self) -> bytes:
        if not self.is_keyed and self.chance.random() < 0.3:
            return SAME
        return line(next(self.ids), self.chance.choice(TEXTS), self.chance.choice([None, 1, 22]))

    def _changed(self, rows: list[bytes]) -> list[bytes]:
        """Return some rows removed, some changed, some added."""
        chance, after = self.chance, list(rows)
        for _ in range(chance.choice([0, 0, 1, 2])):
            if after:
                after.pop(chance.randrange(len(after)))
        for _ in range(chance.choice([0, 1, 1, 3])):
            if after:
                at = chance.randrange(len(after))
                after[at] = line(int(key_of(after[at])), chance.choice(TEXTS), next(self.ids))
        for _ in range(chance.choice([0, 0, 1, 2])):
            after.insert(chance.randint(0, len(after)), self._row())
        return after

    def _diff(self, what: str, before: list[bytes], after: list[bytes]) -> Edit:
        old, new = Counter(before), Counter(after)
        return Edit(what, old - new, new - old, must_fail=_BAD in after or self._is_doubled(after))

    def _is_doubled(self, rows: list[bytes]) -> bool:
        keys = [key_of(row) for row in rows]
        return self.is_keyed and len(set(keys)) < len(keys)

    def _spoiled(self, rows: list[bytes]) -> list[bytes]:
        """Return rows with a wrong one among them, now and then."""
        if self.chance.random() < 0.06:
            return [*rows[: len(rows) // 2], _BAD, *rows[len(rows) // 2 :]]
        if self.is_keyed and rows and self.chance.random() < 0.04:
            return [*rows, line(int(key_of(self.chance.choice(rows))), "again", 5)]
        return rows

    # ── Edits ─────────────────────────────────────────────────────────────────────────────────────

    async def append(self) -> None:
        """`echo … >> data.csv`."""
        if (content := await self._opened()) is None:
            return
        old, chance = rows_of(content), self.chance
        rows = self._spoiled([self._row() for _ in range(chance.choice([1, 1, 2, 40]))])
        if self.is_keyed and old and chance.random() < 0.05:
            rows.append(line(int(key_of(chance.choice(old))), "again", 5))
        edit = replace(
            self._diff("append", old, old + rows),
            must_fail=_BAD in rows or self._is_doubled(rows),
            repeats=self._is_doubled(old + rows),
        )
        new = content + b"".join(rows)
        # A last row without its end is published later than the rows before it, unless the file is closed.
        if has_tail := chance.random() < 0.05:
            new = new[:-1]
        start = len(content) if chance.random() < 0.3 else len(content) // PAGE * PAGE
        whole = chance.random() < 0.5
        pieces = pages(new, len(content), len(new), whole=whole)
        pieces[0] = (start, new[start : pieces[0][0] + len(pieces[0][1])])

        async def work() -> None:
            self.client.wrote(new)
            await self.client.flush(self.client.handle, pieces, unstable=chance.random() < 0.4)
            await (self.client.getattr() if has_tail else self._close())

        await self._attempt(edit, work)

    async def overwrite(self) -> None:
        """`cat new > data.csv`."""
        if (content := await self._opened()) is None:
            return
        old = rows_of(content)
        after = self._spoiled(self._changed(old))
        await self._attempt(
            self._diff("overwrite", old, after),
            lambda: self._written_over(content, after, empties=True),
        )

    async def _written_over(self, content: bytes, after: list[bytes], *, empties: bool) -> None:
        new = HEADER + b"".join(after)
        if empties:
            await self.client.truncate(0)
        self.client.wrote(new)
        pieces = pages(new, 0, len(new), whole=self.chance.random() < 0.3)
        await self.client.flush(self.client.handle, pieces, unstable=self.chance.random() < 0.5)
        # What is the beginning of the old content may be a copy under way.
        await self._close(unhurried=content.startswith(new))

    async def patch(self) -> None:
        """Change a row in place, as programs do that open the file with `r+`."""
        if (content := await self._opened()) is None:
            return
        old, chance = rows_of(content), self.chance
        if not old:
            return
        at = chance.randrange(len(old))
        row = line(int(key_of(old[at])), chance.choice(TEXTS), next(self.ids))
        if chance.random() < 0.5 and old[at][-2:-1].isdigit():
            row = old[at][:-2] + (b"7\n" if old[at][-2:-1] != b"7" else b"8\n")
        after = [*old[:at], row, *old[at + 1 :]]
        new = HEADER + b"".join(after)
        if len(new) < len(content):
            return
        start = len(HEADER) + sum(map(len, old[:at]))
        stop = len(new) if len(new) > len(content) else start + len(row)
        pieces = pages(new, start, stop, whole=chance.random() < 0.5)

        async def work() -> None:
            self.client.wrote(new)
            await self.client.flush(self.client.handle, pieces, unstable=chance.random() < 0.4)
            await self._close()

        await self._attempt(self._diff("patch", old, after), work)

    async def rename_over(self) -> None:
        """`sed -i`: a new file takes the name."""
        if (content := await self._opened()) is None:
            return
        old = rows_of(content)
        after = self._spoiled(self._changed(old))
        new = HEADER + b"".join(after)
        name = b"sed%d-%d" % (self.number, next(self.names))

        async def work() -> None:
            handle = await self.client.create(name)
            pieces = pages(new, 0, len(new), whole=self.chance.random() < 0.5)
            await self.client.flush(handle, pieces, unstable=self.chance.random() < 0.5)
            await self.client.rename(name, b"data.csv")

        await self._attempt(self._diff("rename_over", old, after), work)

    async def remove(self) -> None:
        """`rm data.csv`."""
        if await self._opened() is None:
            return

        async def work() -> None:
            await self.client.remove(b"data.csv")
            await self._wait()

        await self._attempt(Edit("remove", deletes_all=True), work)

    async def remove_and_create(self) -> None:
        """`rm data.csv; cp new data.csv`."""
        await self._made_anew("remove_and_create", lambda: self.client.remove(b"data.csv"))

    async def move_and_create(self) -> None:
        """What vim does with `backupcopy=no`."""
        name = b"data.csv~%d-%d" % (self.number, next(self.names))
        await self._made_anew("move_and_create", lambda: self.client.rename(b"data.csv", name))

    async def _made_anew(self, what: str, away: Callable[[], Awaitable[None]]) -> None:
        if (content := await self._opened()) is None:
            return
        old = rows_of(content)
        after = self._changed(old)

        async def work() -> None:
            await away()
            self.client.handle = await self.client.create(b"data.csv", empty=True)
            await self._written_over(content, after, empties=False)

        await self._attempt(self._diff(what, old, after), work)

    async def move_and_back(self) -> None:
        """A name for a moment."""
        if await self._opened() is None:
            return
        name = b"aside%d-%d" % (self.number, next(self.names))

        async def work() -> None:
            await self.client.rename(b"data.csv", name)
            await asyncio.sleep(self.chance.choice([0.0, 0.5]))
            await self.client.rename(name, b"data.csv")

        await self._attempt(Edit("move_and_back"), work)

    async def cut(self) -> None:
        """`truncate -s`, at the end of a row."""
        if (content := await self._opened()) is None:
            return
        old = rows_of(content)
        if not old:
            return
        kept = old[: self.chance.randrange(len(old))]

        async def work() -> None:
            await self.client.truncate(len(HEADER) + sum(map(len, kept)))
            await self._close(unhurried=True)

        await self._attempt(self._diff("cut", old, kept), work)


_WEIGHTS: dict[Callable[[Editing], Awaitable[None]], int] = {
    Editing.append: 6,
    Editing.overwrite: 6,
    Editing.patch: 4,
    Editing.rename_over: 3,
    Editing.remove: 1,
    Editing.remove_and_create: 1,
    Editing.move_and_create: 2,
    Editing.move_and_back: 1,
    Editing.cut: 1,
}
