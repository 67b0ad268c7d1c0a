"""Every error this platform raises, as one tree.

Each class has a stable `code` (front ends map codes to exit status, HTTP status and errno) and a message that says what
to do next. Causes are kept with `raise … from`. Classes that only group others are never raised.

LakehouseError
├── StorageError
│   ├── TableNotFoundError, TableExistsError, NotADeltaTableError, DirectoryNotEmptyError
│   ├── VersionNotFoundError, TimestampOutOfRangeError, DataFilesMissingError
│   ├── SchemaMismatchError, LossyCastError
│   ├── ConstraintViolationError ── DuplicateKeyError
│   ├── CommitConflictError, CommitOutcomeUnknownError, TransactionClosedError
│   ├── UnsupportedFeatureError
│   └── DeltaTableError
├── QueryError
│   ├── InvalidPredicateError, InvalidSqlError, SqlNotAllowedError, QueryLimitError
├── InputError
│   ├── InvalidNameError, InvalidSchemaTextError, InvalidRowsError ── RowError
│   ├── InvalidTimestampError, InvalidPropertyError
│   ├── InvalidArgumentError, IdempotencyKeyReusedError
│   └── SourceNotFoundError, SourceFormatError
├── AuthError
│   ├── AuthenticationFailedError, InvalidCredentialsError
│   ├── TokenExpiredError, TokenInvalidError, TokenReuseError
│   ├── UserNotFoundError, UserExistsError, PasswordTooWeakError
│   ├── AccountPendingError, AccountDisabledError, PermissionDeniedError
│   └── RateLimitedError ── LoginThrottledError
├── AuditError ── AuditWriteFailedError
└── InfrastructureError
    ├── StorageUnavailableError, StoragePermissionError, StorageIoError
    ├── MountFailedError
    ├── ServerUnavailableError, UnexpectedAnswerError
    └── ConfigError, MissingDependencyError, ArrowDataError
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar


class LakehouseError(Exception):
    """Base of every error of this platform; never raised itself.

    Attributes:
        code: Stable machine-readable name of the error's class.
        message: One sentence for a person: what is wrong and what to do next. Never holds a secret.
        details: The facts behind the message, as plain values.
    """

    code: ClassVar[str] = "lakehouse_error"

    def __init__(self, message: str, **details: object) -> None:
        super().__init__(message)
        self.message = message
        self.details: Mapping[str, object] = details

    def to_dict(self) -> dict[str, object]:
        """Return the error as plain values for JSON output."""
        return {"code": self.code, "message": self.message, "details": dict(self.details)}


class StorageError(LakehouseError):
    """A table, its log or its data cannot do what was asked."""

    code = "storage_error"


class TableNotFoundError(StorageError):
    """No table has this name or stands at this location."""

    code = "table_not_found"


class TableExistsError(StorageError):
    """A table is already there, so it cannot be created."""

    code = "table_exists"


class NotADeltaTableError(StorageError):
    """The location exists but holds no readable `_delta_log`."""

    code = "not_a_delta_table"


class DirectoryNotEmptyError(StorageError):
    """A table is created only in a new or empty directory."""

    code = "directory_not_empty"


class VersionNotFoundError(StorageError):
    """The table has no such version, or its log entry was cleaned up."""

    code = "version_not_found"


class TimestampOutOfRangeError(StorageError):
    """The time lies before the table's first readable version."""

    code = "timestamp_out_of_range"


class DataFilesMissingError(StorageError):
    """The version is known, but data files it needs were vacuumed or lost."""

    code = "data_files_missing"


class SchemaMismatchError(StorageError):
    """Rows do not have the table's columns or types."""

    code = "schema_mismatch"


class LossyCastError(SchemaMismatchError):
    """A value would change when stored in its column's type."""

    code = "lossy_cast"


class ConstraintViolationError(StorageError):
    """A row breaks NOT NULL or a CHECK constraint."""

    code = "constraint_violation"


class DuplicateKeyError(ConstraintViolationError):
    """Two rows would have the same primary key."""

    code = "duplicate_key"


class CommitConflictError(StorageError):
    """Another writer changed what this write depends on; nothing of it was committed."""

    code = "commit_conflict"


class CommitOutcomeUnknownError(StorageError):
    """The storage failed while committing: the write may or may not have landed."""

    code = "commit_outcome_unknown"


class TransactionClosedError(StorageError):
    """The transaction has already committed, failed or been rolled back."""

    code = "transaction_closed"


class UnsupportedFeatureError(StorageError):
    """The table uses a Delta feature that the engine cannot read or write correctly."""

    code = "unsupported_feature"


class DeltaTableError(StorageError):
    """The Delta engine refused for a reason that has no class of its own."""

    code = "delta_table_error"


class QueryError(LakehouseError):
    """A predicate or an SQL text cannot be run."""

    code = "query_error"


class InvalidPredicateError(QueryError):
    """The predicate is not one whole boolean expression over the table's columns."""

    code = "invalid_predicate"


class InvalidSqlError(QueryError):
    """The SQL text does not parse or does not fit the tables, or its result does not fit the form."""

    code = "invalid_sql"


class SqlNotAllowedError(QueryError):
    """The SQL text would write, change settings or read outside the lakehouse's tables."""

    code = "sql_not_allowed"


class QueryLimitError(QueryError):
    """The query exceeded its limit of rows, memory or time."""

    code = "query_limit"


class InputError(LakehouseError):
    """An argument is wrong; nothing was changed."""

    code = "input_error"


class InvalidNameError(InputError):
    """The table or column name is not allowed."""

    code = "invalid_name"


class InvalidSchemaTextError(InputError):
    """The schema text or type name cannot be understood."""

    code = "invalid_schema"


class InvalidRowsError(InputError):
    """The rows are not the JSON or values that were expected."""

    code = "invalid_rows"


class RowError(InvalidRowsError):
    """A line of CSV text does not fit the table.

    Attributes:
        line: The number of the line, from 1.
        column: The column at fault, or None if it is the line as a whole.
        reason: What is wrong with it.
        offset: Where the line's row begins, in bytes of the text.
    """

    code = "invalid_row"

    def __init__(self, line: int, column: str | None, reason: str, offset: int) -> None:
        where = f"Line {line}, column {column!r}" if column is not None else f"Line {line}"
        super().__init__(f"{where}: {reason}.", line=line, column=column, reason=reason, offset=offset)
        self.line = line
        self.column = column
        self.reason = reason
        self.offset = offset

    def __reduce__(self) -> tuple[type[RowError], tuple[int, str | None, str, int]]:
        return type(self), (self.line, self.column, self.reason, self.offset)


class InvalidTimestampError(InputError):
    """The text is not an RFC 3339 time with a zone."""

    code = "invalid_timestamp"


class InvalidPropertyError(InputError):
    """The table property is unknown or its value is not allowed."""

    code = "invalid_property"


class InvalidArgumentError(InputError):
    """A number, option or destination is outside what is allowed."""

    code = "invalid_argument"


class IdempotencyKeyReusedError(InputError):
    """The idempotency key was used for another request on this table; nothing was changed."""

    code = "idempotency_key_reused"


class SourceNotFoundError(InputError):
    """The file, directory or pattern to read from matches nothing."""

    code = "source_not_found"


class SourceFormatError(InputError):
    """The file to import does not hold what was expected; line and column are named where known."""

    code = "source_format"


class AuthError(LakehouseError):
    """Who is asking, or what they may do, is the problem."""

    code = "auth_error"


class AuthenticationFailedError(AuthError):
    """The caller could not be authenticated."""

    code = "authentication_failed"


class InvalidCredentialsError(AuthError):
    """The user name or password is wrong."""

    code = "invalid_credentials"


class UserNotFoundError(AuthError):
    """No user has this id, name or e-mail address."""

    code = "user_not_found"


class TokenExpiredError(AuthError):
    """The session token is past its time."""

    code = "token_expired"


class TokenInvalidError(AuthError):
    """The token was not issued by this lakehouse for this use, or was changed."""

    code = "token_invalid"


class TokenReuseError(AuthError):
    """A refresh token was presented that had been used before: its session is ended, for it may be stolen."""

    code = "token_reuse"


class UserExistsError(AuthError):
    """Another user has this name or e-mail address."""

    code = "user_exists"


class PasswordTooWeakError(AuthError):
    """The password is too easy to guess, or too long to be hashed; nothing was changed."""

    code = "password_too_weak"


class AccountPendingError(AuthError):
    """The account waits for an administrator's approval."""

    code = "account_pending"


class AccountDisabledError(AuthError):
    """The account was rejected or disabled."""

    code = "account_disabled"


class PermissionDeniedError(AuthError):
    """The one who asks is known, but may not do this."""

    code = "permission_denied"


class RateLimitedError(AuthError):
    """More was asked than is allowed in this time: nothing was done, try again after `retry_after` seconds.

    Attributes:
        retry_after: Seconds after which it is worth trying again.
    """

    code = "rate_limited"

    def __init__(self, message: str, *, retry_after: float, **details: object) -> None:
        super().__init__(message, retry_after=retry_after, **details)
        self.retry_after = retry_after

    def __reduce__(self) -> tuple[Any, ...]:
        # What copies and pickles call has no place for the keyword; the state brings the details back.
        return partial(type(self), retry_after=self.retry_after), (self.message,), self.__dict__


class LoginThrottledError(RateLimitedError):
    """Too many failed sign-ins under this name or from this address: wait `retry_after` seconds."""

    code = "login_throttled"


class AuditError(LakehouseError):
    """The audit log is the problem."""

    code = "audit_error"


class AuditWriteFailedError(AuditError):
    """The audit entry could not be written, so the operation was refused."""

    code = "audit_write_failed"


class InfrastructureError(LakehouseError):
    """The machine, the network or the installation is the problem."""

    code = "infrastructure_error"


class StorageUnavailableError(InfrastructureError):
    """The object store or disk does not answer."""

    code = "storage_unavailable"


class StoragePermissionError(InfrastructureError):
    """The operating system or object store denies access."""

    code = "storage_permission"


class StorageIoError(InfrastructureError):
    """Reading or writing bytes failed."""

    code = "storage_io"


class ConfigError(InfrastructureError):
    """A setting is unknown, malformed or contradicts another."""

    code = "config"


class MountFailedError(InfrastructureError):
    """The system's mount or unmount command refused, or the mount's server did not start."""

    code = "mount_failed"


class ServerUnavailableError(InfrastructureError):
    """The server cannot be reached, or went away before its answer was whole."""

    code = "server_unavailable"


class UnexpectedAnswerError(InfrastructureError):
    """What answered is no lakehouse server of this kind, or its answer is not whole."""

    code = "unexpected_answer"


class MissingDependencyError(InfrastructureError):
    """An optional package is needed for this and not installed."""

    code = "missing_dependency"


class ArrowDataError(InfrastructureError):
    """Arrow could not decode or convert data that should be sound."""

    code = "arrow_data"
