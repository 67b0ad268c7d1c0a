"""What an NFS client is told when the lakehouse refuses."""

from __future__ import annotations

from lakehouse_platform import errors
from lakehouse_platform.errors import LakehouseError
from lakehouse_platform.nfs.operations import Status
from lakehouse_platform.nfs.wire.nfs3 import Nfs3

STATUSES: dict[type[LakehouseError], Status] = {
    errors.TableNotFoundError: Status.STALE,
    errors.TableExistsError: Status.EXIST,
    errors.NotADeltaTableError: Status.IO,
    errors.DirectoryNotEmptyError: Status.NOTEMPTY,
    errors.VersionNotFoundError: Status.STALE,
    errors.TimestampOutOfRangeError: Status.STALE,
    errors.DataFilesMissingError: Status.IO,
    errors.SchemaMismatchError: Status.INVAL,
    errors.LossyCastError: Status.INVAL,
    errors.ConstraintViolationError: Status.INVAL,
    errors.DuplicateKeyError: Status.INVAL,
    errors.CommitConflictError: Status.IO,
    errors.CommitOutcomeUnknownError: Status.IO,
    errors.TransactionClosedError: Status.SERVERFAULT,
    errors.UnsupportedFeatureError: Status.IO,
    errors.DeltaTableError: Status.IO,
    errors.InvalidPredicateError: Status.INVAL,
    errors.InvalidSqlError: Status.INVAL,
    errors.SqlNotAllowedError: Status.ACCES,
    errors.QueryLimitError: Status.DQUOT,
    errors.InvalidNameError: Status.INVAL,
    errors.InvalidSchemaTextError: Status.INVAL,
    errors.InvalidRowsError: Status.INVAL,
    errors.InvalidTimestampError: Status.INVAL,
    errors.InvalidPropertyError: Status.INVAL,
    errors.InvalidArgumentError: Status.INVAL,
    errors.IdempotencyKeyReusedError: Status.INVAL,
    errors.SourceNotFoundError: Status.NOENT,
    errors.SourceFormatError: Status.INVAL,
    errors.AuthenticationFailedError: Status.ACCES,
    errors.InvalidCredentialsError: Status.ACCES,
    errors.UserNotFoundError: Status.ACCES,
    errors.TokenExpiredError: Status.ACCES,
    errors.TokenInvalidError: Status.ACCES,
    errors.TokenReuseError: Status.ACCES,
    errors.UserExistsError: Status.EXIST,
    errors.PasswordTooWeakError: Status.INVAL,
    errors.AccountPendingError: Status.ACCES,
    errors.AccountDisabledError: Status.ACCES,
    errors.PermissionDeniedError: Status.ACCES,
    errors.RateLimitedError: Status.JUKEBOX,
    errors.LoginThrottledError: Status.JUKEBOX,
    errors.AuditWriteFailedError: Status.IO,
    errors.StorageUnavailableError: Status.JUKEBOX,
    errors.StoragePermissionError: Status.ACCES,
    errors.StorageIoError: Status.IO,
    errors.ConfigError: Status.SERVERFAULT,
    errors.MissingDependencyError: Status.SERVERFAULT,
    errors.ArrowDataError: Status.IO,
    errors.MountFailedError: Status.SERVERFAULT,
    errors.ServerUnavailableError: Status.SERVERFAULT,
    errors.UnexpectedAnswerError: Status.SERVERFAULT,
}
_NAMING = {None, Nfs3.LOOKUP}
_MAKING = {Nfs3.CREATE, Nfs3.MKDIR, Nfs3.SYMLINK}
_CHANGING = {Nfs3.SETATTR, Nfs3.WRITE, Nfs3.REMOVE, Nfs3.RMDIR, Nfs3.RENAME, *_MAKING}
# RFC 1813 §3.3.1, §3.3.18 to §3.3.20: they know no ACCES; a handle that nobody may use any more is stale to them.
_WITHOUT_ACCES = {Nfs3.GETATTR, Nfs3.FSSTAT, Nfs3.FSINFO, Nfs3.PATHCONF}
# What RFC 1813 §3.3.21 lets COMMIT say, and JUKEBOX, which every procedure may.
_COMMIT_STATUSES = {Status.IO, Status.SERVERFAULT, Status.JUKEBOX}


def status_for(error: LakehouseError, procedure: Nfs3 | None) -> Status:
    """Return the status that tells an error best.

    Args:
        error: Why the operation failed.
        procedure: What was asked; None for MNT.
    """
    status = next((STATUSES[cls] for cls in type(error).__mro__ if cls in STATUSES), Status.SERVERFAULT)
    if procedure is Nfs3.COMMIT:
        return status if status in _COMMIT_STATUSES else Status.IO
    if procedure in _WITHOUT_ACCES and isinstance(error, errors.AuthError):
        return Status.STALE
    if procedure in _CHANGING and isinstance(error, errors.UnsupportedFeatureError):
        return Status.ROFS
    if procedure in _NAMING and status in {Status.STALE, Status.INVAL}:
        return Status.NOENT
    # Clients that are told STALE by a WRITE drop the data without telling their user.
    return Status.IO if procedure is Nfs3.WRITE and status is Status.STALE else status
