"""What rows look like to the commands that print them, whoever reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    import pyarrow as pa


@runtime_checkable
class RowSource(Protocol):
    """Rows that can be read as a stream of record batches."""

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        ...

    def reader(self) -> pa.RecordBatchReader:
        """Return the stream."""
        ...
