"""SQL of our own over rows in memory; never for text from users."""

from __future__ import annotations

import pyarrow as pa
from datafusion import SessionConfig, SessionContext


def query_arrow(rows: pa.Table, query: str) -> pa.Table:
    """Run a query over rows named `f`; one partition, so that their order stays.

    Args:
        rows: At least one row: DataFusion registers no empty batch list.
        query: SQL made of quoted identifiers and rendered predicates only.
    """
    context = SessionContext(SessionConfig().with_target_partitions(1))
    context.register_record_batches("f", [rows.combine_chunks().to_batches()])
    return context.sql(query).to_arrow_table()
