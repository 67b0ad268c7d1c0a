"""New tables: where one may be created, with which properties, and with or without first rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.fs as pafs
from deltalake import DeltaTable, Schema
from deltalake.transaction import AddAction, create_table_with_add_actions

from lakehouse_platform.errors import (
    CommitConflictError,
    CommitOutcomeUnknownError,
    DirectoryNotEmptyError,
    LakehouseError,
    SchemaMismatchError,
    TableExistsError,
)
from lakehouse_platform.model.schema import refuse_nul
from lakehouse_platform.store.cast import conform_stream, is_any_bytes
from lakehouse_platform.store.commit import Committer, Stamp
from lakehouse_platform.store.engine import translated
from lakehouse_platform.store.keys import check_key_columns
from lakehouse_platform.store.location import Location
from lakehouse_platform.store.log import LOG_DIRECTORY, list_log
from lakehouse_platform.store.properties import (
    check_properties,
    exact_statistics,
    new_table_properties,
    primary_key_property,
)
from lakehouse_platform.store.snapshot import column_infos
from lakehouse_platform.store.staging import Staging
from lakehouse_platform.store.stream import Stream
from lakehouse_platform.store.workspace import is_workspace
from lakehouse_platform.store.writes import checked_partitions, guarded_keys


@dataclass(frozen=True, slots=True)
class Definition:
    """What a table is created as.

    Attributes:
        schema: Its columns.
        partition_by: Columns it is partitioned by.
        configuration: Its properties.
        description: What it holds.
    """

    schema: pa.Schema
    partition_by: tuple[str, ...]
    configuration: Mapping[str, str]
    description: str

    @property
    def engine_configuration(self) -> Mapping[str, str]:
        """The properties that the engine knows, without those of our own."""
        return {key: value for key, value in self.configuration.items() if key.startswith("delta.")}


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
    """Create a table, with `data` as its first rows; nothing is left behind if that fails.

    Table and rows are one commit, except with a primary key: then the rows are the second, still all or none.

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
    if not schema.names:
        raise SchemaMismatchError(f"Table {location.name} needs at least one column.", table=location.name)
    refuse_nul(schema.names)
    key = check_key_columns(schema, primary_key, location.name) if primary_key else ()
    schema = pa.schema([f.with_nullable(f.nullable and f.name not in key) for f in schema])
    column_infos(schema)  # refuses types that a table cannot hold, which the engine would change silently
    _check_partitions(schema, partition_by, location.name)
    configuration = {
        **new_table_properties(committer.config),
        **exact_statistics(schema, partition_by),
        **check_properties(properties or {}),
    }
    check_free(location)
    definition = Definition(schema, tuple(partition_by), {**configuration, **_key_property(key)}, description)
    if data is not None:
        return _create_with_rows(committer, definition, key, data)
    return _commit_first(committer, lambda stamp: _create(committer.location, definition, stamp))


def check_free(location: Location) -> None:
    """Refuse a place where a table cannot be created.

    Raises:
        TableExistsError: A table stands there.
        DirectoryNotEmptyError: Other files do.
    """
    with translated(location):
        if location.is_local and location.path.is_file():
            raise DirectoryNotEmptyError(
                f"{location.uri} is a file: choose another place.", path=location.uri
            )
        found = location.entries()
        # Looked at after the files: those of somebody who is creating the table right now have a log by then.
        if not list_log(location).is_empty:
            raise _exists(location)
    found = [info for info in found if info.base_name != LOG_DIRECTORY and not is_workspace(info.base_name)]
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
        for info in location.entries():
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


def _create_with_rows(
    committer: Committer, definition: Definition, key: Sequence[str], data: pa.RecordBatchReader
) -> int:
    location = committer.location
    schema, conformed = conform_stream(data, definition.schema, name=location.name)
    batches = checked_partitions(conformed, definition.partition_by, location.name)
    rows = Stream(schema, guarded_keys(batches, key, location.name, None) if key else batches)
    staging = Staging(location)
    had_directory = location.is_local and location.path.exists()
    keep_data = False
    try:
        adds = staging.write(rows, definition.partition_by, definition.engine_configuration)
        version = _publish(committer, definition, adds)
        keep_data = True
    except CommitOutcomeUnknownError:
        keep_data = True
        raise
    finally:
        staging.close(keep_data=keep_data)
        if location.is_local and not keep_data and not had_directory:
            # Refused if somebody else has put something there meanwhile, or nothing was written yet.
            with suppress(OSError):
                location.path.rmdir()
    return version


def _publish(committer: Committer, definition: Definition, adds: list[AddAction]) -> int:
    """Make the table appear with its rows and return its version."""
    location = committer.location
    if definition.engine_configuration == definition.configuration:
        return _commit_first(committer, lambda stamp: _create_over(location, definition, adds, stamp))
    # The engine takes properties of our own, the key's among them, only for a table without rows.
    version = _commit_first(committer, lambda stamp: _create(location, definition, stamp))
    if not adds:
        return version
    try:
        return committer.commit(
            lambda table, stamp: _add(table, adds, stamp), rerun=False, silent=True
        ).version
    except CommitOutcomeUnknownError:
        raise
    except BaseException:
        _withdraw(committer)
        raise


def _add(table: DeltaTable, adds: list[AddAction], stamp: Stamp) -> None:
    table.create_write_transaction(
        [*adds],
        "append",
        table.schema(),
        partition_by=table.metadata().partition_columns,
        commit_properties=stamp(exact=True),
    )


def _commit_first(committer: Committer, create: Callable[[Stamp], None]) -> int:
    """Make a table's first commit and return its version, 0."""
    location, stamp = committer.location, Stamp(committer.config, committer.origin)
    try:
        with translated(location):
            create(stamp)
    except LakehouseError as error:
        # If the answer to our commit is lost, the engine tries again and finds the table that we have just created.
        if committer.landed(stamp.commit_id, -1) is None:
            if isinstance(error, CommitConflictError):
                raise _exists(location) from error
            raise
    committer.make_durable(0)
    return 0


def _create(location: Location, definition: Definition, stamp: Stamp) -> None:
    # Our own property names are unknown to the engine, hence raise_if_key_not_exists.
    DeltaTable.create(
        location.uri,
        definition.schema,
        partition_by=list(definition.partition_by),
        description=definition.description or None,
        configuration=definition.configuration,
        storage_options=location.storage_options,
        # With retries the engine commits its definition over a table that somebody else has just created
        # (38 of 40 races of four creators on a local disk had two or three "winners").
        commit_properties=stamp(exact=True),
        raise_if_key_not_exists=False,
    )


def _create_over(location: Location, definition: Definition, adds: list[AddAction], stamp: Stamp) -> None:
    create_table_with_add_actions(
        location.uri,
        Schema.from_arrow(definition.schema),
        adds,
        partition_by=list(definition.partition_by),
        description=definition.description or None,
        configuration=definition.configuration,
        storage_options=location.storage_options,
        commit_properties=stamp(exact=True),
    )


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
