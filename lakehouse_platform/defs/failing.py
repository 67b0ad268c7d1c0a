"""How our errors end a step: as a failure with its code, retried only where a repetition can help."""

from collections.abc import Generator
from contextlib import contextmanager

import dagster as dg

from lakehouse_platform.errors import CommitConflictError, LakehouseError, StorageUnavailableError

# Another writer's commit is over within seconds, and so is a dropped connection; an outage is not waited for.
RETRY = dg.RetryPolicy(max_retries=3, delay=2, backoff=dg.Backoff.EXPONENTIAL, jitter=dg.Jitter.PLUS_MINUS)

_WORTH_A_RETRY = (CommitConflictError, StorageUnavailableError)


def can_be_retried(error: Exception) -> bool:
    """Tell whether the same step may succeed when it is run again unchanged."""
    return isinstance(error, _WORTH_A_RETRY)


@contextmanager
def step_failures() -> Generator[None]:
    """Turn our errors into Dagster failures; user errors are not retried.

    Raises:
        dagster.Failure: One of our errors was raised inside.
    """
    try:
        yield
    except LakehouseError as error:
        raise dg.Failure(
            description=error.message,
            metadata={"error_code": error.code},
            allow_retries=can_be_retried(error),
        ) from error
