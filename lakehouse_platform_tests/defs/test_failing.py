"""Which of our errors end a step for good, and which are worth another try."""

import dagster as dg
import pytest

from lakehouse_platform.defs.failing import step_failures
from lakehouse_platform.errors import (
    CommitConflictError,
    InvalidNameError,
    LakehouseError,
    StorageUnavailableError,
    TableNotFoundError,
)


@pytest.mark.parametrize(
    ("error", "retried"),
    [
        (CommitConflictError, True),
        (StorageUnavailableError, True),
        (TableNotFoundError, False),
        (InvalidNameError, False),
    ],
)
def test_only_errors_that_time_may_heal_are_retried(error: type[LakehouseError], retried: bool) -> None:
    with pytest.raises(dg.Failure) as caught, step_failures():
        raise error("what to do")

    assert caught.value.allow_retries is retried
    assert caught.value.description == "what to do"
    assert caught.value.metadata["error_code"].value == error.code


def test_other_exceptions_pass_unchanged() -> None:
    with pytest.raises(ZeroDivisionError), step_failures():
        raise ZeroDivisionError
