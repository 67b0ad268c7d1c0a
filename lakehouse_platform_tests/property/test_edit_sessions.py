"""Two clients edit one real table in any order, with lost answers, repeated WRITEs and killed servers in between.

The model is what each client means: the rows that it adds, changes and removes. In the end the table holds just that.
"""

from __future__ import annotations

import asyncio
import random
import shutil
import tempfile
from collections import Counter
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from lakehouse_platform.nfs.operations import Stable
from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform_tests.support.editing import PAGE, Bench, Mount, Running

HEADER = b"id,owner,value\n"
SCHEMA = pa.schema([("id", pa.int64()), ("owner", pa.string()), ("value", pa.string())])
WHO = st.integers(0, 1)
SAME = b"0,same,x\n"


class Edits(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.place = Path(tempfile.mkdtemp())
        store = DeltaStore(LakehouseConfig(base_path=str(self.place / "lake"), durability="os"))
        self.table = store.create("t", SCHEMA)
        self.loop = asyncio.new_event_loop()
        self.bench = Bench(self.table, self.place / "state")
        self.model: Counter[bytes] = Counter()
        self.next_id = 1
        self.server: AbstractAsyncContextManager[Running]
        self.run: Running
        self.clients: list[Mount] = []
        self.last: list[tuple[int, bytes] | None] = [None, None]

    def do(self, work: Any) -> Any:
        return self.loop.run_until_complete(work)

    # ── The server ────────────────────────────────────────────────────────────────────────────────

    @initialize(rows=st.sampled_from([0, 3, 300]))
    def start(self, rows: int) -> None:
        lines = [self.new_row(number % 2, "x" * (number % 7)) for number in range(rows)]
        if rows:
            self.table.append([dict(zip(SCHEMA.names, _values(line), strict=True)) for line in lines])
        self.model.update(lines)
        self.serve()
        self.clients = [self.run.mount(0), self.run.mount(1)]
        for who in (0, 1):
            self.look(who)

    def serve(self) -> None:
        self.server = self.bench.running()
        self.run = self.do(self.server.__aenter__())
        for client in self.clients:
            client.editor, client.view = self.run.editor, self.run.view

    @rule()
    def kill(self) -> None:
        self.do(self.server.__aexit__(None, None, None))
        self.serve()

    @rule(seconds=st.sampled_from([0.05, 0.25, 0.5, 1.1, 3.0]))
    def time_passes(self, seconds: float) -> None:
        self.do(self.run.wait(seconds))

    # ── A client ──────────────────────────────────────────────────────────────────────────────────

    @rule(who=WHO)
    def look(self, who: int) -> None:
        """The client opens or closes the file, or someone lists the directory."""
        self.do(self.clients[who].read())
        self.last[who] = None

    @rule(who=WHO, count=st.integers(1, 3), pages=st.booleans(), same=st.booleans())
    def append(self, who: int, count: int, pages: bool, same: bool) -> None:
        rows = [SAME if same else self.new_row(who, "a") for _ in range(count)]
        self.model.update(rows)
        client = self.clients[who]
        start = len(client.cached) // PAGE * PAGE if pages else len(client.cached)
        client.cached += b"".join(rows)
        self.write(who, start, client.cached[start:])

    @rule(who=WHO, cut=st.integers(1, 8), seconds=st.sampled_from([0.0, 0.3]))
    def append_in_two_pieces(self, who: int, cut: int, seconds: float) -> None:
        row = self.new_row(who, "pieces")
        self.model[row] += 1
        client = self.clients[who]
        for piece in (row[:cut], row[cut:]):
            start = len(client.cached) // PAGE * PAGE
            client.cached += piece
            self.write(who, start, client.cached[start:])
            self.do(self.run.wait(seconds))

    @rule(who=WHO, choice=st.randoms(use_true_random=False), longer=st.booleans())
    def patch(self, who: int, choice: random.Random, longer: bool) -> None:
        client = self.clients[who]
        mine = self.own_rows(who)
        if not mine:
            return
        old = choice.choice(mine)
        new = old[:-1] + b"y\n" if longer else old[:-2] + (b"z\n" if old[-2:-1] != b"z" else b"w\n")
        if new.startswith(old[: old.rindex(b",") + 1]) is False:
            return
        self.changed(old, new)
        before = client.cached
        client.cached = before.replace(b"\n" + old, b"\n" + new, 1)
        start = before.index(b"\n" + old) // PAGE * PAGE
        stop = len(client.cached) if longer else min(len(client.cached), start + 2 * PAGE)
        self.write(who, start, client.cached[start:stop])

    @rule(who=WHO, choice=st.randoms(use_true_random=False), killed=st.booleans(), committed=st.booleans())
    def overwrite(self, who: int, choice: random.Random, killed: bool, committed: bool) -> None:
        client = self.clients[who]
        self.look(who)
        lines = client.cached.splitlines(keepends=True)[1:]
        mine = self.own_rows(who)
        gone = set(choice.sample(mine, min(len(mine), choice.randrange(3))))
        for line in gone:
            self.model[line] -= 1
        fresh = [self.new_row(who, "o") for _ in range(choice.randrange(1, 4))]
        self.model.update(fresh)
        kept = [line for line in lines if line not in gone]
        for row in fresh:
            kept.insert(choice.randrange(len(kept) + 1), row)
        client.cached = HEADER + b"".join(kept)
        self.do(client.editor.truncate(client.id, client.view, 0))
        self.send_unstable(who, choice)
        if killed:
            self.kill()
            self.send_unstable(who, choice)
        if committed:
            self.do(client.editor.commit(client.id, client.view))
            self.look(who)

    @precondition(lambda self: any(self.last))
    @rule()
    def answers_are_lost(self) -> None:
        for who, last in enumerate(self.last):
            if last is not None:
                self.do(self.clients[who].write(*last))

    @rule()
    def somebody_compacts_the_table(self) -> None:
        self.table.compact()

    def teardown(self) -> None:
        if not self.clients:
            return
        for who in (0, 1):
            self.look(who)
        for _ in range(8):
            self.do(self.run.wait(11.0))
        found = Counter(
            b"%d,%s,%s\n" % (row["id"], row["owner"].encode(), row["value"].encode())
            for row in self.table.scan().to_pylist()
        )
        try:
            assert found == +self.model, (self.run.last_error(), found - self.model, self.model - found)
        finally:
            self.do(self.server.__aexit__(None, None, None))
            self.loop.run_until_complete(self.loop.shutdown_default_executor())
            self.loop.close()
            shutil.rmtree(self.place, ignore_errors=True)

    # ── Parts ─────────────────────────────────────────────────────────────────────────────────────

    def write(self, who: int, offset: int, data: bytes) -> None:
        self.do(self.clients[who].write(offset, data))
        self.last[who] = offset, data

    def send_unstable(self, who: int, choice: random.Random) -> None:
        client = self.clients[who]
        starts = list(range(0, len(client.cached), PAGE))
        choice.shuffle(starts)
        for start in starts:
            self.do(client.write(start, client.cached[start : start + PAGE], Stable.UNSTABLE))
        self.last[who] = None

    def new_row(self, who: int, value: str) -> bytes:
        self.next_id += 1
        return b"%d,c%d,%s_\n" % (self.next_id, who, value.encode())

    def own_rows(self, who: int) -> list[bytes]:
        lines = self.clients[who].cached.splitlines(keepends=True)[1:]
        return [line for line in lines if b",c%d," % who in line and line.endswith(b"\n")]

    def changed(self, old: bytes, new: bytes) -> None:
        self.model[old] -= 1
        self.model[new] += 1


def _values(line: bytes) -> tuple[int, str, str]:
    number, owner, value = line.decode().rstrip("\n").split(",")
    return int(number), owner, value


Edits.TestCase.settings = settings(settings.default, max_examples=20, stateful_step_count=15)
TestEdits = pytest.mark.slow(Edits.TestCase)
