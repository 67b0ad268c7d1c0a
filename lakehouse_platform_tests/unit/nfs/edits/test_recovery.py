"""What a killed server had acknowledged, when the next one runs; what a stopped one leaves; what does not fit."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine

import pytest

from lakehouse_platform.errors import RowError
from lakehouse_platform.nfs.edits import steps
from lakehouse_platform.nfs.operations import NfsError, Stable, Status
from lakehouse_platform.store.commit import AppTransaction
from lakehouse_platform.store.log import list_log, read_commit
from lakehouse_platform.store.table import Table
from lakehouse_platform_tests.support.byte_image import ByteContent
from lakehouse_platform_tests.support.editing import PEOPLE_FILE as START
from lakehouse_platform_tests.support.editing import Bench, Running

Story = Callable[[Running], Coroutine[None, None, None]]


# ── Restarts ──────────────────────────────────────────────────────────────────────────────────────


def test_an_append_that_was_not_published_is_after_a_restart(tell: Callable[[Story], None]) -> None:
    async def before(run: Running) -> None:
        client = run.mount(1)
        await client.read()
        await client.append(b"4,n4,34\n")

    async def after(run: Running) -> None:
        await run.wait(0.3)
        assert run.shown() == START + b"4,n4,34\n"
        client = run.mount(1)
        client.cached = START
        await client.append(b"4,n4,34\n")
        await client.getattr()
        await run.wait(1)
        assert run.shown() == START + b"4,n4,34\n"

    tell(before)
    tell(after)


def test_what_was_published_is_not_published_again_after_a_restart(tell: Callable[[Story], None]) -> None:
    async def before(run: Running) -> None:
        client = run.mount(1)
        await client.read()
        await client.append(b"4,n4,34\n")
        await run.wait(0.3)

    async def after(run: Running) -> None:
        version = run.version
        await run.wait(11)
        client = run.mount(1)
        client.cached = START
        await client.append(b"4,n4,34\n")
        await client.append(b"5,n5,35\n")
        await client.getattr()
        assert run.version == version + 1
        assert run.shown() == START + b"4,n4,34\n5,n5,35\n"

    tell(before)
    tell(after)


def test_a_file_renamed_over_after_a_restart_counts_from_what_its_client_had_read(
    tell: Callable[[Story], None],
) -> None:
    seen = START + b"4,n4,34\n5,n5,35\n"

    async def before(run: Running) -> None:
        client = run.mount(1)
        await client.echo(b"4,n4,34\n")
        await run.mount(2).echo(b"5,n5,35\n")
        assert await client.read() == seen

    async def after(run: Running) -> None:
        client = run.mount(1)
        await run.mount(2).echo(b"6,n6,36\n")
        await client.editor.replace(client.id, client.view, ByteContent(seen.replace(b"n5", b"five")))
        assert run.shown() == seen.replace(b"n5", b"five") + b"6,n6,36\n"

    tell(before)
    tell(after)


def test_a_file_moved_away_and_back_over_a_restart_changes_nothing(tell: Callable[[Story], None]) -> None:
    moved: list[bytes] = []

    async def before(run: Running) -> None:
        client = run.mount(1)
        await client.read()
        await run.mount(2).echo(b"4,n4,34\n")
        await client.append(b"5,n5,35\n")
        await run.editor.close_signal(client.id, client.view)
        image = await run.editor.rename_away(client.id, client.view)
        moved.append(b"".join(bytes(part) for part in image.read(0, image.size)))

    async def after(run: Running) -> None:
        client, version = run.mount(1), run.version
        await client.editor.replace(client.id, client.view, ByteContent(moved[0]))
        assert (run.version, run.shown()) == (version, START + b"4,n4,34\n5,n5,35\n")

    tell(before)
    tell(after)


def test_the_rest_of_a_file_that_a_restart_found_wrong_is_refused_too(tell: Callable[[Story], None]) -> None:
    async def before(run: Running) -> None:
        client = run.mount(1)
        await client.read()
        await client.editor.truncate(client.id, client.view, 0)
        log = client.editor.spool.existing()[0]
        log.write(0, b"id,name,age\nseven,n7,37\n")

    async def after(run: Running) -> None:
        client = run.mount(1)
        with pytest.raises(NfsError):
            await client.write(24, b"8,n8,38\n")
        assert run.shown() == START
        assert list(run.rejected()) == [b"id,name,age\nseven,n7,37\n8,n8,38\n"]

    tell(before)
    tell(after)


def test_a_write_that_is_sent_again_after_a_restart_shows_that_its_client_is_there(
    tell: Callable[[Story], None],
) -> None:
    async def before(run: Running) -> None:
        client = run.mount(1)
        await client.read()
        await client.overwrite(b"id,name,age\n")

    async def after(run: Running) -> None:
        client = run.mount(1)
        await client.write(0, b"id,name,age\n")
        await run.wait(2.1)
        assert run.rows() == []

    tell(before)
    tell(after)


@pytest.mark.parametrize("committed", [False, True])
def test_half_of_a_copy_is_published_after_a_restart_only_if_its_client_had_it_committed(
    tell: Callable[[Story], None], committed: bool
) -> None:
    half = START[: START.index(b"\n2,")]

    async def before(run: Running) -> None:
        client = run.mount(1)
        await client.read()
        await client.editor.truncate(client.id, client.view, 0)
        await client.write(0, half[:5], Stable.UNSTABLE)
        await client.write(5, half[5:], Stable.UNSTABLE)
        if committed:
            await client.editor.commit(client.id, client.view)

    async def after(run: Running) -> None:
        for _ in range(3):
            await run.wait(61)
        assert run.shown() == (half + b"\n" if committed else START)
        assert list(run.rejected()) == ([] if committed else [half])

    tell(before)
    tell(after)


def test_an_overwrite_waits_for_its_client_after_a_restart(tell: Callable[[Story], None]) -> None:
    new = b"id,name,age\n1,n1,31\n7,n7,37\n8,n8,38\n"

    async def before(run: Running) -> None:
        client = run.mount(1)
        await client.read()
        await client.overwrite(new[:28])

    async def after(run: Running) -> None:
        await run.wait(5)
        assert run.shown() == START
        client = run.mount(1)
        await client.write(0, new)
        await client.getattr()
        assert run.shown() == new

    tell(before)
    tell(after)


def test_a_removal_is_finished_after_a_restart(tell: Callable[[Story], None]) -> None:
    async def before(run: Running) -> None:
        client = run.mount(1)
        await client.read()
        await run.editor.remove(client.id, run.view)

    async def after(run: Running) -> None:
        await run.wait(1.1)
        assert run.rows() == []

    tell(before)
    tell(after)


def test_a_removal_that_was_finished_is_forgotten_after_a_restart(
    tell: Callable[[Story], None], table: Table, bench: Bench
) -> None:
    async def before(run: Running) -> None:
        client = run.mount(1)
        await client.read()
        await run.editor.remove(client.id, run.view)
        (log,) = (path for path in (bench.state / "spool").iterdir() if path.stat().st_size > 100)
        # The server dies behind the commit.
        table.delete_all(transaction=AppTransaction(f"lakehouse-nfs-{log.stem}", 1))

    async def after(run: Running) -> None:
        client = run.mount(1)
        await client.read()
        await client.overwrite(START)
        await client.getattr()
        assert run.shown() == START

    tell(before)
    tell(after)


def test_unstable_writes_sent_again_to_the_next_server_are_taken_once(tell: Callable[[Story], None]) -> None:
    new = START + b"".join(b"%d,x,1\n" % number for number in range(4, 900))

    async def send(run: Running) -> None:
        client = run.mount(1)
        for start in (4096, 0, 8192):
            await client.write(start, new[start : start + 4096], Stable.UNSTABLE)

    async def before(run: Running) -> None:
        await run.mount(1).read()
        await send(run)

    async def after(run: Running) -> None:
        version = run.version
        await run.wait(0.5)
        await send(run)
        client = run.mount(1)
        await run.editor.commit(client.id, run.view)
        await client.getattr()
        await run.wait(20)
        assert (run.shown(), run.version) == (new, version + 1)

    tell(before)
    tell(after)


def test_a_stopped_server_publishes_whole_rows_and_keeps_the_rest(tell: Callable[[Story], None]) -> None:
    async def before(run: Running) -> None:
        client = run.mount(1)
        await client.read()
        await client.append(b"4,n4,34\n5,n")
        await run.editor.drain()
        assert len(run.rows()) == 4

    async def after(run: Running) -> None:
        client = run.mount(1)
        client.cached = START + b"4,n4,34\n5,n"
        await client.append(b"5,35\n")
        await client.getattr()
        assert run.shown() == START + b"4,n4,34\n5,n5,35\n"

    tell(before)
    tell(after)


def test_the_edit_of_a_table_that_is_gone_is_kept_aside(tell: Callable[[Story], None], table: Table) -> None:
    async def before(run: Running) -> None:
        client = run.mount(1)
        await client.read()
        await client.append(b"4,n4,34\n")

    async def after(run: Running) -> None:
        assert run.rejected() == [b"4,n4,34\n"]
        assert "not there any more" in run.last_error()

    tell(before)
    table.drop()
    tell(after)


def test_many_edits_leave_few_names_in_the_table(tell: Callable[[Story], None], table: Table) -> None:
    async def story(run: Running) -> None:
        for number in range(10, 16):
            await run.mount().echo(b"%d,x,1\n" % number)
            await run.wait(61)

    tell(story)
    tell(story)
    actions = [a for v in list_log(table.location).commits for a in read_commit(table.location, v)]
    names = {action["txn"]["appId"] for action in actions if "txn" in action}
    assert len(table.scan().to_pylist()) == 15
    assert len(names) <= 4, json.dumps(sorted(names))


def test_a_steady_writer_goes_on_after_a_wrong_row(tell: Callable[[Story], None]) -> None:
    async def story(run: Running) -> None:
        client = run.mount()
        await client.read()
        await client.append(b"4,n4,34\n")
        await run.wait(0.3)
        good = client.cached
        with pytest.raises(RowError):
            await client.append(b"5,n5,wrong\n")
        await run.wait(3)
        client.cached = good
        await client.append(b"6,n6,36\n")
        await run.wait(0.3)
        assert run.shown() == START + b"4,n4,34\n6,n6,36\n"
        assert run.rejected() == [b"5,n5,wrong\n"]

    tell(story)


def test_the_log_of_a_writer_that_never_closes_does_not_grow_for_ever(
    tell: Callable[[Story], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps, "_LONG_LOG", 1000)

    async def story(run: Running) -> None:
        client = run.mount()
        await client.read()
        most = 0
        for number in range(4, 60):
            await client.append(b"%d,%s,1\n" % (number, b"x" * 50))
            await run.wait(0.3)
            most = max(most, run.editor.spool.used_bytes)
        assert run.shown() == client.cached
        assert most < 3000

    tell(story)


def test_a_full_spool_refuses_and_half_a_file_is_not_published(
    bench: Bench, tell: Callable[[Story], None]
) -> None:
    bench.quota_bytes = 2000

    async def story(run: Running) -> None:
        client = run.mount()
        await client.read()
        await run.editor.truncate(client.id, run.view, 0)
        await client.write(0, b"id,name,age\n7,n7,37\n")
        with pytest.raises(NfsError) as caught:
            await client.write(20, b"8,n8,38\n" * 240)
        assert caught.value.status is Status.NOSPC
        await run.wait(3)
        assert await client.read() == START
        assert run.rejected() == [b"id,name,age\n7,n7,37\n"]
        with pytest.raises(NfsError) as caught:
            await client.write(1 << 40, b"x")
        assert caught.value.status is Status.FBIG

    tell(story)
