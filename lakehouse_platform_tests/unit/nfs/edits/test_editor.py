"""Edits of a real table by clients that behave like kernels."""

from __future__ import annotations

from collections.abc import Callable, Coroutine

import pytest

from lakehouse_platform.errors import RowError
from lakehouse_platform.nfs.operations import NfsError, Stable, Status
from lakehouse_platform_tests.support.byte_image import ByteContent
from lakehouse_platform_tests.support.editing import PEOPLE_FILE as START
from lakehouse_platform_tests.support.editing import Running

Story = Callable[[Running], Coroutine[None, None, None]]


# ── Appending ─────────────────────────────────────────────────────────────────────────────────────


def test_an_appended_row_is_one_version_when_the_file_is_closed(tell: Callable[[Story], None]) -> None:
    async def story(run: Running) -> None:
        before = run.version
        await run.mount().echo(b"4,n4,34\n")
        assert run.version == before + 1
        assert run.shown() == START + b"4,n4,34\n"

    tell(story)


def test_an_appended_row_is_published_after_a_quiet_time_without_a_close(
    tell: Callable[[Story], None],
) -> None:
    async def story(run: Running) -> None:
        client = run.mount()
        await client.read()
        before = run.version
        await client.append(b"4,n4,34\n")
        await run.wait(0.1)
        assert run.version == before
        await run.wait(0.15)
        assert run.version == before + 1

    tell(story)


def test_two_clients_that_append_at_the_same_end_both_win(tell: Callable[[Story], None]) -> None:
    async def story(run: Running) -> None:
        first, second = run.mount(), run.mount()
        await first.read()
        await second.read()
        await first.append(b"4,n4,34\n")
        await second.append(b"4,n4,34\n")
        await first.getattr()
        await second.getattr()
        assert run.shown() == START + b"4,n4,34\n4,n4,34\n"

    tell(story)


def test_an_append_from_old_pages_keeps_what_others_appended_meanwhile(tell: Callable[[Story], None]) -> None:
    async def story(run: Running) -> None:
        client = run.mount()
        await client.read()
        await run.mount().echo(b"9,n9,39\n")
        await client.getattr()
        await client.append(b"4,n4,34\n")
        await client.getattr()
        assert run.shown() == START + b"9,n9,39\n4,n4,34\n"

    tell(story)


def test_a_change_of_a_row_that_others_appended_is_no_append(tell: Callable[[Story], None]) -> None:
    async def story(run: Running) -> None:
        client = run.mount()
        await client.read()
        await run.mount().echo(b"9,n9,39\n")
        await client.read()
        await client.write(0, client.cached.replace(b"39", b"40"))
        await client.getattr()
        assert run.shown() == START + b"9,n9,40\n"

    tell(story)


def test_an_appended_row_can_be_changed_at_once(tell: Callable[[Story], None]) -> None:
    async def story(run: Running) -> None:
        client = run.mount()
        await client.echo(b"4,n4,34\n")
        await client.getattr()
        await client.write(0, client.cached.replace(b"4,n4,34", b"4,four,34"))
        await client.getattr()
        assert run.shown() == START + b"4,four,34\n"

    tell(story)


def test_a_row_without_its_line_end_has_one_for_whoever_appends_next(tell: Callable[[Story], None]) -> None:
    """As after `printf 4,n4,34 >> data.csv`."""

    async def story(run: Running) -> None:
        client = run.mount()
        await client.echo(b"4,n4,34")
        await client.echo(b"5,n5,35\n")
        assert run.shown() == START + b"4,n4,34\n5,n5,35\n"

    tell(story)


def test_rows_that_are_written_differently_are_understood_where_the_client_goes_on(
    tell: Callable[[Story], None],
) -> None:
    async def story(run: Running) -> None:
        client = run.mount()
        await client.read()
        await client.overwrite(b'id,name,age\n"1","n1",31\n02,"two",32\n')
        await run.wait(0.4)
        assert run.shown() == b"id,name,age\n1,n1,31\n2,two,32\n"
        await client.append(b'"4",n4,34\n', pages=False)
        await run.wait(0.4)
        await client.write(0, client.cached.replace(b'"two"', b'"zwei"'))
        await client.getattr()
        assert run.shown() == b"id,name,age\n1,n1,31\n2,zwei,32\n4,n4,34\n"

    tell(story)


def test_a_commit_is_waited_for_before_a_large_file_is_published(tell: Callable[[Story], None]) -> None:
    async def story(run: Running) -> None:
        client = run.mount()
        await client.read()
        before = run.version
        await client.editor.truncate(client.id, client.view, 0)
        await client.write(0, START[:12] + b"1,one,31\n", Stable.UNSTABLE)
        await client.getattr()
        await run.wait(3)
        await client.write(21, b"2,two,32\n", Stable.UNSTABLE)
        assert run.version == before
        await client.editor.commit(client.id, client.view)
        await client.getattr()
        assert run.version == before + 1
        assert run.shown() == b"id,name,age\n1,one,31\n2,two,32\n"

    tell(story)


def test_a_writer_that_keeps_the_file_open_is_published_row_by_row(tell: Callable[[Story], None]) -> None:
    async def story(run: Running) -> None:
        client = run.mount()
        await client.read()
        for number in range(4, 9):
            await client.append(b"%d,x,1\n" % number)
            await run.wait(0.3)
        await client.append(b"9,x")
        await run.wait(0.3)
        await client.append(b"yz,1\n")
        await client.getattr()
        assert run.shown() == START + b"".join(b"%d,x,1\n" % n for n in range(4, 9)) + b"9,xyz,1\n"

    tell(story)


def test_whole_rows_are_published_while_the_beginning_of_another_waits(
    tell: Callable[[Story], None],
) -> None:
    async def story(run: Running) -> None:
        client = run.mount()
        await client.read()
        await client.append(b"4,n4,34\n5,n")
        await run.wait(0.25)
        assert run.shown() == START + b"4,n4,34\n"
        await client.append(b"5,35\n")
        await run.wait(0.25)
        assert run.shown() == START + b"4,n4,34\n5,n5,35\n"

    tell(story)


def test_a_wrong_row_fails_its_write_and_is_kept_aside(tell: Callable[[Story], None]) -> None:
    async def story(run: Running) -> None:
        client = run.mount()
        await client.read()
        before = run.version
        with pytest.raises(RowError, match="Line 5"):
            await client.append(b"4,n4,old\n")
        assert run.version == before
        assert run.rejected() == [b"4,n4,old\n"]
        assert "Line 5" in run.last_error()
        assert await client.read() == START
        await client.echo(b"4,n4,34\n")
        assert run.shown() == START + b"4,n4,34\n"

    tell(story)


def test_the_rest_of_a_refused_file_is_refused_too(tell: Callable[[Story], None]) -> None:
    async def story(run: Running) -> None:
        client = run.mount()
        await client.read()
        await client.editor.truncate(client.id, client.view, 0)
        await client.write(0, b"id,name,age\n", Stable.UNSTABLE)
        with pytest.raises(RowError):
            await client.write(12, b"1,n1,x\n", Stable.UNSTABLE)
        with pytest.raises(RowError):
            await client.write(19, b"2,n2,32\n", Stable.UNSTABLE)
        with pytest.raises(NfsError) as caught:
            await client.editor.commit(client.id, client.view)
        assert caught.value.status is Status.IO
        assert await client.read() == START
        assert run.rejected() == [b"id,name,age\n1,n1,x\n2,n2,32\n"]

    tell(story)


# ── Overwriting ───────────────────────────────────────────────────────────────────────────────────


def test_an_overwrite_is_one_version_when_the_file_is_closed(tell: Callable[[Story], None]) -> None:
    async def story(run: Running) -> None:
        client = run.mount()
        await client.read()
        before = run.version
        await client.overwrite(START.replace(b"n2", b"two"))
        assert run.version == before
        assert await run.mount().read() == START
        await client.getattr()
        assert run.version == before + 1
        assert run.shown() == START.replace(b"n2", b"two")

    tell(story)


def test_a_patch_in_place_is_one_version(tell: Callable[[Story], None]) -> None:
    async def story(run: Running) -> None:
        client = run.mount()
        await client.read()
        for text in (b"n9", b"n2", b"n9", b"n2"):
            before = run.version
            await client.write(0, START.replace(b"n2", text))
            await client.getattr()
            assert run.shown() == START.replace(b"n2", text)
            assert run.version == before + (text == b"n9" or before > 1)

    tell(story)


def test_a_patch_without_any_sign_of_the_close_can_be_undone_by_another(
    tell: Callable[[Story], None],
) -> None:
    async def story(run: Running) -> None:
        client = run.mount()
        await client.read()
        for text in (b"n9", b"n2", b"n9"):
            await client.write(0, START.replace(b"n2", text))
            await run.wait(0.5)
            assert run.shown() == START.replace(b"n2", text)

    tell(story)


def test_a_file_with_only_the_header_deletes_all_rows_after_two_seconds(
    tell: Callable[[Story], None],
) -> None:
    async def story(run: Running) -> None:
        client = run.mount()
        await client.read()
        await client.overwrite(b"id,name,age\n")
        await client.getattr()
        await run.wait(1.0)
        assert len(run.rows()) == 3
        await run.wait(1.1)
        assert run.rows() == []

    tell(story)


def test_an_emptied_file_changes_nothing_and_shows_the_table_again(tell: Callable[[Story], None]) -> None:
    async def story(run: Running) -> None:
        client = run.mount()
        await client.read()
        await client.overwrite(b"")
        assert await client.getattr() == 0
        await run.wait(10.1)
        assert await client.read() == START
        assert "emptied" in run.last_error()

    tell(story)


def test_a_tool_that_looks_at_its_output_first_makes_no_harm(tell: Callable[[Story], None]) -> None:
    async def story(run: Running) -> None:
        client = run.mount()
        await client.read()
        await client.overwrite(b"id,name,age\n1,n1,31\n")
        await client.getattr()
        assert len(run.rows()) == 3
        client.cached += b"7,n7,37\n"
        await client.write(0, client.cached)
        await client.getattr()
        assert run.shown() == b"id,name,age\n1,n1,31\n7,n7,37\n"

    tell(story)


def test_a_wrong_guess_of_a_close_costs_a_version_but_no_row(tell: Callable[[Story], None]) -> None:
    async def story(run: Running) -> None:
        client = run.mount()
        await client.read()
        await client.overwrite(b"id,name,age\n1,n1,31\n8,n8,38\n")
        await run.wait(0.4)
        client.cached += b"9,n9,39\n"
        await client.write(0, client.cached)
        await client.getattr()
        assert run.shown() == b"id,name,age\n1,n1,31\n8,n8,38\n9,n9,39\n"

    tell(story)


def test_unstable_writes_may_come_in_any_order(tell: Callable[[Story], None]) -> None:
    content = b"id,name,age\n" + b"".join(b"%d,name%d,1\n" % (n, n) for n in range(1000))

    async def story(run: Running) -> None:
        client = run.mount()
        await client.read()
        await client.editor.truncate(client.id, client.view, 0)
        for start in (8192, 0, 12288, 4096):
            await client.write(start, content[start : start + 4096], Stable.UNSTABLE)
        await client.editor.commit(client.id, client.view)
        await client.getattr()
        assert run.shown() == content

    tell(story)


def test_a_conflict_is_told_by_the_next_write(tell: Callable[[Story], None]) -> None:
    async def story(run: Running) -> None:
        client = run.mount()
        await client.read()
        await client.overwrite(START.replace(b"n2", b"two"))
        run.view.table.update({"name": "'zwei'"}, "id = 2")
        await client.getattr()
        assert START.replace(b"n2", b"zwei") == run.shown()
        assert run.rejected() == [START.replace(b"n2", b"two")]
        with pytest.raises(NfsError):
            await client.append(b"4,n4,34\n")
        await client.getattr()
        await client.echo(b"5,n5,35\n")
        assert len(run.rows()) == 4

    tell(story)


def test_a_cut_at_a_row_removes_the_rest_and_elsewhere_is_refused(tell: Callable[[Story], None]) -> None:
    async def story(run: Running) -> None:
        client = run.mount()
        await client.read()
        for size in (len(START) - 3, len(START) + 1):
            with pytest.raises(NfsError) as caught:
                await client.editor.truncate(client.id, client.view, size)
            assert caught.value.status is Status.INVAL
        await client.editor.truncate(client.id, client.view, len(START) - 8)
        await run.wait(2.1)
        assert run.shown() == START[:-8]

    tell(story)


@pytest.mark.parametrize("is_open", [False, True])
def test_a_cut_at_a_line_end_inside_of_a_value_is_refused(
    tell: Callable[[Story], None], is_open: bool
) -> None:
    async def story(run: Running) -> None:
        run.view.table.append([{"id": 4, "name": "two\nlines", "age": 34}])
        client = run.mount()
        size = len(await client.read()) - len(b'lines",34\n')
        if is_open:
            await client.write(len(b"id,name,age\n1,"), b"x")
        with pytest.raises(NfsError) as caught:
            await client.editor.truncate(client.id, client.view, size)
        assert caught.value.status is Status.INVAL
        await client.editor.truncate(client.id, client.view, size - len(b'4,"two\n'))
        await run.wait(2.1)
        assert run.shown() == (START.replace(b"n1", b"x1") if is_open else START)

    tell(story)


def test_a_file_written_shorter_and_then_cut_is_one_version(tell: Callable[[Story], None]) -> None:
    """A kernel sends the whole page, whose end is still the old one, before it cuts the file: Python's `r+`."""

    async def story(run: Running) -> None:
        client = run.mount()
        await client.read()
        before, shorter = run.version, START.replace(b"2,n2,32\n", b"")
        await client.write(0, shorter + START[len(shorter) :])
        await client.editor.truncate(client.id, client.view, len(shorter))
        await client.getattr()
        assert run.shown() == shorter
        assert run.version == before + 1

    tell(story)


def test_a_cut_is_not_undone_by_the_refusal_of_the_next_overwrite(tell: Callable[[Story], None]) -> None:
    async def story(run: Running) -> None:
        client = run.mount()
        await client.read()
        shorter = START[: START.index(b"3,n3")]
        await client.editor.truncate(client.id, client.view, len(shorter))
        await client.getattr()
        with pytest.raises(RowError):
            await client.overwrite(START + b"4,n4,old\n")
        assert run.shown() == shorter

    tell(story)


def test_a_copy_that_was_broken_off_can_be_made_again_at_once(tell: Callable[[Story], None]) -> None:
    async def story(run: Running) -> None:
        client = run.mount()
        await client.read()
        before, new = run.version, START.replace(b"n1", b"one")
        await client.overwrite(new[:22])
        await client.getattr()
        await client.overwrite(new)
        await client.getattr()
        assert (run.version, run.shown()) == (before + 1, new)

    tell(story)


def test_a_file_rewritten_in_place_keeps_rows_that_its_writer_was_only_told_of(
    tell: Callable[[Story], None],
) -> None:
    """As `rsync --inplace` and programs do that open the file with `r+`."""

    async def story(run: Running) -> None:
        first, second = run.mount(), run.mount()
        await first.read()
        await second.echo(b"4,n4,34\n")
        await first.getattr()
        before, shorter = run.version, START.replace(b"2,n2,32\n", b"")
        await first.write(0, shorter)
        await first.editor.truncate(first.id, first.view, len(shorter))
        await first.getattr()
        await run.wait(2.5)
        assert run.version == before + 1
        assert run.shown() == shorter + b"4,n4,34\n"

    tell(story)


def test_a_replacement_is_refused_with_the_line_of_its_wrong_row(tell: Callable[[Story], None]) -> None:
    async def story(run: Running) -> None:
        client = run.mount()
        await client.read()
        before = run.version
        with pytest.raises(RowError) as caught:
            await client.editor.replace(client.id, client.view, ByteContent(START + b"4,n4,old\n"))
        assert (caught.value.line, caught.value.column, run.version) == (5, "age", before)

    tell(story)
