"""First rows of a table, written beside it before it exists, so that the table and its rows appear in one commit.

The files are written by the engine as a table of their own in a new subdirectory, and the real table's first commit
then refers to them there. Nothing else ever writes into that directory, so a failed creation can delete it safely, and
what a crash leaves behind, no version refers to.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import cast

import pyarrow as pa
from deltalake import write_deltalake
from deltalake.transaction import AddAction

from lakehouse_platform.store.engine import translated
from lakehouse_platform.store.location import Location
from lakehouse_platform.store.log import LOG_DIRECTORY, Action, read_commit
from lakehouse_platform.store.stream import Stream
from lakehouse_platform.store.workspace import DIRECTORY_PREFIX, moved_add


class Staging:
    """A subdirectory of a table that is about to be created.

    Attributes:
        location: Where it stands.
    """

    def __init__(self, owner: Location) -> None:
        self.location = owner.child(DIRECTORY_PREFIX + uuid.uuid4().hex)
        self._owner = owner

    def write(
        self, rows: Stream, partition_by: Sequence[str], configuration: Mapping[str, str]
    ) -> list[AddAction]:
        """Write the rows and return the actions that add their files to the table.

        Raises:
            LakehouseError: The rows' own error, or what the engine says of them.
        """
        with translated(self._owner), rows.source_errors():
            write_deltalake(
                self.location.uri,
                cast("pa.Table", rows.reader),
                mode="error",
                partition_by=list(partition_by),
                configuration=configuration,
                storage_options=self.location.storage_options,
            )
        adds = [cast("Action", action["add"]) for action in read_commit(self.location, 0) if "add" in action]
        return [moved_add(self.location.name, add) for add in adds]

    def close(self, *, keep_data: bool) -> None:
        """Delete the directory, or only its log if the table now refers to its files."""
        with translated(self._owner):
            if keep_data:
                self.location.filesystem().delete_dir(LOG_DIRECTORY)
            elif not self.location.is_local or self.location.path.is_dir():
                self._owner.filesystem().delete_dir(self.location.name)
