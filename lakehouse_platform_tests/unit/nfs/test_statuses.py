"""Every error of the platform has a status that a client can be told."""

from __future__ import annotations

import inspect

import pytest

from lakehouse_platform import errors
from lakehouse_platform.errors import LakehouseError
from lakehouse_platform.nfs.operations import Status
from lakehouse_platform.nfs.statuses import STATUSES, status_for
from lakehouse_platform.nfs.wire.nfs3 import Nfs3

GROUPS = {LakehouseError, *LakehouseError.__subclasses__()}
LEAVES = [
    value
    for value in vars(errors).values()
    if inspect.isclass(value) and issubclass(value, LakehouseError) and value not in GROUPS
]


@pytest.mark.parametrize("cls", LEAVES, ids=lambda cls: cls.__name__)
def test_every_error_that_can_be_raised_has_a_status(cls: type[LakehouseError]) -> None:
    assert set(cls.__mro__) & set(STATUSES)


@pytest.mark.parametrize("cls", LEAVES, ids=lambda cls: cls.__name__)
def test_no_error_is_success_and_no_write_is_told_that_its_file_is_gone(cls: type[LakehouseError]) -> None:
    error = cls.__new__(cls)  # some classes want to know more than a message
    told = {procedure: status_for(error, procedure) for procedure in (None, *Nfs3)}
    assert Status.OK not in told.values()
    assert told[Nfs3.WRITE] is not Status.STALE
    assert told[Nfs3.COMMIT] in {Status.IO, Status.SERVERFAULT, Status.JUKEBOX}
    assert told[Nfs3.LOOKUP] not in {Status.STALE, Status.INVAL}


@pytest.mark.parametrize(
    ("error", "procedure", "status"),
    [
        (errors.InvalidRowsError("no"), Nfs3.WRITE, Status.INVAL),
        (errors.DuplicateKeyError("no"), Nfs3.RENAME, Status.INVAL),
        (errors.DuplicateKeyError("no"), Nfs3.COMMIT, Status.IO),
        (errors.CommitConflictError("no"), Nfs3.RENAME, Status.IO),
        (errors.StorageUnavailableError("no"), Nfs3.READ, Status.JUKEBOX),
        (errors.StorageUnavailableError("no"), Nfs3.COMMIT, Status.JUKEBOX),
        (errors.TableNotFoundError("no"), Nfs3.GETATTR, Status.STALE),
        (errors.TableNotFoundError("no"), Nfs3.WRITE, Status.IO),
        (errors.TableNotFoundError("no"), None, Status.NOENT),
        (errors.InvalidTimestampError("no"), Nfs3.LOOKUP, Status.NOENT),
        (errors.UnsupportedFeatureError("no"), Nfs3.WRITE, Status.ROFS),
        (errors.UnsupportedFeatureError("no"), Nfs3.READ, Status.IO),
        (errors.StorageError("no"), Nfs3.READ, Status.SERVERFAULT),
    ],
)
def test_a_status_says_what_is_wrong_as_well_as_the_procedure_can(
    error: LakehouseError, procedure: Nfs3 | None, status: Status
) -> None:
    assert status_for(error, procedure) is status
