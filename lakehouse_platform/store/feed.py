"""The change data feed: row changes that a table recorded while `delta.enableChangeDataFeed` was on."""

from __future__ import annotations

from typing import cast

import pyarrow as pa

from lakehouse_platform.errors import DeltaTableError, UnsupportedFeatureError
from lakehouse_platform.store.cast import plain_schema
from lakehouse_platform.store.engine import open_table, translated
from lakehouse_platform.store.location import Location
from lakehouse_platform.store.properties import CHANGE_DATA_FEED
from lakehouse_platform.store.scan import Rows, plain_reader
from lakehouse_platform.store.snapshot import properties


def change_feed(location: Location, start: int, end: int | None = None) -> Rows:
    """Return the row changes of versions `start` to `end`, both included.

    Columns are the table's and `_change_type`, `_commit_version`, `_commit_timestamp`.

    Args:
        location: The table.
        start: First version; the feed must have been on since.
        end: Last version; None for the newest.

    Raises:
        UnsupportedFeatureError: The feed is off, or was at `start`.
        VersionNotFoundError: A version does not exist.
        DataFilesMissingError: The files were vacuumed.
    """
    for version in (start, end):
        if version is not None:
            open_table(location, version)
    table = open_table(location)
    if properties(table).get(CHANGE_DATA_FEED) != "true":
        raise _off(location, f"set {CHANGE_DATA_FEED} to true; later changes will be recorded")

    def open_reader() -> pa.RecordBatchReader:
        try:
            with translated(location):
                stream = table.load_cdf(starting_version=start, ending_version=end)
        except DeltaTableError as error:
            if "does not have change data enabled" in error.message:
                raise _off(location, f"it was switched on after version {start}: begin later") from error
            raise
        raw = cast("pa.RecordBatchReader", pa.RecordBatchReader.from_stream(stream))
        return plain_reader(raw, plain_schema(raw.schema), location)

    return Rows(open_reader().schema, open_reader)


def _off(location: Location, advice: str) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(
        f"Table {location.name} has no change data feed for that range: {advice}.", table=location.name
    )
