"""The door to the Delta engine: opens tables and turns every engine exception into one of our errors.

The engine raises DeltaError and its subclasses, OSError, ArrowInvalid, bare Exception and PanicException (a
BaseException), with ANSI colours and backtraces in their texts (deltalake 1.6.6). The patterns below are its texts,
collected by provoking each.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError, DeltaError, DeltaProtocolError
from deltalake.exceptions import TableNotFoundError as EngineTableNotFoundError

from lakehouse_platform.errors import (
    ArrowDataError,
    CommitConflictError,
    ConstraintViolationError,
    DataFilesMissingError,
    DeltaTableError,
    DuplicateKeyError,
    InvalidArgumentError,
    LakehouseError,
    LossyCastError,
    NotADeltaTableError,
    SchemaMismatchError,
    StorageIoError,
    StoragePermissionError,
    StorageUnavailableError,
    TableExistsError,
    TableNotFoundError,
    UnsupportedFeatureError,
    VersionNotFoundError,
)
from lakehouse_platform.store.location import Location
from lakehouse_platform.store.log import LOG_DIRECTORY, list_log

_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_BACKTRACE = re.compile(r"\n\s*(?:stack backtrace:|0: <unknown>).*", re.DOTALL)
_PREVIEW = re.compile(r"\s*Preview of invalid data:.*", re.DOTALL)
# A shared access signature stands in the query of Azure's URLs, and object_store quotes the URL that failed.
_SECRET = re.compile(r"\b(sig|[Xx]-[Aa]mz-[Ss]ignature|[Xx]-[Aa]mz-[Ss]ecurity-[Tt]oken)=[^&\s)]+")
_LABELS = re.compile(r"^(?:Generic DeltaTable error: |External error: |Kernel error: |Generic error: )+")

# Up to here the engine finds out in 6 ms that a version does not exist (deltalake 1.6.6), less than a listing takes.
_CHEAP_VERSION = 100_000

# A listing made while others add files may hold a newer one and lack an older one, as readdir(3) allows: seen once in
# 1 600 appends of 8 processes. The next listing is whole, unless a log entry is really gone.
_GAP = "Expected contiguous commit files"
_LISTINGS = 5

_Maker = Callable[[str, Location], LakehouseError]


def open_table(location: Location, version: int | None = None) -> DeltaTable:
    """Open a table at its newest or a given version.

    Raises:
        TableNotFoundError: Nothing stands at the location.
        NotADeltaTableError: Something does, but it is no Delta table; the message says why.
        VersionNotFoundError: The version does not exist or its log entries were cleaned up.
        UnsupportedFeatureError: The table needs a reader feature that the engine lacks.
        InvalidArgumentError: The version is no whole number.
    """
    if version is not None and not _is_whole(version):
        raise InvalidArgumentError(f"Version {version!r} is not a whole number.", version=str(version))
    if version is not None and not _is_plausible(location, version):
        raise _no_version(location, version)
    try:
        return _opened(location, version)
    except EngineTableNotFoundError as error:
        raise _why_not_found(location, version) from error
    except Exception as error:
        if version is not None and "LogSegment end version" in str(error):
            raise _no_version(location, version) from error
        raise _why_not_opened(error, location) from error
    except BaseException as error:
        raise _panic(error, location) from error


@contextmanager
def translated(location: Location) -> Generator[None]:
    """Turn engine exceptions raised inside into our errors; ours pass unchanged."""
    try:
        yield
    except LakehouseError:
        raise
    except Exception as error:
        raise translate(error, location) from error
    except BaseException as error:
        raise _panic(error, location) from error


def translate(error: Exception, location: Location) -> LakehouseError:
    """Return our error for an engine exception."""
    text = clean_text(error)
    for pattern, make in _RULES:
        if pattern.search(text):
            return make(text, location)
    if isinstance(error, CommitFailedError):
        return _conflict(text, location)
    if isinstance(error, DeltaProtocolError):
        return _unsupported(text, location)
    if isinstance(error, PermissionError):
        return _permission(text, location)
    if isinstance(error, OSError):
        return _io(text, location)
    if isinstance(error, pa.ArrowException):
        return ArrowDataError(f"Arrow could not handle data of {location.name}: {text}", table=location.name)
    return DeltaTableError(f"The Delta engine refused on {location.name}: {text}", table=location.name)


def clean_text(error: BaseException) -> str:
    """Return an engine exception's text without colours, backtrace, previews of rows and label prefixes."""
    text = _SECRET.sub(r"\1=…", _BACKTRACE.sub("", _ANSI.sub("", str(error))))
    text = _PREVIEW.sub("", text)
    return " ".join(_LABELS.sub("", text).split())


def _opened(location: Location, version: int | None) -> DeltaTable:
    for _ in range(_LISTINGS - 1):
        try:
            return DeltaTable(location.uri, version=version, storage_options=location.storage_options)
        except DeltaError as error:
            if _GAP not in str(error):
                raise
    return DeltaTable(location.uri, version=version, storage_options=location.storage_options)


def _is_whole(version: object) -> bool:
    return isinstance(version, int) and not isinstance(version, bool)


def _is_plausible(location: Location, version: int) -> bool:
    """Tell whether the engine may be asked for a version: it counts up to it, 2 s for ten million, days for 2**40."""
    if 0 <= version <= _CHEAP_VERSION:
        return True
    listing = list_log(location)
    return version >= 0 and not listing.is_empty and version <= listing.last


def _panic(error: BaseException, location: Location) -> BaseException:
    # pyo3's PanicException derives from BaseException and cannot be imported by name.
    if type(error).__name__ != "PanicException":
        return error
    return DeltaTableError(
        f"The Delta engine crashed on {location.name}: {clean_text(error)}. "
        "If this process was forked, start it with spawn instead.",
        table=location.name,
    )


def _why_not_found(location: Location, version: int | None) -> LakehouseError:
    try:
        return _reason_not_found(location, version)
    except OSError as error:
        # The engine calls a table absent that it may not look at.
        return translate(error, location)


def _reason_not_found(location: Location, version: int | None) -> LakehouseError:
    if location.is_local:
        path = location.path
        if path.is_file():
            return NotADeltaTableError(f"{path} is a file; a Delta table is a directory.", path=str(path))
        if not path.exists():
            return _not_found(location)
        if not (path / LOG_DIRECTORY).is_dir():
            return NotADeltaTableError(_no_log(path), path=str(path))
    listing = list_log(location)
    if version is not None and not listing.is_empty:
        return _no_version(location, version)
    if location.is_local:
        return NotADeltaTableError(
            f"{location.uri}/{LOG_DIRECTORY} holds no commit: create the table first, or restore its log.",
            path=location.uri,
        )
    return _not_found(location)


def _no_log(path: Path) -> str:
    kind = "empty" if not any(path.iterdir()) else "not a Delta table"
    return (
        f"{path} is {kind}: it has no {LOG_DIRECTORY} directory. Create a table there, "
        "or name a directory that holds one."
    )


def _not_found(location: Location) -> TableNotFoundError:
    return TableNotFoundError(
        f"There is no table at {location.uri}: check the name (`lakehouse tables` lists them) or create it.",
        table=location.name,
    )


def _why_not_opened(error: Exception, location: Location) -> LakehouseError:
    ours = translate(error, location)
    if type(ours) is not DeltaTableError and _GAP not in str(error):
        return ours
    if location.is_local and not (location.path / LOG_DIRECTORY).is_dir():
        return _why_not_found(location, None)
    return NotADeltaTableError(
        f"The {LOG_DIRECTORY} of {location.uri} cannot be read: {clean_text(error)}. Restore it from a backup.",
        path=location.uri,
    )


def _no_version(location: Location, version: int) -> LakehouseError:
    listing = list_log(location)
    if listing.is_empty:
        return _not_found(location)
    first, last = listing.first_readable, listing.last
    return VersionNotFoundError(
        f"Table {location.name} has no version {version}: versions {first} to {last} can be read.",
        table=location.name,
        version=version,
        first=first,
        last=last,
    )


def _conflict(text: str, location: Location) -> LakehouseError:
    return CommitConflictError(
        f"Another writer changed table {location.name} meanwhile ({text.rstrip('.')}); nothing was written. "
        "Read the table again and repeat the change.",
        table=location.name,
        reason=text,
    )


def _constraint(text: str, location: Location) -> LakehouseError:
    return ConstraintViolationError(
        f"Table {location.name} refused the rows: {text.rstrip('.')} (NOT NULL or a CHECK constraint). "
        "Nothing was written; correct the rows.",
        table=location.name,
    )


def _append_only(text: str, location: Location) -> LakehouseError:
    del text
    return ConstraintViolationError(
        f"Table {location.name} is append-only (delta.appendOnly): rows cannot be changed or removed.",
        table=location.name,
    )


def _duplicate_source(text: str, location: Location) -> LakehouseError:
    del text
    return DuplicateKeyError(
        f"Several source rows match one row of {location.name}: give each key once.", table=location.name
    )


def _missing_file(text: str, location: Location) -> LakehouseError:
    return DataFilesMissingError(
        f"Data files that table {location.name} needs are gone ({text}). If you read an old version, they were "
        "vacuumed: read a newer one. Otherwise restore the files from a backup.",
        table=location.name,
    )


def _unsupported(text: str, location: Location) -> LakehouseError:
    return UnsupportedFeatureError(
        f"Table {location.name} uses a Delta feature this engine does not support: {text}. "
        "Use the system that wrote it for this operation.",
        table=location.name,
    )


def _mismatch(text: str, location: Location) -> LakehouseError:
    return SchemaMismatchError(
        f"The rows do not fit table {location.name}: {text}. Compare with `lakehouse schema`.",
        table=location.name,
    )


def _cast(text: str, location: Location) -> LakehouseError:
    return LossyCastError(f"A value does not fit its column in {location.name}: {text}.", table=location.name)


def _exists(text: str, location: Location) -> LakehouseError:
    del text
    return TableExistsError(
        f"Table {location.name} already exists at {location.uri}: open it, or choose another name.",
        table=location.name,
    )


def _permission(text: str, location: Location) -> LakehouseError:
    return StoragePermissionError(
        f"Access to {location.uri} is denied: {text}. Check its owner and permissions, or the credentials.",
        table=location.name,
    )


def _unavailable(text: str, location: Location) -> LakehouseError:
    return StorageUnavailableError(
        f"The storage of {location.uri} does not answer: {text}. Check the endpoint and the network, then try again.",
        table=location.name,
    )


def _io(text: str, location: Location) -> LakehouseError:
    return StorageIoError(
        f"Reading or writing {location.uri} failed: {text.rstrip('.')}. "
        "Check the disk (free space, mount), then try again.",
        table=location.name,
    )


_RULES: tuple[tuple[re.Pattern[str], _Maker], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), make)
    for pattern, make in (
        (r"Delta table is append-only", _append_only),
        (r"rows failed validation check|violates? .*constraint|Invariant violation", _constraint),
        (r"matched a target row with multiple source rows", _duplicate_source),
        (r"table already exists at that location|directory is not empty", _exists),
        (
            (
                r"Failed to fetch metadata for file|Find missing file|Object at location .* not found"
                r"|^Object not found|Failed to open local file .*No such file"
            ),
            _missing_file,
        ),
        (
            (
                r"Unsupported (?:table|reader|writer) feature|unsupported (?:reader|writer|table)"
                r"|requires? (?:reader|writer) feature|Unsupported minimum (?:reader|writer)"
                r"|not supported by (?:delta-kernel|this version)|Unknown(?:.{0,40})feature"
                r"|Unsupported: Feature|catalog-managed table|Table features must be specified"
            ),
            _unsupported,
        ),
        (
            rf"Failed to commit transaction|concurrent transaction|Metadata changed since last commit|{_GAP}",
            _conflict,
        ),
        (
            (
                r"Permission denied|PermissionDenied|Operation not permitted|Access ?Denied|Forbidden"
                r"|InvalidAccessKeyId|SignatureDoesNotMatch"
            ),
            _permission,
        ),
        (
            (
                r"error sending request|connect error|Connection refused|timed out|dns error|Service Unavailable"
                r"|retry_timeout"
            ),
            _unavailable,
        ),
        (r"Cannot cast|Can't cast value|Cast error|overflow", _cast),
        (r"schema (?:mismatch|error)|Cannot merge|No field named|field .* not found in schema", _mismatch),
        (r"No space left|Input/output error|Read-only file system", _io),
    )
)
