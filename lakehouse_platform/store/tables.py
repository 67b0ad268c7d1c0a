"""The registry of managed tables: schema checks, assets, erasure plans and docs all come from here.

Columns are the seed's and more of ours. Times are RFC 3339 text in UTC. A column that came with a later version may
be NULL, so that `DeltaStore.ensure` can add it to a table with older rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from lakehouse_platform.store.properties import APPEND_ONLY, STATISTICS_COLUMNS


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSpec:
    """What a managed table must look like.

    Attributes:
        name: Its name in the lakehouse.
        description: What it holds, for people.
        schema: Its columns; field metadata `description` explains each.
        primary_key: Columns that identify a row, and that every write is checked for; empty if none is declared.
        partition_by: Columns it is partitioned by; never personal data.
        z_order_by: Columns that Z-order clusters it by.
        personal_columns: Columns that hold personal data; they get no statistics in the log.
        secret_columns: Columns that are shown to nobody but the owner of the files.
        retention_days: How long rows are kept, or None for as long as the user exists.
        append_only: Whether every Delta writer must refuse to change or delete its rows.
        owner: Dagster owner of the asset.
    """

    name: str
    description: str
    schema: pa.Schema
    primary_key: tuple[str, ...]
    partition_by: tuple[str, ...] = ()
    z_order_by: tuple[str, ...] = ()
    personal_columns: tuple[str, ...] = ()
    secret_columns: tuple[str, ...] = ()
    retention_days: int | None = None
    append_only: bool = False
    owner: str = "team:platform"

    def properties(self) -> dict[str, str]:
        """Return the table properties that must hold before the first row is written."""
        indexed = [
            name
            for name in self.schema.names
            if name not in self.personal_columns and name not in self.partition_by
        ]
        statistics = {STATISTICS_COLUMNS: ",".join(indexed)} if self.personal_columns else {}
        return {**statistics, **({APPEND_ONLY: "true"} if self.append_only else {})}


def _column(name: str, data_type: pa.DataType, description: str, *, nullable: bool = False) -> pa.Field:
    return pa.field(name, data_type, nullable, {"description": description})


_USERS = TableSpec(
    name="users",
    description="Everyone who may sign in, with role and subscription tier.",
    schema=pa.schema(
        [
            _column("user_id", pa.string(), "Unique identifier (UUID)"),
            _column("username", pa.string(), "Display name, unique"),
            _column("email", pa.string(), "E-mail address, unique"),
            _column("password_hash", pa.string(), "Argon2id hash"),
            _column("role", pa.string(), "user, admin or superadmin"),
            _column("subscription_tier", pa.string(), "free, pro or enterprise"),
            _column("is_active", pa.bool_(), "Whether the account is enabled"),
            _column("created_at", pa.string(), "RFC 3339 time of registration"),
            _column("updated_at", pa.string(), "RFC 3339 time of the last change"),
            _column("status", pa.string(), "pending, active, rejected or disabled", nullable=True),
            # Uniqueness is looked up by these: a lookup by the address itself would leave it in the log.
            _column("email_key", pa.string(), "SHA-256 of the normalised e-mail address", nullable=True),
            _column("username_key", pa.string(), "SHA-256 of the normalised user name", nullable=True),
            _column("last_login_at", pa.string(), "RFC 3339 time of the last sign-in", nullable=True),
            _column("approved_at", pa.string(), "RFC 3339 time of the approval", nullable=True),
            _column("is_service", pa.bool_(), "Whether it is a program's, with API keys", nullable=True),
        ]
    ),
    primary_key=("user_id",),
    personal_columns=("user_id", "username", "email", "password_hash", "email_key", "username_key"),
    secret_columns=("password_hash", "email_key", "username_key"),
)

_SESSIONS = TableSpec(
    name="sessions",
    description="Live sign-ins; only a hash of each token is kept.",
    schema=pa.schema(
        [
            _column("session_id", pa.string(), "Unique session id"),
            _column("user_id", pa.string(), "Whose session it is"),
            _column("token_hash", pa.string(), "SHA-256 of the token"),
            _column("expires_at", pa.string(), "RFC 3339 time after which it is void and cannot be renewed"),
            _column("created_at", pa.string(), "RFC 3339 time of the sign-in"),
            _column("ip_address", pa.string(), "Client address", nullable=True),
            _column("user_agent", pa.string(), "Client program", nullable=True),
            _column("refresh_hash", pa.string(), "SHA-256 of the current refresh token", nullable=True),
            _column("refresh_expires_at", pa.string(), "RFC 3339 end of renewing it", nullable=True),
            _column("refreshed_at", pa.string(), "RFC 3339 time of the last renewal", nullable=True),
        ]
    ),
    primary_key=("session_id",),
    z_order_by=("expires_at",),
    personal_columns=("session_id", "user_id", "token_hash", "ip_address", "user_agent", "refresh_hash"),
    secret_columns=("token_hash", "refresh_hash"),
    retention_days=30,
)

_AUDIT_LOG = TableSpec(
    name="audit_log",
    description="Append-only record of who did what, partitioned by day.",
    schema=pa.schema(
        [
            _column("audit_id", pa.string(), "Unique entry id"),
            _column("timestamp", pa.string(), "RFC 3339 time of the action"),
            _column("user_id", pa.string(), "Who performed the action"),
            _column("action", pa.string(), "Kind of action"),
            _column("details", pa.string(), "Description for people", nullable=True),
            _column("ip_address", pa.string(), "Client address", nullable=True),
            _column("date_partition", pa.string(), "Day of the action, YYYY-MM-DD"),
            _column("sequence", pa.int64(), "Place in the chain, from 1", nullable=True),
            _column("outcome", pa.string(), "started, done, denied or failed", nullable=True),
            _column("resource", pa.string(), "Table or object acted on", nullable=True),
            _column("row_count", pa.int64(), "Rows read or written", nullable=True),
            _column("door", pa.string(), "Front end the action came through", nullable=True),
            _column("request_id", pa.string(), "Request or run that it belongs to", nullable=True),
            _column("salt", pa.string(), "Key of the commitment; an erasure destroys it", nullable=True),
            _column("commitment", pa.string(), "Salted SHA-256 of the personal fields", nullable=True),
            _column("entry_hash", pa.string(), "SHA-256 over the entry and the one before", nullable=True),
        ]
    ),
    # No declared key: each append would be checked against all rows, ever slower, for ids that are random UUIDs
    # and batches that their application transaction keeps from landing twice.
    primary_key=(),
    partition_by=("date_partition",),
    z_order_by=("user_id", "action"),
    personal_columns=("user_id", "details", "ip_address", "salt"),
    # Without the salt, the commitment tells nothing, and an export can still be checked against the chain.
    secret_columns=("salt",),
    retention_days=2555,
    append_only=True,
)

_USER_ACTIONS = TableSpec(
    name="user_actions",
    description="Billable actions of each user, partitioned by day.",
    schema=pa.schema(
        [
            _column("action_id", pa.string(), "Unique action id"),
            _column("timestamp", pa.string(), "RFC 3339 time of the action"),
            _column("user_id", pa.string(), "Who performed the action"),
            _column("action", pa.string(), "Kind of action"),
            _column("resource", pa.string(), "Table or object acted on", nullable=True),
            _column("row_count", pa.int64(), "Rows read or written", nullable=True),
            _column("duration_ms", pa.float64(), "Time it took, in milliseconds", nullable=True),
            _column("date_partition", pa.string(), "Day of the action, YYYY-MM-DD"),
        ]
    ),
    primary_key=(),  # for the reason that the audit log has none
    partition_by=("date_partition",),
    z_order_by=("user_id", "action"),
    personal_columns=("user_id",),
    retention_days=730,
)

_GRANTS = TableSpec(
    name="grants",
    description="Which tables a user may read, write or maintain beyond what the role allows.",
    schema=pa.schema(
        [
            _column("grant_id", pa.string(), "SHA-256 of user and table: each has one grant"),
            _column("user_id", pa.string(), "Who may"),
            _column("table_name", pa.string(), "On which table, or * for every one"),
            _column("right", pa.string(), "read, write or maintain; each includes those before it"),
            _column("granted_by", pa.string(), "Who allowed it"),
            _column("granted_at", pa.string(), "RFC 3339 time of the grant"),
        ]
    ),
    primary_key=("grant_id",),
    personal_columns=("grant_id", "user_id", "granted_by"),
)

_API_KEYS = TableSpec(
    name="api_keys",
    description="Keys with which programs sign in; only a hash of each is kept.",
    schema=pa.schema(
        [
            _column("key_id", pa.string(), "The part of the key that may be seen"),
            _column("user_id", pa.string(), "Whose key it is: the account of a program"),
            _column("label", pa.string(), "What it is for, for people"),
            _column("key_hash", pa.string(), "SHA-256 of the key"),
            _column("scopes", pa.string(), "What it may of what its account may, such as read:rides"),
            _column("expires_at", pa.string(), "RFC 3339 time after which it is void", nullable=True),
            _column("created_at", pa.string(), "RFC 3339 time when it was made"),
            _column("last_used_at", pa.string(), "RFC 3339 time of a use, right to the hour", nullable=True),
            _column("revoked_at", pa.string(), "RFC 3339 time since when it is void", nullable=True),
        ]
    ),
    primary_key=("key_id",),
    personal_columns=("key_id", "user_id", "label", "key_hash"),
    secret_columns=("key_hash",),
)

SYSTEM_TABLES: Mapping[str, TableSpec] = {
    spec.name: spec for spec in (_USERS, _SESSIONS, _AUDIT_LOG, _USER_ACTIONS, _GRANTS, _API_KEYS)
}


def system_table(name: str) -> TableSpec | None:
    """Return the platform's own table that a name means; None if it means none.

    Letters are folded: some file systems take `Users` for `users`.
    """
    return SYSTEM_TABLES.get(name.lower())
