from __future__ import annotations

from collections import Counter

import pytest

from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform_tests.campaigns.appends import append_from_many
from lakehouse_platform_tests.support.processes import Job, run_together
from lakehouse_platform_tests.support.tables import ids


def test_appends_from_many_processes_lose_and_double_nothing(
    config: LakehouseConfig, store: DeltaStore, writes: int
) -> None:
    # On disk just more commits than lie between two checkpoints; `campaigns/appends.py` makes many more.
    processes, appends = (8, 13) if writes > 10 else (4, writes)
    campaign = append_from_many(store, "people", processes=processes, appends=appends)
    assert campaign.failures == []
    assert campaign.problems == []
    assert ids(store, "people") == list(range(processes * appends))


def test_appends_beside_compaction_lose_nothing(
    config: LakehouseConfig, store: DeltaStore, writes: int
) -> None:
    jobs = [
        Job("append", {"name": "people", "keys": list(range(n * 100, n * 100 + writes))}) for n in range(2)
    ]
    *appended, compacted = run_together(
        config, [*jobs, Job("compact", {"name": "people", "times": writes // 4})]
    )
    assert {outcome.error for outcome in compacted} <= {None, "commit_conflict"}
    assert [outcome for told in appended for outcome in told if outcome.error] == []
    assert ids(store, "people") == sorted(outcome.key for told in appended for outcome in told)


def test_readers_beside_appends_compaction_and_vacuum_see_only_whole_versions(
    config: LakehouseConfig, store: DeltaStore, writes: int
) -> None:
    store.append("people", [{"id": -1, "name": "first", "age": 0}])
    appended, cleaned, seen = run_together(
        config,
        [
            Job("append", {"name": "people", "keys": list(range(writes))}),
            Job("compact_and_vacuum", {"name": "people", "times": writes // 4}),
            Job("count", {"name": "people", "times": writes}),
        ],
    )
    assert {outcome.error for outcome in cleaned} <= {None, "commit_conflict"}
    assert {outcome.error for outcome in seen} <= {None, "data_files_missing"}
    counts = [outcome.value for outcome in seen if outcome.value is not None]
    assert counts == sorted(counts)
    assert ids(store, "people") == [-1, *sorted(o.key for o in appended if o.error is None)]
    assert [outcome for outcome in appended if outcome.error] == []


@pytest.mark.parametrize("processes", [4])
def test_of_appends_with_one_key_one_wins_and_the_others_are_told(
    config: LakehouseConfig, store: DeltaStore, processes: int, writes: int
) -> None:
    store.table("people").set_primary_key(["id"])
    keys = list(range(writes // 2))
    told = run_together(config, [Job("append_shuffled", {"name": "people", "keys": keys})] * processes)
    winners = Counter(outcome.key for outcomes in told for outcome in outcomes if outcome.error is None)
    errors = {outcome.error for outcomes in told for outcome in outcomes if outcome.error}
    assert winners == dict.fromkeys(keys, 1)
    assert errors == {"duplicate_key"}
    assert ids(store, "people") == keys
