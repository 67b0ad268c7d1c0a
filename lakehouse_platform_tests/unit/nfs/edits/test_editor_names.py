"""Edits of a real table that take its name away, break its key, or were found by random sequences."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine

import pytest

from lakehouse_platform.errors import CommitConflictError, DuplicateKeyError, LakehouseError, RowError
from lakehouse_platform.nfs.operations import NfsError, Status
from lakehouse_platform.store.table import Table
from lakehouse_platform_tests.support.editing import PEOPLE_FILE as START
from lakehouse_platform_tests.support.editing import Mount, Running

Story = Callable[[Running], Coroutine[None, None, None]]


# ── Names ─────────────────────────────────────────────────────────────────────────────────────────


class Text:
    def __init__(self, data: bytes) -> None:
        self.data, self.size = data, len(data)

    def read(self, offset: int, count: int) -> list[bytes]:
        return [self.data[offset : offset + count]]


def test_a_file_renamed_over_the_view_is_published_at_once(tell: Callable[[Story], None]) -> None:
    async def story(run: Running) -> None:
        client = run.mount()
        await client.read()
        before = run.version
        await run.editor.replace(client.id, run.view, Text(START.replace(b"n3", b"three")))
        assert (run.version, run.shown()) == (before + 1, START.replace(b"n3", b"three"))
        with pytest.raises(LakehouseError):
            await run.editor.replace(client.id, run.view, Text(b"nonsense"))
        assert run.rejected() == [b"nonsense"]

    tell(story)


def test_a_replacement_keeps_what_its_maker_had_not_read(tell: Callable[[Story], None]) -> None:
    async def story(run: Running) -> None:
        client = run.mount()
        await client.read()
        await run.mount().echo(b"4,n4,34\n")
        await client.getattr()
        await run.editor.replace(client.id, run.view, Text(START.replace(b"n3", b"three")))
        assert run.shown() == START.replace(b"n3", b"three") + b"4,n4,34\n"

    tell(story)


@pytest.mark.parametrize("renames", [False, True])
def test_a_file_in_the_place_of_what_another_removed_counts_from_what_its_maker_had_read(
    tell: Callable[[Story], None], renames: bool
) -> None:
    async def story(run: Running) -> None:
        first, second = run.mount(), run.mount()
        await second.read()
        await first.overwrite((await first.read()).replace(b"n1", b"one"))
        await first.getattr()
        await run.editor.remove(first.id, run.view)
        new = START.replace(b"n3", b"three")
        if renames:
            await run.editor.replace(second.id, run.view, Text(new))
        else:
            await run.editor.create(second.id, run.view)
            await second.write(0, new)
            await second.getattr()
        await run.wait(2)
        assert run.shown() == new.replace(b"n1", b"one")

    tell(story)


def test_what_its_own_edit_added_is_known_to_a_client_whose_removal_another_undid(
    tell: Callable[[Story], None],
) -> None:
    async def story(run: Running) -> None:
        first, second = run.mount(), run.mount()
        await second.read()
        await first.read()
        await first.append(b"4,n4,34\n")
        await run.editor.close_signal(first.id, run.view)
        await run.editor.remove(first.id, run.view)
        await run.editor.replace(second.id, run.view, Text(START))
        await run.editor.create(first.id, run.view)
        await first.write(0, START + b"4,four,34\n")
        await first.getattr()
        assert run.shown() == START + b"4,four,34\n"

    tell(story)


async def _overwritten(run: Running, client: Mount, new: bytes) -> None:
    await client.overwrite(new)
    await client.getattr()


async def _renamed_over(run: Running, client: Mount, new: bytes) -> None:
    await run.editor.replace(client.id, run.view, Text(new))


async def _removed_and_made(run: Running, client: Mount, new: bytes) -> None:
    await run.editor.remove(client.id, run.view)
    await run.editor.create(client.id, run.view)
    await client.write(0, new)
    await client.getattr()


async def _moved_and_made(run: Running, client: Mount, new: bytes) -> None:
    await run.editor.rename_away(client.id, run.view)
    await run.editor.create(client.id, run.view)
    await client.write(0, new)
    await client.getattr()


Saving = Callable[[Running, Mount, bytes], Coroutine[None, None, None]]
SAVINGS = [_overwritten, _renamed_over, _removed_and_made, _moved_and_made]


@pytest.mark.parametrize("saved", SAVINGS)
@pytest.mark.parametrize("after_own_edit", [False, True])
def test_whatever_way_a_file_is_saved_it_is_compared_with_what_its_maker_saw(
    tell: Callable[[Story], None], saved: Saving, after_own_edit: bool
) -> None:
    async def story(run: Running) -> None:
        client = run.mount()
        seen = await client.read()
        if after_own_edit:
            seen = seen.replace(b"n1", b"one")
            await saved(run, client, seen)
        await run.mount().echo(b"4,n4,34\n")
        await client.getattr()
        before = run.version
        new = seen.replace(b"n3", b"three")
        await saved(run, client, new)
        assert (run.shown(), run.version) == (new + b"4,n4,34\n", before + 1)

    tell(story)


@pytest.mark.parametrize("saved", SAVINGS)
def test_whatever_way_a_file_is_saved_a_row_that_others_changed_is_a_conflict(
    tell: Callable[[Story], None], saved: Saving
) -> None:
    async def story(run: Running) -> None:
        client = run.mount()
        new = (await client.read()).replace(b"n3", b"three")
        run.view.table.update({"name": "'drei'"}, "id = 3")
        await client.getattr()
        with contextlib.suppress(CommitConflictError):
            await saved(run, client, new)
        assert run.shown() == START.replace(b"n3", b"drei")
        assert run.rejected() == [new]

    tell(story)


def test_a_removed_file_that_does_not_come_back_deletes_all_rows(tell: Callable[[Story], None]) -> None:
    async def story(run: Running) -> None:
        client = run.mount()
        await client.read()
        await run.editor.remove(client.id, run.view)
        assert run.editor.is_hole(b"other", run.view.key)
        assert len(run.rows()) == 3
        before = run.version
        await run.wait(1.1)
        assert (run.rows(), run.version) == ([], before + 1)
        assert not run.editor.is_hole(b"other", run.view.key)

    tell(story)


def test_a_removed_file_that_is_made_again_is_an_overwrite(tell: Callable[[Story], None]) -> None:
    async def story(run: Running) -> None:
        client = run.mount()
        await client.read()
        before = run.version
        await run.editor.remove(client.id, run.view)
        await run.editor.create(client.id, run.view)
        await client.write(0, START.replace(b"n1", b"one"))
        await client.getattr()
        await run.wait(1.1)
        assert (run.version, run.shown()) == (before + 1, START.replace(b"n1", b"one"))

    tell(story)


def test_a_file_moved_away_and_not_replaced_is_shown_again(tell: Callable[[Story], None]) -> None:
    async def story(run: Running) -> None:
        client = run.mount()
        await client.read()
        image = await run.editor.rename_away(client.id, run.view)
        assert image.size == len(START)
        await run.wait(10.1)
        assert not run.editor.is_hole(client.id, run.view.key)
        assert await client.read() == START
        await run.editor.rename_away(client.id, run.view)
        await run.editor.rename_back(client.id, run.view)
        assert await client.read() == START

    tell(story)


# ── Keys ──────────────────────────────────────────────────────────────────────────────────────────


def test_an_appended_row_with_a_known_key_fails_its_write(
    tell: Callable[[Story], None], table: Table
) -> None:
    table.set_primary_key(["id"])

    async def story(run: Running) -> None:
        client = run.mount()
        await client.read()
        with pytest.raises(DuplicateKeyError):
            await client.append(b"2,n2,32\n")
        await client.getattr()
        with pytest.raises(RowError, match="twice"):
            await client.overwrite(START + b"2,n2,32\n")
        assert await client.read() == START

    tell(story)


# ── What random sequences have found ──────────────────────────────────────────────────────────────


def test_a_row_that_was_read_and_then_changed_is_not_appended_to_what_the_client_wrote_before(
    tell: Callable[[Story], None],
) -> None:
    async def story(run: Running) -> None:
        client = run.mount()
        await client.echo(b"4,n4,34\n")
        await run.mount().echo(b"5,n5,35\n")
        await client.read()
        await client.write(0, START + b"4,n4,34\n5,n5,99\n")
        await client.getattr()
        assert run.shown() == START + b"4,n4,34\n5,n5,99\n"

    tell(story)


@pytest.mark.parametrize("second", ["remove", "rename_away"])
def test_of_two_clients_that_take_the_name_away_at_once_one_is_told_that_it_is_gone(
    tell: Callable[[Story], None], second: str
) -> None:
    async def story(run: Running) -> None:
        one, other = run.mount(), run.mount()
        results = await asyncio.gather(
            one.editor.remove(one.id, one.view),
            getattr(other.editor, second)(other.id, other.view),
            return_exceptions=True,
        )
        refused = [error for error in results if isinstance(error, NfsError)]
        assert [error.status for error in refused] == [Status.NOENT]

    tell(story)


def test_a_removed_file_that_two_clients_make_again_at_once_is_theirs_one_after_the_other(
    tell: Callable[[Story], None],
) -> None:
    async def story(run: Running) -> None:
        one, other = run.mount(), run.mount()
        await one.read()
        await one.editor.remove(one.id, one.view)
        await asyncio.gather(*(client.editor.create(client.id, client.view) for client in (one, other)))
        await one.write(0, START + b"4,n4,34\n")
        await one.getattr()
        await other.write(0, START + b"5,n5,35\n")
        await other.getattr()
        assert run.shown() == START + b"4,n4,34\n5,n5,35\n"

    tell(story)


def test_an_overwrite_that_is_refused_for_an_error_of_before_does_not_leave_the_file_empty(
    tell: Callable[[Story], None],
) -> None:
    async def story(run: Running) -> None:
        client, other = run.mount(), run.mount()
        await client.read()
        await other.read()
        await other.overwrite(START.replace(b"1,n1", b"1,other"))
        await other.getattr()
        await client.overwrite(START.replace(b"1,n1", b"1,mine"))
        await client.getattr()
        with pytest.raises(NfsError):
            await client.overwrite(START)
        assert await client.read() == START.replace(b"1,n1", b"1,other")

    tell(story)


def test_a_file_that_another_client_removed_is_not_taken_for_moved_away(
    tell: Callable[[Story], None],
) -> None:
    async def story(run: Running) -> None:
        client, other = run.mount(), run.mount()
        await other.editor.remove(other.id, other.view)
        assert not client.editor.has_moved(client.id, client.view.key)
        assert not other.editor.has_moved(other.id, other.view.key)
        await other.editor.rename_back(other.id, other.view)
        await client.editor.rename_away(client.id, client.view)
        assert client.editor.has_moved(client.id, client.view.key)

    tell(story)
