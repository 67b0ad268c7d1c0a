"""How tables are named and filed in the asset catalogue: keys, groups, owners, kinds, tags."""

import hashlib
import re

import dagster as dg

CATALOG = "lakehouse"
SYSTEM_GROUP = "system_tables"
USER_GROUP = "user_tables"
USER_OWNER = "team:data"
KINDS = {"deltalake", "table"}
SYSTEM_TAGS = {"lakehouse/managed": "platform"}
USER_TAGS = {"lakehouse/managed": "user"}
MAINTENANCE_TAGS = {"lakehouse/kind": "maintenance"}

_NOT_IN_NODE_NAMES = re.compile(r"[^A-Za-z0-9_]")


def table_key(table: str) -> dg.AssetKey:
    """Return the asset key of a table."""
    return dg.AssetKey([CATALOG, table])


def node_name(prefix: str, table: str) -> str:
    """Return a name for the op behind a table; Dagster allows fewer characters there than tables may have."""
    plain = _NOT_IN_NODE_NAMES.sub("_", table)
    if plain == table:
        return f"{prefix}_{table}"
    # "a.b" and "a-b" must not meet in one name.
    return f"{prefix}_{plain}_{hashlib.sha256(table.encode()).hexdigest()[:8]}"
