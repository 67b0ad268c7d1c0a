"""Who decides over commits: what may not be is no edit, and what cannot be written down is not lost or done twice."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from lakehouse_platform.audit.log import AuditLog
from lakehouse_platform.errors import AuditWriteFailedError, PermissionDeniedError
from lakehouse_platform.identity.grants import Grants
from lakehouse_platform.identity.limits import Limits
from lakehouse_platform.identity.permissions import Permission
from lakehouse_platform.model.actors import OWNER
from lakehouse_platform.nfs.edits.permits import Commit, OwnersPermits, Tell
from lakehouse_platform.nfs.edits.session import RETRY_FOR_S
from lakehouse_platform.nfs.edits.view import View
from lakehouse_platform.nfs.operations import NfsError
from lakehouse_platform.private_files import private_directory
from lakehouse_platform.services.gate import Gate, Note
from lakehouse_platform.services.preparing import prepare
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform_tests.support.byte_image import ByteContent
from lakehouse_platform_tests.support.editing import PEOPLE_FILE, PEOPLE_ROWS, Bench, Mount, Running
from lakehouse_platform_tests.support.full_disk import file_size_limit

Story = Callable[[Running], Coroutine[None, None, None]]
Way = Callable[[Running, Mount], Coroutine[None, None, None]]


@dataclass
class Counting(OwnersPermits):
    """Counts rows; permits nothing if a test has it so."""

    rows: list[int] = field(default_factory=list[int])
    is_denied: bool = False

    def publish(self, mount: bytes, view: View, act: Callable[[Tell], int]) -> int:
        if self.is_denied:
            raise PermissionDeniedError("You may not do this here.")
        return act(self.rows.append)


@dataclass
class Audited(OwnersPermits):
    """Everything goes through a gate; the disk of its audit log is full, before or after a commit, as a test has it."""

    gate: Gate
    audit: AuditLog
    is_full: bool = False
    is_full_before: bool = False

    def publish(self, mount: bytes, view: View, act: Callable[[Tell], int]) -> int:
        del mount

        def noted(note: Note) -> int:
            def tell(rows: int) -> None:
                note.row_count = rows

            if self.is_full_before:
                with file_size_limit(0):
                    self.gate.check_writable()
            version = act(tell)
            note.details = f"version {version}"
            self._fill_up(disk)
            return version

        with ExitStack() as disk:
            return self.gate.run(OWNER, Permission.WRITE_TABLE, view.table.name, noted)

    def write_down(self, commit: Commit) -> None:
        note = Note(details=f"version {commit.version}", row_count=commit.rows)
        with ExitStack() as disk:
            self._fill_up(disk)
            self.gate.note_done(OWNER, Permission.WRITE_TABLE, commit.view.table.name, note)

    def _fill_up(self, disk: ExitStack) -> None:
        if self.is_full:
            disk.enter_context(file_size_limit(0))

    def entries(self) -> list[tuple[str, str, int | None, str | None]]:
        self.audit.flush()
        rows = sorted(self.audit.store.scan("audit_log").to_pylist(), key=lambda row: row["sequence"])
        return [(row["action"], row["outcome"], row["row_count"], row["details"]) for row in rows]


@pytest.fixture
def audited(bench: Bench, store: DeltaStore, tmp_path: Path) -> Iterator[Audited]:
    prepare(store)
    state = private_directory(tmp_path / "accounts")
    with AuditLog(store, state / "audit") as audit, Limits(state) as limits:
        bench.permits = made = Audited(Gate(audit, Grants(store), limits), audit)
        yield made


@pytest.fixture
def permits(bench: Bench) -> Counting:
    bench.permits = made = Counting()
    return made


def test_each_commit_tells_its_rows(tell: Callable[[Story], None], permits: Counting) -> None:
    async def story(run: Running) -> None:
        await run.mount().echo(b"4,n4,34\n5,n5,35\n")
        client = run.mount()
        await client.read()
        await run.editor.replace(client.id, client.view, ByteContent(b"id,name,age\n1,n1,31\n2,other,32\n"))
        await run.editor.remove(client.id, client.view)
        await run.wait(2.0)
        assert run.rows() == []

    tell(story)
    # A row without a declared key that is changed counts as it is written: `replace` drops 3 and changes one of 5.
    assert permits.rows[0] == 2
    assert permits.rows[-1] == 2
    assert len(permits.rows) == 3


def test_what_is_not_permitted_is_kept_aside_and_the_next_write_is_told(
    tell: Callable[[Story], None], permits: Counting
) -> None:
    permits.is_denied = True

    async def story(run: Running) -> None:
        before, client = run.version, run.mount()
        await client.echo(b"4,n4,34\n")
        assert run.version == before
        assert run.rejected() == [b"4,n4,34\n"]
        assert "may not" in run.last_error()
        with pytest.raises(NfsError, match="may not"):
            await client.write(len(PEOPLE_FILE), b"5,n5,35\n")
        with pytest.raises(PermissionDeniedError):
            await run.editor.replace(client.id, client.view, ByteContent(b"id,name,age\n1,n1,31\n"))
        await run.editor.remove(client.id, client.view)
        await run.wait(2.0)
        assert run.version == before
        assert run.rows() == sorted(PEOPLE_ROWS, key=repr)

    tell(story)


@pytest.mark.parametrize("end", ["time", "rename"])
def test_an_edit_that_is_not_made_because_it_could_not_be_written_down_waits_and_is_then_kept_with_the_reason(
    tell: Callable[[Story], None], audited: Audited, end: str
) -> None:
    audited.is_full_before = True

    async def story(run: Running) -> None:
        before, client = run.version, run.mount()
        await append(run, client)
        assert run.last_error().startswith("data.csv is kept and not written yet: The audit entry")
        if end == "time":
            for _ in range(3):
                await run.wait(RETRY_FOR_S)
        else:
            with pytest.raises(AuditWriteFailedError):
                await run.editor.replace(client.id, client.view, NEW)
        assert run.version == before
        assert run.rejected()[0] == b"4,n4,34\n"
        assert run.last_error().startswith("The audit entry could not be written")
        assert "The edit was not written" in run.last_error()
        audited.is_full_before = False
        again = run.mount()
        await append(run, again)
        assert run.version == before + 1
        done = [entry for entry in audited.entries() if entry[1] == "done"]
        assert done == [("data_write", "done", 1, f"version {before + 1}")]

    tell(story)


def test_an_edit_that_waits_for_the_audit_log_is_made_once_that_can_be_written(
    tell: Callable[[Story], None], audited: Audited
) -> None:
    audited.is_full_before = True

    async def story(run: Running) -> None:
        before = run.version
        await append(run, run.mount())
        await run.wait(5.0)
        assert run.version == before
        audited.is_full_before = False
        await run.wait(15.0)
        assert (run.version, run.rejected()) == (before + 1, [])
        assert audited.entries()[-1] == ("data_write", "done", 1, f"version {before + 1}")

    tell(story)


async def append(run: Running, client: Mount) -> None:
    await client.echo(b"4,n4,34\n")


async def rename_over(run: Running, client: Mount) -> None:
    await client.read()
    with pytest.raises(AuditWriteFailedError):
        await run.editor.replace(client.id, client.view, NEW)


async def rename_over_what_was_removed(run: Running, client: Mount) -> None:
    await client.read()
    await run.editor.remove(client.id, client.view)
    with pytest.raises(AuditWriteFailedError):
        await run.editor.replace(client.id, client.view, NEW)


async def rename_over_what_was_moved_away(run: Running, client: Mount) -> None:
    await client.read()
    await run.editor.rename_away(client.id, client.view)
    with pytest.raises(AuditWriteFailedError):
        await run.editor.replace(client.id, client.view, NEW)


async def remove(run: Running, client: Mount) -> None:
    await client.read()
    await run.editor.remove(client.id, client.view)
    await run.wait(2.0)


NEW = ByteContent(b"id,name,age\n1,n1,31\n2,other,32\n3,n3,33\n")
ONE_NEW_ROW = [PEOPLE_ROWS[0], {"id": 2, "name": "other", "age": 32}, PEOPLE_ROWS[2]]
WAYS: dict[Way, tuple[list[dict[str, Any]], int]] = {
    append: ([*PEOPLE_ROWS, {"id": 4, "name": "n4", "age": 34}], 1),
    rename_over: (ONE_NEW_ROW, 1),
    rename_over_what_was_removed: (ONE_NEW_ROW, 1),
    rename_over_what_was_moved_away: (ONE_NEW_ROW, 1),
    remove: ([], 3),
}


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_a_commit_that_could_not_be_written_down_is_said_to_be_made_and_written_down_once_that_can_be(
    tell: Callable[[Story], None],
    audited: Audited,
    way: Way,
) -> None:
    audited.is_full = True
    rows, count = WAYS[way]

    async def story(run: Running) -> None:
        before, client = run.version, run.mount()
        await way(run, client)
        for _ in range(3):
            await run.wait(RETRY_FOR_S)
            assert run.version == before + 1
            assert run.rows() == sorted(rows, key=repr)
            assert f"is in the table, as version {run.version}" in run.last_error()
            assert run.rejected() == []
        assert audited.entries() == []
        audited.is_full = False
        for _ in range(3):
            await run.wait(2.0)
        assert audited.entries() == [("data_write", "done", count, f"version {before + 1}")]
        assert run.version == before + 1

    tell(story)


def test_who_renames_again_because_the_commit_could_not_be_written_down_is_not_in_conflict_with_it(
    tell: Callable[[Story], None], audited: Audited
) -> None:
    async def story(run: Running) -> None:
        client = run.mount()
        audited.is_full = True
        await rename_over(run, client)
        audited.is_full = False
        version = run.version
        await run.editor.replace(client.id, client.view, NEW)
        assert run.version == version
        assert run.rows() == sorted(ONE_NEW_ROW, key=repr)
        assert run.rejected() == []

    tell(story)


def test_what_was_not_written_down_is_when_the_server_stops(
    tell: Callable[[Story], None], audited: Audited
) -> None:
    async def story(run: Running) -> None:
        audited.is_full = True
        await append(run, run.mount())
        audited.is_full = False
        await run.editor.drain()
        assert [entry[:3] for entry in audited.entries()] == [("data_write", "done", 1)]

    tell(story)


def test_what_was_not_written_down_is_by_itself_once_that_can_be(
    bench: Bench, tell: Callable[[Story], None], audited: Audited
) -> None:
    bench.wakes_itself = True

    async def story(run: Running) -> None:
        audited.is_full = True
        await rename_over(run, run.mount())
        audited.is_full = False
        await asyncio.gather(*run.editor._tasks)
        assert [entry[:3] for entry in audited.entries()] == [("data_write", "done", 1)]

    tell(story)
