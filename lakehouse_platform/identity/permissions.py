"""What each role may do: one table, which the gate asks, the tests walk and `docs/permissions.md` is made from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum, auto

from lakehouse_platform.model.actions import ActionType
from lakehouse_platform.model.actors import Actor, ActorKind, Role
from lakehouse_platform.model.rights import Right


class Permission(StrEnum):
    """A kind of operation that somebody may do or not."""

    # Tables.
    LIST_TABLES = auto()
    READ_TABLE = auto()
    RUN_SQL = auto()
    EXPORT_TABLE = auto()
    WRITE_TABLE = auto()
    MAINTAIN_TABLE = auto()
    ALTER_TABLE = auto()
    RESTORE_TABLE = auto()
    CREATE_TABLE = auto()
    DROP_TABLE = auto()
    # One's own account.
    REGISTER = auto()
    LOGIN = auto()
    REFRESH = auto()
    LOGOUT = auto()
    CHANGE_OWN_PASSWORD = auto()
    SEE_OWN_ACCOUNT = auto()
    MOUNT = auto()
    # Other people's accounts.
    BOOTSTRAP = auto()
    SEE_USERS = auto()
    APPROVE_USER = auto()
    DISABLE_USER = auto()
    CHANGE_TIER = auto()
    CHANGE_ROLE = auto()
    SET_PASSWORD = auto()
    MANAGE_SESSIONS = auto()
    CHANGE_LIMITS = auto()
    CHANGE_GRANTS = auto()
    MAKE_SERVICE_ACCOUNT = auto()
    MANAGE_KEYS = auto()
    # The audit log.
    READ_AUDIT = auto()
    WRITE_AUDIT = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Who may do a kind of operation, and how it is treated.

    Attributes:
        meaning: What it is, for people.
        roles: The roles that may.
        action: What the audit log calls it.
        failed: What the audit log calls it when it did not succeed; None for the same.
        right: The right on the table that is needed beside the role; None if it concerns no table.
        is_public: Whether nobody needs to be signed in.
        is_sensitive: Whether the intent must be in the audit log before anything is done.
        is_free: Whether it does not count towards the tier's limit: what keeps an account safe must always work.
        is_for_people: Whether no API key may, whatever its scopes: with it a key could make itself mightier.
    """

    meaning: str
    roles: frozenset[Role]
    action: ActionType
    failed: ActionType | None = None
    right: Right | None = None
    is_public: bool = False
    is_sensitive: bool = False
    is_free: bool = False
    is_for_people: bool = False


_ALL = frozenset(Role)
_ADMINS = frozenset({Role.ADMIN, Role.SUPERADMIN})
_SUPERADMINS = frozenset({Role.SUPERADMIN})

RULES: Mapping[Permission, Rule] = {
    Permission.LIST_TABLES: Rule(
        meaning="see the names of the tables that one may read", roles=_ALL, action=ActionType.CUSTOM
    ),
    Permission.READ_TABLE: Rule(
        meaning="read a table, also as it was before", roles=_ALL, action=ActionType.DATA_READ, right=Right.READ
    ),
    Permission.RUN_SQL: Rule(
        meaning="run SQL over a table", roles=_ALL, action=ActionType.SQL_QUERY, right=Right.READ
    ),
    Permission.EXPORT_TABLE: Rule(
        meaning="export a table to files", roles=_ALL, action=ActionType.DATA_EXPORT, right=Right.READ,
        is_sensitive=True,
    ),
    Permission.WRITE_TABLE: Rule(
        meaning="add, change and delete rows", roles=_ALL, action=ActionType.DATA_WRITE, right=Right.WRITE
    ),
    Permission.MAINTAIN_TABLE: Rule(
        meaning="compact, Z-order and vacuum a table", roles=_ALL, action=ActionType.MAINTENANCE,
        right=Right.MAINTAIN,
    ),
    Permission.ALTER_TABLE: Rule(
        meaning="change columns, key, constraints and properties", roles=_ALL, action=ActionType.SCHEMA_CHANGE,
        right=Right.MAINTAIN, is_sensitive=True,
    ),
    Permission.RESTORE_TABLE: Rule(
        meaning="bring back an old version", roles=_ALL, action=ActionType.RESTORE, right=Right.MAINTAIN,
        is_sensitive=True,
    ),
    Permission.CREATE_TABLE: Rule(meaning="create a table", roles=_ADMINS, action=ActionType.SCHEMA_CHANGE),
    Permission.DROP_TABLE: Rule(
        meaning="delete a table with all its versions", roles=_ADMINS, action=ActionType.SCHEMA_CHANGE,
        right=Right.MAINTAIN, is_sensitive=True,
    ),
    Permission.REGISTER: Rule(
        meaning="register an account", roles=_ALL, action=ActionType.REGISTER, is_public=True, is_free=True
    ),
    Permission.LOGIN: Rule(
        meaning="sign in", roles=_ALL, action=ActionType.LOGIN, failed=ActionType.LOGIN_FAILED, is_public=True,
        is_free=True,
    ),
    Permission.REFRESH: Rule(
        meaning="renew a sign-in", roles=_ALL, action=ActionType.TOKEN_REFRESH, failed=ActionType.TOKEN_REJECTED,
        is_public=True, is_free=True,
    ),
    Permission.LOGOUT: Rule(
        meaning="end one's own sign-ins", roles=_ALL, action=ActionType.LOGOUT, is_public=True, is_free=True
    ),
    Permission.CHANGE_OWN_PASSWORD: Rule(
        meaning="change one's own password", roles=_ALL, action=ActionType.PASSWORD_CHANGE, is_sensitive=True,
        is_free=True, is_for_people=True,
    ),
    Permission.SEE_OWN_ACCOUNT: Rule(
        meaning="see one's own account, sign-ins and usage", roles=_ALL, action=ActionType.CUSTOM, is_free=True
    ),
    Permission.MOUNT: Rule(
        meaning="mount tables as files", roles=_ALL, action=ActionType.MOUNT, is_for_people=True
    ),
    Permission.BOOTSTRAP: Rule(
        meaning="make the first superadmin, while there is none", roles=frozenset(),
        action=ActionType.ADMIN_ACTION, is_sensitive=True,
    ),
    Permission.SEE_USERS: Rule(
        meaning="see accounts, their sign-ins and usage", roles=_ADMINS, action=ActionType.ADMIN_ACTION
    ),
    Permission.APPROVE_USER: Rule(
        meaning="approve or reject who has registered", roles=_ADMINS, action=ActionType.USER_APPROVED,
        is_sensitive=True,
    ),
    Permission.DISABLE_USER: Rule(
        meaning="disable and enable accounts", roles=_ADMINS, action=ActionType.USER_DISABLED, is_sensitive=True
    ),
    Permission.CHANGE_TIER: Rule(
        meaning="change a subscription", roles=_ADMINS, action=ActionType.TIER_CHANGE, is_sensitive=True
    ),
    Permission.CHANGE_ROLE: Rule(
        meaning="change a role", roles=_SUPERADMINS, action=ActionType.ROLE_CHANGE, is_sensitive=True
    ),
    Permission.SET_PASSWORD: Rule(
        meaning="give a user a new password", roles=_ADMINS, action=ActionType.PASSWORD_CHANGE, is_sensitive=True
    ),
    Permission.MANAGE_SESSIONS: Rule(
        meaning="end other people's sign-ins", roles=_ADMINS, action=ActionType.SESSION_REVOKED,
        is_sensitive=True,
    ),
    Permission.CHANGE_LIMITS: Rule(
        meaning="reset or override a user's limits", roles=_ADMINS, action=ActionType.CONFIG_CHANGE,
        is_sensitive=True,
    ),
    Permission.CHANGE_GRANTS: Rule(
        meaning="grant and revoke rights on tables", roles=_ADMINS, action=ActionType.GRANT_CHANGED,
        is_sensitive=True,
    ),
    Permission.MAKE_SERVICE_ACCOUNT: Rule(
        meaning="make an account for a program", roles=_ADMINS, action=ActionType.ADMIN_ACTION, is_sensitive=True,
        is_for_people=True,
    ),
    Permission.MANAGE_KEYS: Rule(
        meaning="make and revoke API keys", roles=_ADMINS, action=ActionType.API_KEY_CREATED, is_sensitive=True,
        is_for_people=True,
    ),
    Permission.READ_AUDIT: Rule(
        meaning="read, verify and bill from the audit log", roles=_ADMINS, action=ActionType.ADMIN_ACTION
    ),
    Permission.WRITE_AUDIT: Rule(
        meaning="add entries to the audit log by hand", roles=_ADMINS, action=ActionType.CUSTOM
    ),
}  # fmt: skip

MATRIX: Mapping[Permission, frozenset[Role]] = {permission: rule.roles for permission, rule in RULES.items()}
"""Who may do what; the local owner of the files may do everything."""


def allows(actor: Actor, permission: Permission, grant: Right | None = None) -> bool:
    """Tell whether an actor may do a kind of operation.

    Args:
        actor: Who asks.
        permission: What for.
        grant: The right that the actor has on the table that it concerns, as `Grants.right_of` tells it: narrowed
            to the scopes of an API key; None for no right, or no table.
    """
    if actor.kind is ActorKind.OWNER:
        return True
    rule = RULES[permission]
    if actor.kind is ActorKind.ANONYMOUS:
        return rule.is_public
    if actor.role not in rule.roles or not _is_in_scope(actor, rule):
        return False
    return rule.right is None or (grant is not None and grant.includes(rule.right))


def _is_in_scope(actor: Actor, rule: Rule) -> bool:
    """Tell whether an API key may ask for it at all; what it may on which table is in the right."""
    if actor.kind is ActorKind.SERVICE and (actor.scopes is None or rule.is_for_people):
        return False
    is_administration = Role.USER not in rule.roles
    return not is_administration or actor.scopes is None or actor.scopes.administration
