from dataclasses import fields
from typing import Any

import pytest

from lakehouse_platform.api import results
from lakehouse_platform.api.views import View
from lakehouse_platform.model import results as model


@pytest.mark.parametrize(
    ("view", "record"),
    [
        (results.WrittenView, model.Written),
        (results.DeletedView, model.DeleteResult),
        (results.UpdatedView, model.UpdateResult),
        (results.MergedView, model.MergeResult),
        (results.TableView, model.TableInfo),
        (results.ColumnView, model.ColumnInfo),
        (results.SkippingView, model.SkippingStats),
        (results.OptimizedView, model.OptimizeResult),
        (results.VacuumedView, model.VacuumResult),
    ],
)
def test_a_view_has_every_field_of_its_record(view: type[View], record: Any) -> None:
    assert set(view.model_fields) == {field.name for field in fields(record)}


def test_a_commit_is_shown_with_its_time_in_milliseconds() -> None:
    assert set(results.CommitView.model_fields) == {field.name for field in fields(model.VersionInfo)} | {
        "timestamp_ms"
    }


def test_a_result_is_shown_field_by_field() -> None:
    done = model.MergeResult(version=3, rows_inserted=1, rows_updated=2, rows_deleted=0)
    assert results.MergedView.model_validate(done).model_dump() == {
        "version": 3,
        "rows_inserted": 1,
        "rows_updated": 2,
        "rows_deleted": 0,
    }
