"""New tables: where one may be created, with which properties, and with or without first rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

import pyarrow as pa
import pyarrow.fs as pafs
from deltalake import DeltaTable

from lakehouse_platform.errors import (
    CommitConflictError,
    DirectoryNotEmptyError,
    LakehouseError,
    SchemaMismatchError,
    TableExistsError,
)
from lakehouse_platform.store.cast import is_any_bytes
from lakehouse_platform.store.commit import Committer, Stamp
from lakehouse_platform.store.engine import translated
from lakehouse_platform.store.keys import check_key_columns
from lakehouse_platform.store.location import Location
from lakehouse_platform.store.log import LOG_DIRECTORY, list_log
from lakehouse_platform.store.properties import check_properties, new_table_properties, primary_key_property
from lakehouse_platform.store.snapshot import column_infos
from lakehouse_platform.store.writes import append


def create_table(
    committer: Committer,
    schema: pa.Schema,
    *,
    primary_key: Sequence[str] = (),
    partition_by: Sequence[str] = (),
    properties: Mapping[str, str] | None = None,
    description: str = "",
    data: pa.RecordBatchReader | None = None,
) -> int:
    """Create a table, with `data` as its first rows in one commit; nothing is left behind if that fails.

    Args:
        committer: Commits on the new table.
        schema: Its columns.
        primary_key: Declared key columns; they become NOT NULL.
        partition_by: Columns to partition by; not all of them, none nested.
        properties: Table properties beside the defaults.
        description: What the table holds.
        data: First rows, streamed; columns are matched by name.

    Raises:
        TableExistsError, DirectoryNotEmptyError: The place is taken.
        SchemaMismatchError, InvalidSchemaTextError, InvalidPropertyError: The definition is wrong.
        SchemaMismatchError, LossyCastError, DuplicateKeyError, ConstraintViolationError: The rows do not fit.
    """
    location = committer.location
    key = check_key_columns(schema, primary_key, location.name) if primary_key else ()
    schema = pa.schema([f.with_nullable(f.nullable and f.name not in key) for f in schema])
    column_infos(schema)  # refuses types that a table cannot hold, which the engine would change silently
    _check_partitions(schema, partition_by, location.name)
    configuration = {**new_table_properties(committer.config), **check_properties(properties or {})}
    check_free(location)
    # The empty table claims the place, so that two creators never write into one directory.
    version = _create_empty(committer, schema, partition_by, {**configuration, **_key_property(key)}, description)
    if data is None:
        return version
    try:
        return append(committer, data)
    except BaseException:
        _withdraw(committer)
        raise


def check_free(location: Location) -> None:
    """Refuse a place where a table cannot be created.

    Raises:
        TableExistsError: A table stands there.
        DirectoryNotEmptyError: Other files do.
    """
    with translated(location):
        if location.is_local and location.path.is_file():
            raise DirectoryNotEmptyError(f"{location.uri} is a file: choose another place.", path=location.uri)
        found = location.filesystem().get_file_info(pafs.FileSelector("", allow_not_found=True))
        # Looked at after the files: those of somebody who is creating the table right now have a log by then.
        if not list_log(location).is_empty:
            raise _exists(location)
    found = [info for info in found if info.base_name != LOG_DIRECTORY]
    if found:
        raise DirectoryNotEmptyError(
            f"{location.uri} is not empty (it holds {found[0].base_name!r}): create the table in a new or empty "
            "directory, for example a subdirectory of it.",
            path=location.uri,
        )


def remove(location: Location) -> None:
    """Delete everything at a location, the log last so that a half-deleted table never looks whole."""
    filesystem = location.filesystem()
    with translated(location):
        for info in filesystem.get_file_info(pafs.FileSelector("", allow_not_found=True)):
            if info.base_name != LOG_DIRECTORY:
                _remove_one(filesystem, info)
        with suppress(FileNotFoundError):
            filesystem.delete_dir(LOG_DIRECTORY)
        if location.is_local and location.path.is_dir():
            location.path.rmdir()


def _remove_one(filesystem: pafs.FileSystem, info: pafs.FileInfo) -> None:
    if info.type == pafs.FileType.Directory:
        filesystem.delete_dir(info.path)
    else:
        filesystem.delete_file(info.path)


def _create_empty(
    committer: Committer,
    schema: pa.Schema,
    partition_by: Sequence[str],
    configuration: Mapping[str, str],
    description: str,
) -> int:
    location, stamp = committer.location, Stamp(committer.config, committer.origin)
    try:
        with translated(location):
            version = _create(location, schema, partition_by, configuration, description, stamp)
    except LakehouseError as error:
        # If the answer to our commit is lost, the engine tries again and finds the table that we have just created.
        if committer.landed(stamp.commit_id, -1) is None:
            if isinstance(error, CommitConflictError):
                raise _exists(location) from error
            raise
        version = 0
    committer.make_durable(version)
    return version


def _create(
    location: Location,
    schema: pa.Schema,
    partition_by: Sequence[str],
    configuration: Mapping[str, str],
    description: str,
    stamp: Stamp,
) -> int:
    # Our own property names are unknown to the engine, hence raise_if_key_not_exists.
    table = DeltaTable.create(
        location.uri,
        schema,
        partition_by=list(partition_by),
        description=description or None,
        configuration=configuration,
        storage_options=location.storage_options,
        # With retries the engine commits its definition over a table that somebody else has just created
        # (38 of 40 races of four creators on a local disk had two or three "winners").
        commit_properties=stamp(exact=True),
        raise_if_key_not_exists=False,
    )
    return table.version()


def _exists(location: Location) -> TableExistsError:
    return TableExistsError(
        f"Table {location.name} already exists at {location.uri}: open it, or choose another name.",
        table=location.name,
    )


def _withdraw(committer: Committer) -> None:
    """Remove a table that never got its first rows, unless somebody has written to it meanwhile."""
    if list_log(committer.location).last == 0:
        remove(committer.location)


def _key_property(key: Sequence[str]) -> dict[str, str]:
    return primary_key_property(key) if key else {}


def _check_partitions(schema: pa.Schema, partition_by: Sequence[str], name: str) -> None:
    # The engine writes binary partition values in a form that it does not read back (deltalake 1.6.6).
    usable = [f.name for f in schema if not (pa.types.is_nested(f.type) or is_any_bytes(f.type))]
    wrong = [column for column in partition_by if column not in usable]
    if wrong or len(set(partition_by)) != len(partition_by) or len(partition_by) == len(schema):
        raise SchemaMismatchError(
            f"Table {name} cannot be partitioned by {', '.join(partition_by)}: name some, not all, of "
            f"{', '.join(usable)}, each once.",
            columns=list(partition_by),
        )
