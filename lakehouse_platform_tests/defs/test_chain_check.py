"""The audit log is verified as an asset check, which tells what was changed and where."""

from collections.abc import Callable

import dagster as dg

from lakehouse_platform.audit.entries import AuditEntry
from lakehouse_platform.model.actions import ActionType
from lakehouse_platform.services.auditing import AuditActor
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform_tests.support.tampering import rewrite_rows

BuildDefs = Callable[[], dg.Definitions]


def evaluate(definitions: dg.Definitions) -> tuple[dg.AssetCheckEvaluation, str]:
    """Run the check and nothing else; return what it found and the run's id."""
    key = dg.AssetCheckKey(dg.AssetKey(["lakehouse", "audit_log"]), "hash_chain_is_intact")
    job = dg.define_asset_job("check", selection=dg.AssetSelection.checks(key))
    resolved = dg.Definitions(
        assets=definitions.assets,
        asset_checks=definitions.asset_checks,
        jobs=[job],
        resources=definitions.resources,
    ).resolve_job_def("check")
    result = resolved.execute_in_process(raise_on_error=False)
    (evaluation,) = result.get_asset_check_evaluations()
    return evaluation, result.run_id


def with_entries(store: DeltaStore, count: int) -> None:
    with AuditActor(store) as audit:
        for number in range(count):
            audit.log(AuditEntry(action=ActionType.DATA_READ, user_id="u", row_count=number))


def test_a_log_as_it_was_written_passes_and_tells_its_end(defs: BuildDefs, system_store: DeltaStore) -> None:
    with_entries(system_store, 3)
    evaluation, _ = evaluate(defs())
    figures = {name: value.value for name, value in evaluation.metadata.items()}

    assert evaluation.passed
    assert evaluation.description == "All 3 entries are as they were written."
    assert (figures["entries"], figures["head_sequence"], figures["problems"]) == (3, 3, 0)
    assert figures["head_hash"] == _hash_of(system_store, 3)


def test_the_verification_is_in_the_log_itself_with_the_run(
    defs: BuildDefs, system_store: DeltaStore
) -> None:
    with_entries(system_store, 1)
    _, run_id = evaluate(defs())
    with AuditActor(system_store) as audit:
        newest = audit.search(after=1)

    assert [(one.details, one.door, one.request_id, one.row_count) for one in newest] == [
        ("verification", "dagster", run_id, 1)
    ]


def test_an_entry_that_was_changed_is_an_error_that_names_its_place(
    defs: BuildDefs, system_store: DeltaStore
) -> None:
    with_entries(system_store, 4)
    rewrite_rows(
        system_store.table("audit_log"),
        lambda rows: [{**row, "row_count": 7} if row["sequence"] == 2 else row for row in rows],
    )
    evaluation, _ = evaluate(defs())

    assert not evaluation.passed
    assert evaluation.severity is dg.AssetCheckSeverity.ERROR
    assert "the first place is entry 2" in (evaluation.description or "")
    assert problems(evaluation)[0]["kind"] == "altered"


def test_a_removed_entry_is_an_error(defs: BuildDefs, system_store: DeltaStore) -> None:
    with_entries(system_store, 4)
    rewrite_rows(system_store.table("audit_log"), lambda rows: [row for row in rows if row["sequence"] != 3])
    evaluation, _ = evaluate(defs())

    assert not evaluation.passed
    assert "missing" in (evaluation.description or "")


def test_a_lakehouse_without_a_log_has_nothing_that_was_changed(defs: BuildDefs, store: DeltaStore) -> None:
    evaluation, _ = evaluate(defs())

    assert evaluation.passed
    assert evaluation.metadata["entries"].value == 0
    assert store.scan("audit_log").to_arrow().num_rows == 1


def problems(evaluation: dg.AssetCheckEvaluation) -> list[dict[str, object]]:
    listed = evaluation.metadata["problem_list"]
    assert isinstance(listed, dg.TableMetadataValue)
    return [dict(record.data) for record in listed.records]


def _hash_of(store: DeltaStore, sequence: int) -> str:
    return store.scan("audit_log", ["entry_hash"], f"sequence = {sequence}").to_pylist()[0]["entry_hash"]
