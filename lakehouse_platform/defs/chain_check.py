"""The asset check of the audit log: reads all of it and says what was changed, and where."""

from collections import Counter

import dagster as dg

from lakehouse_platform.audit.verify import Problem, Verification
from lakehouse_platform.defs import keys
from lakehouse_platform.defs.failing import RETRY, step_failures
from lakehouse_platform.defs.resources import LakehouseResource

CHAIN_INTACT = "hash_chain_is_intact"
TABLE = "audit_log"
# A log that was replaced has a problem at each entry; what happened shows in the first few and in the counts.
_MOST_LISTED = 50


@dg.asset_check(
    name=CHAIN_INTACT,
    asset=keys.table_key(TABLE),
    description="Every entry is as it was written and in its place, none is missing, and the end is the one that "
    "the newest commit and this machine remember. Reads the whole log, and leaves an entry in it.",
    retry_policy=RETRY,
)
def chain_check(context: dg.AssetCheckExecutionContext, lakehouse: LakehouseResource) -> dg.AssetCheckResult:
    """Verify the audit log through the gate."""
    with step_failures(), lakehouse.open(context.run.run_id) as opened:
        found = opened.audit.verify()
    return dg.AssetCheckResult(
        passed=found.is_whole,
        severity=dg.AssetCheckSeverity.ERROR,
        description=_sentence(found),
        metadata={
            "entries": found.entries,
            "erased_entries": found.erased,
            "delta_version": found.version,
            "head_sequence": found.head_sequence,
            # Kept with each run, outside the lakehouse: with it one can tell later that the log up to here is the same.
            "head_hash": found.head_hash.hex(),
            "problems": len(found.problems),
            "problem_list": _listed(found.problems),
        },
    )


def _sentence(found: Verification) -> str:
    if found.is_whole:
        return f"All {found.entries:,} entries are as they were written."
    counts = Counter(problem.kind.value for problem in found.problems)
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()))
    return f"The audit log was changed ({kinds}); the first place is entry {found.problems[0].sequence}."


def _listed(problems: tuple[Problem, ...]) -> dg.TableMetadataValue:
    records = [
        dg.TableRecord({"sequence": problem.sequence, "kind": problem.kind.value, "message": problem.message})
        for problem in problems[:_MOST_LISTED]
    ]
    schema = dg.TableSchema(
        [dg.TableColumn("sequence", "int"), dg.TableColumn("kind"), dg.TableColumn("message")]
    )
    return dg.MetadataValue.table(records, schema=schema)
