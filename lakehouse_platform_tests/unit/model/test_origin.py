from __future__ import annotations

from lakehouse_platform.model.origin import Door, Origin


def test_the_owner_of_the_files_acts_when_nobody_is_named() -> None:
    assert Origin().commit_metadata() == {"lakehouse.actor": "owner", "lakehouse.door": "python"}


def test_everything_that_is_known_is_stamped_into_the_commit() -> None:
    origin = Origin(actor="u1", door=Door.DAGSTER, reason="weekly vacuum", run_id="r7")
    assert origin.commit_metadata() == {
        "lakehouse.actor": "u1",
        "lakehouse.door": "dagster",
        "lakehouse.reason": "weekly vacuum",
        "lakehouse.runId": "r7",
    }


def test_another_reason_leaves_the_rest_as_it_was() -> None:
    origin = Origin(actor="u1", door=Door.CLI)
    assert origin.because("fix") == Origin(actor="u1", door=Door.CLI, reason="fix")
    assert origin.reason is None
