from __future__ import annotations

import pytest
from deltalake.exceptions import CommitFailedError, DeltaError

from lakehouse_platform.errors import (
    CommitConflictError,
    DataFilesMissingError,
    LakehouseError,
    StoragePermissionError,
    StorageUnavailableError,
    UnsupportedFeatureError,
    VersionNotFoundError,
)
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.store.engine import open_table, translate
from lakehouse_platform.store.location import Location
from lakehouse_platform_tests.support.tables import PEOPLE

# Texts as deltalake 1.6.6 wrote them; each was provoked once.
_TEXTS: list[tuple[Exception, type[LakehouseError]]] = [
    (CommitFailedError("Failed to commit transaction: 0"), CommitConflictError),
    (
        DeltaError(
            "Kernel error: Generic delta kernel error: Expected contiguous commit files, but found gap: "
            "ParsedLogPath { version: 1040, file_type: Commit } -> ParsedLogPath { version: 1042, file_type: Commit }"
        ),
        CommitConflictError,
    ),
    (
        DeltaError("Kernel error: Unsupported: Feature 'timeMachine' is not supported"),
        UnsupportedFeatureError,
    ),
    (CommitFailedError("Unsupported table features required: [RowTracking]"), UnsupportedFeatureError),
    (
        CommitFailedError("Table features must be specified, please specify: AppendOnly"),
        UnsupportedFeatureError,
    ),
    (
        OSError("Generic S3 error: Server returned non-2xx status code: 403 Forbidden"),
        StoragePermissionError,
    ),
    (
        DeltaError("Unable to open file /lake/t/part-0.parquet#1: Operation not permitted (os error 1)"),
        StoragePermissionError,
    ),
    (
        OSError(
            "[Errno 2] Failed to open local file '/lake/t/a'. Detail: [errno 2] No such file or directory"
        ),
        DataFilesMissingError,
    ),
    (
        OSError("Generic S3 error: Server returned non-2xx status code: 503 Service Unavailable"),
        StorageUnavailableError,
    ),
]


@pytest.mark.parametrize(("engine_error", "ours"), _TEXTS)
def test_the_engines_errors_become_ours(engine_error: Exception, ours: type[LakehouseError]) -> None:
    assert type(translate(engine_error, Location("/lake/t"))) is ours


@pytest.mark.parametrize("number", ["403", "503"])
def test_a_number_in_a_file_name_is_no_status_code(number: str) -> None:
    error = OSError(f"Failed to read part-00{number}-c000.parquet: file is truncated")
    found = translate(error, Location("/lake/t"))
    assert not isinstance(found, (StoragePermissionError, StorageUnavailableError))


@pytest.mark.parametrize("version", [-1, 1, 99, 10**7, 2**40, 2**70])
def test_a_version_that_does_not_exist_is_refused_at_once(store: DeltaStore, version: int) -> None:
    """The engine counts up to the version it is asked for: ten million take it 2 s, 2**40 would take days."""
    table = store.create("people", PEOPLE)
    with pytest.raises(VersionNotFoundError, match="0 to 0"):
        open_table(table.location, version)
