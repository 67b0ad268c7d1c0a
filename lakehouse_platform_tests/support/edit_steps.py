"""Edits a table through the mount's editor until it is killed; says after each edit that it was acknowledged."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

from lakehouse_platform.nfs.operations import Stable
from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform_tests.support.editing import Bench, Mount

TABLE = "edited"


def bench(directory: Path, *, wakes_itself: bool) -> Bench:
    """Return the editor's surroundings in a directory."""
    store = DeltaStore(LakehouseConfig(base_path=str(directory / "lake")))
    return Bench(store.table(TABLE), directory / "state", wakes_itself=wakes_itself)


async def _append(client: Mount, row: bytes) -> None:
    await client.read()
    await client.append(row)
    _say(row)
    await client.getattr()


async def _append_on_and_on(client: Mount, row: bytes) -> None:
    if not client.cached:
        await client.read()
    await client.append(row)
    _say(row)
    await asyncio.sleep(0.01)


async def _overwrite(client: Mount, row: bytes) -> None:
    await client.overwrite(await client.read() + row)
    _say(row)
    await client.getattr()


async def _overwrite_unstable(client: Mount, row: bytes) -> None:
    content = await client.read() + row
    await client.editor.truncate(client.id, client.view, 0)
    for start in range(0, len(content), 16):
        await client.write(start, content[start : start + 16], Stable.UNSTABLE)
    await client.editor.commit(client.id, client.view)
    _say(row)
    await client.getattr()


STEPS: dict[str, Callable[[Mount, bytes], Awaitable[None]]] = {
    "append": _append,
    "append_on_and_on": _append_on_and_on,
    "overwrite": _overwrite,
    "overwrite_unstable": _overwrite_unstable,
}


def _say(row: bytes) -> None:
    sys.stdout.write(row.split(b",")[0].decode() + "\n")
    sys.stdout.flush()


async def _edit(directory: Path, step: str, number: int) -> None:
    async with bench(directory, wakes_itself=True).running() as run:
        client = run.mount(number)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while True:
            await STEPS[step](client, b"%d,%s,1\n" % (number, step.encode()))
            number += 1


if __name__ == "__main__":
    asyncio.run(_edit(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
