"""Exit statuses: one total table from our error classes to what the shell sees.

The numbers from 64 up are those of BSD's <sysexits.h> where it has a fitting one, so that scripts
already know them; 130 and 141 are what a shell reports for SIGINT and SIGPIPE (128 + signal).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

from lakehouse_platform import errors


class ExitStatus(IntEnum):
    """What the process tells its caller."""

    OK = 0
    PROBLEM = 1
    USAGE = 2
    QUERY = 64
    DATA = 65
    NOT_FOUND = 66
    UNAVAILABLE = 69
    INTERNAL = 70
    TABLE = 71
    EXISTS = 73
    IO = 74
    CONFLICT = 75
    OUTCOME_UNKNOWN = 76
    DENIED = 77
    CONFIG = 78
    INTERRUPTED = 130
    BROKEN_PIPE = 141


MEANINGS: Mapping[ExitStatus, str] = {
    ExitStatus.OK: "done",
    ExitStatus.PROBLEM: "doctor or audit verify found a problem, or you answered no",
    ExitStatus.USAGE: "wrong command line, name, schema text, time or property, or too weak a password",
    ExitStatus.QUERY: "SQL or predicate is wrong, not allowed or over its limit",
    ExitStatus.DATA: "rows or files do not fit the table",
    ExitStatus.NOT_FOUND: "no such table, version, file or user",
    ExitStatus.UNAVAILABLE: "storage does not answer, or a feature or package is missing",
    ExitStatus.INTERNAL: "a bug: please report it",
    ExitStatus.TABLE: "the table cannot do what was asked",
    ExitStatus.EXISTS: "a table, file or user is already there",
    ExitStatus.IO: "reading or writing failed",
    ExitStatus.CONFLICT: "another writer was first or a limit is reached, nothing was changed: try again later",
    ExitStatus.OUTCOME_UNKNOWN: "storage failed while committing: look before you repeat",
    ExitStatus.DENIED: "access denied: wrong password, sign-in that does not count, or not allowed",
    ExitStatus.CONFIG: "a setting is wrong",
    ExitStatus.INTERRUPTED: "interrupted by Ctrl-C",
    ExitStatus.BROKEN_PIPE: "the reader of our output went away",
}

# The root class is absent on purpose: a new branch of the tree must choose its status here.
_STATUS_OF: Mapping[type[BaseException], ExitStatus] = {
    errors.StorageError: ExitStatus.TABLE,
    errors.TableNotFoundError: ExitStatus.NOT_FOUND,
    errors.TableExistsError: ExitStatus.EXISTS,
    errors.NotADeltaTableError: ExitStatus.NOT_FOUND,
    errors.DirectoryNotEmptyError: ExitStatus.EXISTS,
    errors.VersionNotFoundError: ExitStatus.NOT_FOUND,
    errors.TimestampOutOfRangeError: ExitStatus.NOT_FOUND,
    errors.DataFilesMissingError: ExitStatus.IO,
    errors.SchemaMismatchError: ExitStatus.DATA,
    errors.ConstraintViolationError: ExitStatus.DATA,
    errors.CommitConflictError: ExitStatus.CONFLICT,
    errors.CommitOutcomeUnknownError: ExitStatus.OUTCOME_UNKNOWN,
    errors.UnsupportedFeatureError: ExitStatus.UNAVAILABLE,
    errors.QueryError: ExitStatus.QUERY,
    errors.InputError: ExitStatus.USAGE,
    errors.InvalidRowsError: ExitStatus.DATA,
    errors.SourceNotFoundError: ExitStatus.NOT_FOUND,
    errors.SourceFormatError: ExitStatus.DATA,
    errors.AuthError: ExitStatus.DENIED,
    errors.UserNotFoundError: ExitStatus.NOT_FOUND,
    errors.UserExistsError: ExitStatus.EXISTS,
    errors.PasswordTooWeakError: ExitStatus.USAGE,
    errors.RateLimitedError: ExitStatus.CONFLICT,
    errors.AuditError: ExitStatus.IO,
    errors.InfrastructureError: ExitStatus.UNAVAILABLE,
    errors.StoragePermissionError: ExitStatus.DENIED,
    errors.StorageIoError: ExitStatus.IO,
    errors.ConfigError: ExitStatus.CONFIG,
    errors.ArrowDataError: ExitStatus.DATA,
}


def exit_status(error: type[BaseException]) -> ExitStatus:
    """Return an error class's status: its own or its nearest ancestor's; INTERNAL for what is not ours."""
    for ancestor in error.__mro__:
        if ancestor in _STATUS_OF:
            return _STATUS_OF[ancestor]
    return ExitStatus.INTERNAL
