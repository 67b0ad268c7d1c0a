"""What was done: the kinds of action in the audit log, and how an action ended."""

from __future__ import annotations

from enum import StrEnum, auto


class ActionType(StrEnum):
    """The kind of an action; the value is what the audit log holds."""

    LOGIN = auto()
    LOGIN_FAILED = auto()
    LOGOUT = auto()
    LOGOUT_EVERYWHERE = auto()
    REGISTER = auto()
    TOKEN_REFRESH = auto()
    TOKEN_REJECTED = auto()
    # A count of accepted checks: one entry for each would be one for each request.
    TOKEN_CHECKS = auto()
    PASSWORD_CHANGE = auto()
    USER_APPROVED = auto()
    USER_REJECTED = auto()
    USER_DISABLED = auto()
    USER_ENABLED = auto()
    ROLE_CHANGE = auto()
    TIER_CHANGE = auto()
    SESSION_REVOKED = auto()
    MOUNT = auto()
    API_KEY_CREATED = auto()
    API_KEY_REVOKED = auto()
    GRANT_CHANGED = auto()
    DATA_READ = auto()
    DATA_WRITE = auto()
    SQL_QUERY = auto()
    DATA_EXPORT = auto()
    SCHEMA_CHANGE = auto()
    MAINTENANCE = auto()
    RESTORE = auto()
    GDPR_EXPORT = auto()
    GDPR_ERASURE = auto()
    RATE_LIMITED = auto()
    PERMISSION_DENIED = auto()
    ADMIN_ACTION = auto()
    CONFIG_CHANGE = auto()
    CUSTOM = auto()


BILLABLE = frozenset(
    {ActionType.DATA_READ, ActionType.DATA_WRITE, ActionType.SQL_QUERY, ActionType.DATA_EXPORT}
)
"""What a user is billed for: each such entry also becomes a row in `user_actions`."""


class Outcome(StrEnum):
    """How an action ended; `started` tells of a sensitive one before anything is done, whatever comes of it."""

    STARTED = auto()
    DONE = auto()
    DENIED = auto()
    FAILED = auto()
