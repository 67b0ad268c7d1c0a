"""Runs random sequences of file operations by two clients through a whole server, against a model of the table.

    python -m lakehouse_platform_tests.campaigns.mount_sequences --sequences 10000 --processes 2

Answers are lost and calls repeated, unstable WRITEs come in any order, others commit, and the server is killed. When
all is quiet, the rows must be those of one of the orders in which the edits may have happened, each edit must have been
one commit, and of refused edits the bytes must be kept. A sequence that fails is run again by `--first N --sequences 1`
with the same seed.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import random
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import pyarrow as pa

from lakehouse_platform.nfs.tree.images import table_key
from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.store.table import Table
from lakehouse_platform_tests.support.client_edits import TEXTS, Editing
from lakehouse_platform_tests.support.kernel_client import KernelClient
from lakehouse_platform_tests.support.row_model import Edit, Outcome, Rows, line, outcomes, rows_of
from lakehouse_platform_tests.support.simulated_server import SimulatedServer
from lakehouse_platform_tests.support.virtual_time import START_SECONDS, VirtualTimeLoop

_SCHEMA = pa.schema([("id", pa.int64()), ("text", pa.string()), ("number", pa.int64())])
# Longer than the server waits for the end of a draft, and for its client after a restart.
_QUIET_SECONDS, _RECOVERED_SECONDS = 16.0, 61.0
_MOST_ROUNDS = 4
_TELL_EVERY = 250


@dataclass
class Sequence:
    """One sequence.

    Attributes:
        table: The table.
        server: Its server.
        chance: Decides everything.
        is_keyed: Whether it has a key.
        ids: New keys.
        editors: The clients.
        owed: Clients that have not been told yet that an edit was refused after they closed the file.
        log: What was done.
    """

    table: Table
    server: SimulatedServer
    chance: random.Random
    is_keyed: bool
    ids: Iterator[int] = field(default_factory=lambda: itertools.count(1000))
    editors: list[Editing] = field(default_factory=list[Editing])
    owed: set[int] = field(default_factory=set[int])
    log: list[str] = field(default_factory=list[str])

    async def run(self) -> None:
        """Run it.

        Raises:
            AssertionError: The table, or what a client sees, differs from the model.
        """
        await self.server.start()
        for number in range(2):
            client = KernelClient(self.server, b"m%d" % number, self.chance, self.log)
            await client.mount()
            self.editors.append(Editing(client, number, self.chance, self.ids, self.is_keyed))
        try:
            for _ in range(self.chance.randint(1, _MOST_ROUNDS)):
                await self._round()
        finally:
            await self.server.kill()

    async def _round(self) -> None:
        before, version, kept = self._rows(), self.table.version(), self._kept()
        self.log.append(f"────── version {version}: {_shown(before)}")
        kills = self.server.kills
        edits = await self._edit()
        await asyncio.sleep(_QUIET_SECONDS)
        if self.server.kills > kills:
            await asyncio.sleep(_RECOVERED_SECONDS)
        new = b"\n".join(path.read_bytes() for path in sorted(self._kept() - kept))
        found, versions = self._rows(), self.table.version() - version
        try:
            self._check(before, found, versions, edits, new)
        except AssertionError:
            self.log += [_told(edit) for some in edits for edit in some]
            self.log += self._history(before, versions)
            self.log.append(self._last_error())
            raise
        for editor in self.editors:
            shown = Counter(rows_of(await editor.client.open()))
            assert shown == found, f"client {editor.number} sees {shown}"

    async def _edit(self) -> list[list[Edit]]:
        chance = self.chance
        who = chance.choice([[0], [1], [0, 1], [0, 1]])
        works = [self.editors[number].do(chance.choice([1, 1, 2, 3])) for number in who]
        foreign: list[Edit] = []
        others = [self._foreign(foreign)] if chance.random() < 0.3 else []
        others += [self._kill()] if chance.random() < 0.25 else []
        done = await asyncio.gather(*works, *others)
        return [*(some for some in done if some is not None), foreign]

    async def _kill(self) -> None:
        for _ in range(self.chance.choice([1, 1, 2])):
            await asyncio.sleep(self.chance.choice([self.chance.uniform(0, 0.15), self.chance.uniform(0, 3)]))
            self.log.append(f"{asyncio.get_running_loop().time() - START_SECONDS:8.3f} kill")
            await self.server.kill()
            await asyncio.sleep(0.02)
            await self.server.start()

    async def _foreign(self, done: list[Edit]) -> None:
        await asyncio.sleep(self.chance.uniform(0, 0.1))
        version, before = self.table.version(), self._rows()
        what = self.chance.choice(["append", "delete", "compact"])
        removed, added = Counter[bytes](), Counter[bytes]()
        if what == "append":
            row = {"id": next(self.ids), "text": self.chance.choice(TEXTS), "number": 3}
            self.table.append([row])
        elif what == "delete" and before:
            self.table.delete(f"id = {int(self.chance.choice(sorted(before)).split(b',')[0])}")
        elif what == "compact":
            self.table.compact()
        after = self._rows()
        removed, added = before - after, after - before
        versions = self.table.version() - version
        self.log.append(f"{asyncio.get_running_loop().time() - START_SECONDS:8.3f} foreign {what}")
        done.append(Edit(f"foreign {what}", removed, added, is_foreign=True, versions=versions))

    # ── Checks ────────────────────────────────────────────────────────────────────────────────────

    def _check(self, before: Rows, found: Rows, versions: int, edits: list[list[Edit]], kept: bytes) -> None:
        edits = _undoable(edits)
        possible = list(outcomes(before, edits, is_keyed=self.is_keyed))
        same = [one for one in possible if one.rows == found]
        assert same, f"{versions} commits, {_shown(found - before)} more, {_shown(before - found)} less"
        same = [one for one in same if one.versions == versions]
        assert same, f"{versions} commits"
        same = [one for one in same if _keeps(one, kept)]
        assert same, f"the bytes of a refused edit are lost: {kept!r}"
        self._check_refusals(same, edits)

    def _check_refusals(self, possible: list[Outcome], edits: list[list[Edit]]) -> None:
        for some in edits:
            for edit in some:
                if edit.refused:
                    assert self._may_refuse(edit, edits), f"refused for no reason: {edit}"
                elif any(edit in one.lost for one in possible):
                    self.owed.add(edit.client)

    def _may_refuse(self, edit: Edit, edits: list[list[Edit]]) -> bool:
        if edit.must_fail or edit.repeats or edit.what == "rename_over":
            return True
        if edit.status == "IO" and edit.client in self.owed:
            self.owed.discard(edit.client)
            return True
        others = [other.what for some in edits for other in some if other is not edit]
        return any("remove" in what or "move" in what or "rename" in what for what in others)

    def _last_error(self) -> str:
        return self.server.context.rejected.last_error(table_key(self.table.location))[0].decode()

    def _history(self, rows: Rows, versions: int) -> list[str]:
        """Return what each of the last commits changed."""
        newest, lines = self.table.version(), list[str]()
        for version in range(newest - versions + 1, newest + 1):
            then, rows = rows, self._rows(version)
            lines.append(f"version {version}: - {_shown(then - rows)} + {_shown(rows - then)}")
        return lines

    def _rows(self, version: int | None = None) -> Rows:
        rows = self.table.scan(version=version).to_pylist()
        return Counter(line(row["id"], row["text"], row["number"]) for row in rows)

    def _kept(self) -> set[Path]:
        files = self.server.context.rejected.files(table_key(self.table.location))
        return {kept.path for kept in files if kept.name.endswith("-data.csv")}


def _undoable(edits: list[list[Edit]]) -> list[list[Edit]]:
    """Return the edits, removals being undone perhaps where another client gives the name to something else."""
    fillers = {
        edit.client for some in edits for edit in some if "rename" in edit.what or "move_" in edit.what
    }
    return [[replace(edit, may_be_undone=bool(fillers - {edit.client})) for edit in some] for some in edits]


def _shown(rows: Rows) -> str:
    """Return some rows for a report."""
    shown = ["".join(row.decode().rstrip("\n").split("long long")) for row in sorted(rows.elements())]
    return f"{len(shown)} rows {shown[:12]}"


def _told(edit: Edit) -> str:
    status = edit.status or ("must fail" if edit.must_fail else "")
    everything = "all, " if edit.deletes_all else ""
    return f"{edit.client} {edit.what} {status}: - {everything}{_shown(edit.removed)} + {_shown(edit.added)}"


def _keeps(outcome: Outcome, kept: bytes) -> bool:
    # A patch's bytes are kept from page to page; where a file was moved away it is read-only, and nothing is taken.
    return all(
        row.rstrip(b"\n") in kept
        for edit in outcome.lost
        if edit.what != "patch" and edit.status != "ROFS"
        for row in edit.added
        if any(row in data for data in edit.sent)
    )


# ── Many of them ──────────────────────────────────────────────────────────────────────────────────────


def run_one(seed: int, number: int) -> str | None:
    """Run one sequence; return what went wrong."""
    chance = random.Random(f"{seed}/{number}")
    place = Path(tempfile.mkdtemp(prefix="sequence-", dir=_memory()))
    loop = VirtualTimeLoop(chance)
    log: list[str] = []
    try:
        is_keyed = chance.random() < 0.5
        table = _table(place, chance, is_keyed)
        sequence = Sequence(table, SimulatedServer(table, place / "state"), chance, is_keyed, log=log)
        loop.run_until_complete(sequence.run())
    except Exception:  # noqa: BLE001 - whatever is wrong is what is looked for
        return f"--seed {seed} --first {number}\n{traceback.format_exc()}" + "\n".join(log)
    else:
        return None
    finally:
        loop.close()
        shutil.rmtree(place, ignore_errors=True)


def _memory() -> str | None:
    """Return a place whose files are in memory, as far as there is one: what is synced costs nothing there."""
    shared = Path("/dev/shm")
    return str(shared) if shared.is_dir() else None


def _table(place: Path, chance: random.Random, is_keyed: bool) -> Table:
    store = DeltaStore(LakehouseConfig(base_path=str(place / "lake"), durability="os"))
    table = store.create("t", _SCHEMA, primary_key=["id"] if is_keyed else [])
    count, first = chance.choice([0, 3, 3, 12, 300]), 1
    for size in (count // 2, count - count // 2):
        rows = [{"id": first + n, "text": chance.choice(TEXTS), "number": n} for n in range(size)]
        first += size
        if rows:
            table.append(rows)
    if not is_keyed and chance.random() < 0.5:
        table.append([{"id": 0, "text": "same", "number": 0}] * 2)
    return table


def main() -> int:
    """Run the campaign and print what differs."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sequences", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=2)
    arguments = parser.parse_args()
    start = time.monotonic()
    numbers = range(arguments.first, arguments.first + arguments.sequences)
    problems = 0
    with ProcessPoolExecutor(arguments.processes) as pool:
        for done, problem in enumerate(pool.map(partial(run_one, arguments.seed), numbers, chunksize=8), 1):
            if problem is not None:
                sys.stdout.write(problem + "\n\n")
                sys.stdout.flush()
                problems += 1
            if done % _TELL_EVERY == 0:
                sys.stderr.write(f"{done} done in {time.monotonic() - start:.0f} s, {problems} differ\n")
    seconds = time.monotonic() - start
    sys.stdout.write(f"{len(numbers)} sequences in {seconds:.0f} s, {problems} differ from the model\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
