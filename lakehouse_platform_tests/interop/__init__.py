"""Our tables read by engines that we did not write, and tables that we did not write read by ours.

Readers: Polars, DuckDB (its delta extension is built on the protocol's reference kernel), `deltalake` itself.
Spark is missing, because it cannot be had from package indexes alone: the wheel of `delta-spark` (4.4.1 was
looked at) holds Python files only, and fetches Delta's jars from Maven at run time. In its place stand tables
written by hand from the protocol's text, with what Spark and Databricks write and our engine does not.
"""
