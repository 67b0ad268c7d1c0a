"""When drafts are published, held, refused or given up."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse_platform.nfs.edits.session import Act, Ending, Session, Shape

APPEND = Shape(is_append=True, size=50, ending=Ending.WHOLE, has_rows=True)
BULK = Shape(is_append=True, size=1 << 20, ending=Ending.WHOLE, has_rows=True, added=1 << 20)
PARTIAL = Shape(is_append=True, size=50, ending=Ending.BROKEN)
TAIL = Shape(is_append=True, size=50, ending=Ending.TAIL)
REWRITE = Shape(is_append=False, size=50, ending=Ending.WHOLE)
PREFIX = Shape(is_append=False, size=50, ending=Ending.WHOLE, is_cautious=True)
CUT = Shape(is_append=False, size=50, ending=Ending.TAIL, is_cautious=True, cuts_row=True)
EMPTY = Shape(is_append=False, size=0, ending=Ending.BROKEN)
SHAPES = st.sampled_from([APPEND, PARTIAL, TAIL, REWRITE, PREFIX, CUT, EMPTY])


def written(shape: Shape, now: float = 100.0) -> Session:
    return Session().on_change(shape, now)


@pytest.mark.parametrize(
    ("shape", "quiet", "act"),
    [
        (APPEND, 0.2, Act.PUBLISH_WHOLE_ROWS),
        (TAIL, 1.0, Act.PUBLISH_ALL),
        (PARTIAL, 10.0, Act.REJECT),
        (REWRITE, 0.3, Act.PUBLISH_ALL),
        (PREFIX, 2.0, Act.PUBLISH_ALL),
        (CUT, 10.0, Act.REJECT),
        (EMPTY, 10.0, Act.SHOW_TABLE),
    ],
)
def test_a_quiet_time_ends_each_draft(shape: Shape, quiet: float, act: Act) -> None:
    state = written(shape)
    assert state.due == pytest.approx(100 + quiet)
    assert state.on_time(100 + quiet - 0.01) is Act.NOTHING
    assert state.on_time(100 + quiet + 0.01) is act


@pytest.mark.parametrize(
    ("shape", "act"),
    [
        (APPEND, Act.PUBLISH_ALL),
        (TAIL, Act.PUBLISH_ALL),
        (PARTIAL, Act.NOTHING),
        (REWRITE, Act.HOLD),
        (PREFIX, Act.NOTHING),
        (CUT, Act.NOTHING),
        (EMPTY, Act.NOTHING),
    ],
)
def test_a_close_publishes_what_looks_complete(shape: Shape, act: Act) -> None:
    assert written(shape).on_close(100.1) is act


def test_a_rewrite_without_a_last_line_end_is_complete_unless_it_ends_at_a_page() -> None:
    ends = Shape(is_append=False, size=5000, ending=Ending.TAIL)
    page = Shape(is_append=False, size=8192, ending=Ending.TAIL)
    assert written(ends).on_close(100.1) is Act.HOLD
    assert written(page).on_close(100.1) is Act.NOTHING


def test_a_write_during_the_hold_means_that_it_was_no_close() -> None:
    state = written(REWRITE)
    assert state.on_hold_over(state.changes) is Act.PUBLISH_ALL
    assert state.on_change(REWRITE, 100.01).on_hold_over(state.changes) is Act.NOTHING


def test_a_steady_writer_is_published_every_second() -> None:
    state = written(APPEND)
    for step in range(1, 10):
        state = state.on_change(APPEND, 100 + step * 0.1)
        assert state.on_time(100 + step * 0.1) is Act.NOTHING
    assert state.on_change(APPEND, 101.0).on_time(101.0) is Act.PUBLISH_WHOLE_ROWS


def test_a_big_append_is_not_cut_into_versions_while_it_arrives() -> None:
    state = written(BULK)
    for step in range(1, 250):
        state = state.on_change(BULK, 100 + step * 0.1)
        assert state.on_time(100 + step * 0.1) is Act.NOTHING
    assert state.on_close(124.95) is Act.PUBLISH_ALL
    assert state.on_time(125.2) is Act.NOTHING
    assert state.on_time(126.0) is Act.PUBLISH_WHOLE_ROWS


def test_a_rest_waits_from_its_last_write() -> None:
    state = written(APPEND).on_published(TAIL)
    assert state.due == pytest.approx(101.0)
    assert not written(APPEND).on_published(None).is_open


def test_a_failure_that_may_pass_is_tried_again_for_a_minute() -> None:
    state, now, tries = written(APPEND), 100.2, 0
    while (act := state.on_time(now)) is not Act.REJECT:
        assert act is Act.PUBLISH_WHOLE_ROWS
        assert state.on_close(now) is Act.PUBLISH_ALL
        state = state.on_failed(now)
        assert state.on_close(now) is Act.NOTHING
        assert state.due is not None
        now, tries = state.due, tries + 1
    assert 60 <= now - 100.2 <= 72
    assert 8 <= tries <= 12


def test_a_recovered_rewrite_waits_for_its_client_and_an_append_does_not() -> None:
    assert Session().on_recovered(REWRITE, 100.0).due == pytest.approx(160.0)
    assert Session().on_recovered(APPEND, 100.0).due == pytest.approx(100.2)
    again = Session().on_recovered(REWRITE, 100.0).on_change(REWRITE, 101.0)
    assert again.due == pytest.approx(101.3)


@pytest.mark.parametrize(
    ("shape", "act"),
    [
        (REWRITE, Act.PUBLISH_ALL),
        (replace(REWRITE, is_cautious=True), Act.REJECT),
        (replace(REWRITE, ending=Ending.TAIL, size=8192), Act.REJECT),
        (replace(APPEND, ending=Ending.TAIL, size=8192), Act.PUBLISH_WHOLE_ROWS),
        (replace(APPEND, ending=Ending.TAIL, size=8192, has_rows=False), Act.REJECT),
        (replace(APPEND, ending=Ending.TAIL, size=8193), Act.PUBLISH_ALL),
    ],
)
def test_what_may_be_half_of_a_file_is_not_published_without_a_commit(shape: Shape, act: Act) -> None:
    state = Session().on_change(shape, 100.0, unstable=True)
    assert state.on_time(109.9) is Act.NOTHING
    assert state.on_time(110.0) is act
    assert Session().on_recovered(shape, 100.0, unstable=True).on_time(160.0) is act


def test_a_client_that_is_back_after_a_restart_is_not_waited_for_any_longer() -> None:
    state = Session().on_recovered(PREFIX, 100.0).on_asked(101.0)
    assert state.on_close(101.0) is Act.NOTHING
    assert state.due == pytest.approx(103.0)


@pytest.mark.parametrize(
    ("shape", "closed", "act"),
    [
        (PREFIX, True, Act.PUBLISH_ALL),
        (PREFIX, False, Act.REJECT),
        (CUT, True, Act.REJECT),
        (REWRITE, False, Act.PUBLISH_ALL),
    ],
)
def test_the_beginning_of_a_file_is_published_before_the_next_edit_if_it_was_closed(
    shape: Shape, closed: bool, act: Act
) -> None:
    state = written(shape)
    assert (state.on_asked(100.1) if closed else state).on_settle() is act


def test_a_rewrite_that_was_not_committed_stays_in_the_log_when_the_server_stops() -> None:
    assert Session().on_change(REWRITE, 100.0, unstable=True).on_drain() is Act.NOTHING
    assert Session().on_change(REWRITE, 100.0).on_drain() is Act.PUBLISH_ALL


@given(st.lists(st.tuples(st.floats(0.001, 3), SHAPES), min_size=1, max_size=20))
def test_every_draft_ends_within_ten_seconds_of_its_last_write(steps: list[tuple[float, Shape]]) -> None:
    state, now = Session(), 0.0
    for wait, shape in steps:
        now += wait
        state = state.on_change(shape, now)
        assert state.due is not None
        assert state.due <= now + 10
    assert state.on_time(now + 10.001) is not Act.NOTHING


@given(SHAPES)
def test_what_is_settled_is_published_or_kept_aside_and_never_forgotten(shape: Shape) -> None:
    act = written(shape).on_settle()
    assert act is (Act.SHOW_TABLE if shape.size == 0 else act)
    assert act is not Act.NOTHING
    assert (act is Act.PUBLISH_ALL) == (shape in {APPEND, TAIL, REWRITE})
    assert written(shape).on_drain() in {Act.NOTHING, Act.PUBLISH_WHOLE_ROWS, Act.PUBLISH_ALL}
