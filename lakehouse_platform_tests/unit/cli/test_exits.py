from __future__ import annotations

import inspect

import pytest

from lakehouse_platform import errors
from lakehouse_platform.cli.exits import MEANINGS, ExitStatus, exit_status

ERROR_CLASSES = [
    member
    for _, member in inspect.getmembers(errors, inspect.isclass)
    if issubclass(member, errors.LakehouseError) and member is not errors.LakehouseError
]


@pytest.mark.parametrize("error", ERROR_CLASSES, ids=lambda error: error.__name__)
def test_every_error_class_has_a_status_of_its_own_branch(error: type[errors.LakehouseError]) -> None:
    assert exit_status(error) not in (ExitStatus.OK, ExitStatus.INTERNAL)


def test_the_table_has_no_catch_all_so_a_new_branch_must_choose() -> None:
    assert exit_status(errors.LakehouseError) is ExitStatus.INTERNAL


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (errors.InvalidNameError, ExitStatus.USAGE),
        (errors.InvalidSchemaTextError, ExitStatus.USAGE),
        (errors.InvalidTimestampError, ExitStatus.USAGE),
        (errors.InvalidPropertyError, ExitStatus.USAGE),
        (errors.LossyCastError, ExitStatus.DATA),
        (errors.DuplicateKeyError, ExitStatus.DATA),
        (errors.TableNotFoundError, ExitStatus.NOT_FOUND),
        (errors.SourceNotFoundError, ExitStatus.NOT_FOUND),
        (errors.SqlNotAllowedError, ExitStatus.QUERY),
        (errors.CommitConflictError, ExitStatus.CONFLICT),
        (errors.CommitOutcomeUnknownError, ExitStatus.OUTCOME_UNKNOWN),
        (errors.ConfigError, ExitStatus.CONFIG),
        (errors.InvalidCredentialsError, ExitStatus.DENIED),
        (errors.PermissionDeniedError, ExitStatus.DENIED),
        (errors.UserNotFoundError, ExitStatus.NOT_FOUND),
        (errors.UserExistsError, ExitStatus.EXISTS),
        (errors.PasswordTooWeakError, ExitStatus.USAGE),
        (errors.LoginThrottledError, ExitStatus.CONFLICT),
    ],
)
def test_an_error_has_the_status_that_scripts_rely_on(error: type[Exception], status: ExitStatus) -> None:
    assert exit_status(error) is status


def test_a_subclass_without_an_entry_takes_the_status_of_its_nearest_ancestor() -> None:
    class NewConflictError(errors.CommitConflictError):
        pass

    assert exit_status(NewConflictError) is ExitStatus.CONFLICT


def test_what_is_not_ours_is_a_bug() -> None:
    assert exit_status(KeyError) is ExitStatus.INTERNAL


def test_every_status_is_explained() -> None:
    assert set(MEANINGS) == set(ExitStatus)
