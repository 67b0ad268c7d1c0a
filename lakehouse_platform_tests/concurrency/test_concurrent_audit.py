from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lakehouse_platform.audit.heads import RememberedHead
from lakehouse_platform.audit.verify import verify
from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.store.tables import SYSTEM_TABLES
from lakehouse_platform_tests.support.processes import Job, Outcome, run_together


def _failures(told: Sequence[Sequence[Outcome]]) -> list[Outcome]:
    return [outcome for one in told for outcome in one if outcome.error]


def test_processes_on_several_machines_write_one_chain_beside_compaction(
    config: LakehouseConfig, tmp_path: Path, writes: int
) -> None:
    """Two of the three writers share a state directory, as on one machine; maintenance runs beside them."""
    store = DeltaStore(config)
    tables = [store.ensure(SYSTEM_TABLES[name]) for name in ("audit_log", "user_actions")]
    states = [tmp_path / "here", tmp_path / "here", tmp_path / "there"]
    keys = [list(range(number * 100, number * 100 + writes // 3)) for number in range(len(states))]
    jobs = [
        Job("record", {"state": str(state), "keys": own}) for state, own in zip(states, keys, strict=True)
    ]
    *told, compacted = run_together(config, [*jobs, Job("compact", {"name": "audit_log", "times": 3})])
    assert _failures(told) == []
    assert {outcome.error for outcome in compacted} <= {None, "commit_conflict"}
    for table in tables:
        counts = table.scan(["row_count"]).to_arrow().column(0).to_pylist()
        assert sorted(counts) == sorted(number for own in keys for number in own)
    for state in states:
        remembered = RememberedHead(state).read()
        assert remembered is not None
        assert verify(tables[0], remembered).is_whole
