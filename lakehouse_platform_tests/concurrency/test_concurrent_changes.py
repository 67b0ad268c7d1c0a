from __future__ import annotations

from collections.abc import Iterable

from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform_tests.support.processes import Job, Outcome, run_together
from lakehouse_platform_tests.support.tables import ids, people, rows

_OLD = list(range(-20, 0))


def test_appends_beside_deletes(config: LakehouseConfig, store: DeltaStore, writes: int) -> None:
    store.append("people", people(*_OLD))
    appended, deleted = run_together(
        config, [_append(writes), Job("delete", {"name": "people", "keys": _OLD[:8]})]
    )
    _only_conflicts(appended + deleted)
    gone = set(_done(deleted))
    assert ids(store, "people") == sorted([key for key in _OLD if key not in gone] + _done(appended))


def test_appends_beside_merges(config: LakehouseConfig, store: DeltaStore, writes: int) -> None:
    store.append("people", people(*_OLD))
    merged_keys = [*_OLD[:4], *range(1_000, 1_004)]
    appended, merged = run_together(
        config, [_append(writes), Job("merge", {"name": "people", "keys": merged_keys})]
    )
    _only_conflicts(appended + merged)
    expected = dict.fromkeys(_OLD + _done(appended), 30) | {key: key for key in _done(merged)}
    assert {row["id"]: row["age"] for row in rows(store, "people")} == expected
    assert len(rows(store, "people")) == len(expected)


def test_appends_beside_compaction_and_vacuum(
    config: LakehouseConfig, store: DeltaStore, writes: int
) -> None:
    store.append("people", people(*_OLD))
    jobs = [_append(writes), Job("compact_and_vacuum", {"name": "people", "times": 4})]
    appended, cleaned = run_together(config, jobs)
    _only_conflicts(appended + cleaned)
    assert ids(store, "people") == sorted(_OLD + _done(appended))


def test_no_update_is_lost(config: LakehouseConfig, store: DeltaStore, writes: int) -> None:
    store.append("people", people(1, age=0))
    told = run_together(config, [Job("increment", {"name": "people", "times": writes // 4})] * 3)
    outcomes = [outcome for each in told for outcome in each]
    _only_conflicts(outcomes)
    assert (
        rows(store, "people")[0]["age"] == len([outcome for outcome in outcomes if outcome.error is None]) > 0
    )


def test_deletes_merges_and_appends_all_at_once(
    config: LakehouseConfig, store: DeltaStore, writes: int
) -> None:
    store.append("people", people(*_OLD))
    appended, deleted, merged, compacted = run_together(
        config,
        [
            _append(writes),
            Job("delete", {"name": "people", "keys": _OLD[:5]}),
            Job("merge", {"name": "people", "keys": list(range(1_000, 1_005))}),
            Job("compact", {"name": "people", "times": 3}),
        ],
    )
    _only_conflicts(appended + deleted + merged + compacted)
    gone = set(_done(deleted))
    kept = [key for key in _OLD if key not in gone]
    assert ids(store, "people") == sorted(kept + _done(appended) + _done(merged))


def test_of_many_that_create_a_table_one_wins(config: LakehouseConfig) -> None:
    told = run_together(config, [Job("create", {"name": "t", "column": f"c{n}"}) for n in range(4)])
    errors = [outcomes[0].error for outcomes in told]
    assert sorted(errors, key=str) == sorted([None, *["table_exists"] * 3], key=str)
    winner = errors.index(None)
    assert DeltaStore(config).table("t").arrow_schema().names == [f"c{winner}"]


def test_many_may_ensure_a_table_at_once(config: LakehouseConfig) -> None:
    told = run_together(config, [Job("ensure", {"name": "t"})] * 4)
    assert [outcomes[0].error for outcomes in told] == [None] * 4
    assert DeltaStore(config).table("t").version() == 0


def _append(writes: int) -> Job:
    return Job("append", {"name": "people", "keys": list(range(writes))})


def _done(outcomes: Iterable[Outcome]) -> list[int]:
    return [outcome.key for outcome in outcomes if outcome.error is None]


def _only_conflicts(outcomes: Iterable[Outcome]) -> None:
    assert {outcome.error for outcome in outcomes} <= {None, "commit_conflict"}
