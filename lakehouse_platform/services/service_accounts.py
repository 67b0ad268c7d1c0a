"""Accounts of programs and the API keys that they sign in with; every call goes through the gate."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from lakehouse_platform.errors import (
    AuthError,
    InvalidArgumentError,
    PermissionDeniedError,
    UserNotFoundError,
)
from lakehouse_platform.identity.api_keys import PREFIX, ApiKeyRecord, NewApiKey, is_key_id, no_such_key
from lakehouse_platform.identity.permissions import Permission
from lakehouse_platform.identity.users import UserRecord
from lakehouse_platform.model.actions import ActionType
from lakehouse_platform.model.actors import OWNER, Actor, ActorKind, Role, SubscriptionTier
from lakehouse_platform.model.rights import READ_EVERY_TABLE, Scopes
from lakehouse_platform.services.account_changes import require_may_act_on
from lakehouse_platform.services.account_face import AccountFace
from lakehouse_platform.services.gate import Note
from lakehouse_platform.services.ownership import upon
from lakehouse_platform.services.sign_ins import require_active

# Long enough to be no burden, short enough that a forgotten key dies.
DEFAULT_LIFE = timedelta(days=90)


class ServiceAccounts(AccountFace):
    """The part of `AuthActor` that is for programs; see there for the actor and the errors of every operation."""

    def create_service_account(
        self,
        name: str,
        *,
        role: Role = Role.USER,
        tier: SubscriptionTier = SubscriptionTier.FREE,
        actor: Actor = OWNER,
    ) -> UserRecord:
        """Make an account for a program: it is active at once, and has API keys in place of a password.

        Args:
            name: Its user name, which no other account has: 3 to 64 letters, digits, `.`, `_` and `-`.
            role: What it may do; only a superadmin makes one that may more than a user.
            tier: How much it may ask for.
            actor: Who asks.

        Raises:
            UserExistsError: The name is taken.
            InvalidNameError: The message says what is allowed.
        """

        def act(note: Note) -> UserRecord:
            _require_may_give(actor, role)
            made = self._parts.changes.make_service(name, role=role, tier=tier, now=self._parts.clock())
            note.details = f"{upon(made.user_id)} made for a program: {role}, {tier}"
            return made

        return self._parts.gate.run(actor, Permission.MAKE_SERVICE_ACCOUNT, None, act)

    def service_accounts(self, *, actor: Actor = OWNER) -> list[UserRecord]:
        """Return the accounts of programs, by name."""

        def act(note: Note) -> list[UserRecord]:
            found = self._parts.users.services()
            note.row_count = len(found)
            return found

        return self._parts.gate.run(actor, Permission.SEE_USERS, None, act, details="accounts of programs")

    def create_api_key(
        self,
        user_id: str,
        label: str,
        scopes: Scopes | str | Iterable[str] = READ_EVERY_TABLE,
        expires_in: timedelta | None = DEFAULT_LIFE,
        *,
        actor: Actor = OWNER,
    ) -> NewApiKey:
        """Make an API key for the account of a program. The key is shown this once; only its hash is kept.

        A key may what its account may, and of that only what its scopes say, whatever the account is granted later.

        Args:
            user_id: The account.
            label: What the key is for: 1 to 100 printable characters.
            scopes: `read:TABLE`, `write:TABLE`, `maintain:TABLE`, with `*` for every table; `admin` for what only
                administrators may. Without any the key reads what its account may read.
            expires_in: How long it counts, at most 3650 days; None for without end.
            actor: Who asks; never a program itself.

        Raises:
            UserNotFoundError: There is no such account.
            InvalidArgumentError: It is no program's, or label, scopes or life are not allowed.
            InvalidNameError: A scope names what cannot be a table.
        """

        def act(note: Note) -> NewApiKey:
            account = self._program(actor, user_id)
            asked = scopes if isinstance(scopes, Scopes) else Scopes.parse(scopes)
            _require_may_hold(account, asked)
            made = self._parts.keys.create(account.user_id, label, asked, self._parts.clock(), expires_in)
            note.details = f"{upon(user_id)}: key {made.key_id}, {asked}"
            return made

        return self._parts.gate.run(actor, Permission.MANAGE_KEYS, None, act, details=upon(user_id))

    def list_api_keys(self, user_id: str, *, actor: Actor = OWNER) -> list[ApiKeyRecord]:
        """Return the keys of an account, the newest first, also those that do not count any more."""
        return self._see(actor, user_id, "API keys", lambda: self._parts.keys.list(user_id))

    def revoke_api_key(self, user_id: str, key_id: str, *, actor: Actor = OWNER) -> bool:
        """Make a key of an account void at once, and tell whether it was not before.

        Raises:
            UserNotFoundError: There is no such account.
            InvalidArgumentError: It is no program's.
        """

        def act(_: Note) -> bool:
            self._program(actor, user_id)
            return self._parts.keys.revoke(user_id, key_id, self._parts.clock())

        # Somebody may have pasted the whole key, which must not come into the log.
        which = f"key {key_id}" if is_key_id(key_id) else "no key"
        return self._parts.gate.run(
            actor,
            Permission.MANAGE_KEYS,
            None,
            act,
            details=f"{upon(user_id)}: {which}",
            action=ActionType.API_KEY_REVOKED,
        )

    def authenticate_key(
        self, key: str, *, ip_address: str | None = None, user_agent: str | None = None
    ) -> Actor:
        """Check an API key, as is done with each request, and return the actor that other operations are done as.

        Role and tier are those that the account has now. Checks are counted, and audited as counts.

        Raises:
            AuthenticationFailedError: The key is unknown, wrong, revoked or past its time: which is not told.
            AccountDisabledError: The key is right, but its account was disabled.
            AuditWriteFailedError: The audit log cannot be written.
        """
        now = self._parts.clock()
        try:
            record = self._parts.keys.check(key, now)
            account = self._active_program(record.user_id)
        except AuthError as error:
            known = self._parts.keys.named(key)
            self._parts.checks.refused(error, ip_address, now, key_id=known.key_id if known else None)
            raise
        self._parts.keys.note_use(record, now)
        self._parts.checks.accepted(account.user_id, now, key_id=record.key_id)
        return Actor(
            id=account.user_id,
            kind=ActorKind.SERVICE,
            role=account.role,
            tier=account.tier,
            ip_address=ip_address,
            user_agent=user_agent,
            scopes=record.scopes,
            key_id=record.key_id,
        )

    def _active_program(self, user_id: str) -> UserRecord:
        try:
            account = self._parts.users.by_id(user_id)
        except UserNotFoundError as error:
            raise no_such_key() from error
        if not account.is_service:
            raise no_such_key()
        require_active(account)
        return account

    def _program(self, actor: Actor, user_id: str) -> UserRecord:
        """Return the account of a program that an actor may act upon."""
        account = self._parts.users.by_id(user_id)
        require_may_act_on(actor, account)
        if not account.is_service:
            raise InvalidArgumentError(
                "This account is a person's, who signs in with a password: API keys are for the accounts of programs, "
                "which create_service_account makes."
            )
        return account


def is_api_key(text: str) -> bool:
    """Tell whether a text is meant as an API key, and not as an access token."""
    return text.startswith(PREFIX)


def _require_may_give(actor: Actor, role: Role) -> None:
    if role is Role.USER or actor.kind is ActorKind.OWNER or actor.role is Role.SUPERADMIN:
        return
    raise PermissionDeniedError(
        "Only a superadmin may make an account for a program that may more than a user: ask one.",
        role=str(role),
    )


def _require_may_hold(account: UserRecord, scopes: Scopes) -> None:
    """Refuse a scope that would sleep until the account gets another role, when nobody thinks of the key any more."""
    if scopes.administration and account.role is Role.USER:
        raise InvalidArgumentError(
            "The account has the role of a user, so its keys cannot have the scope admin: take it out, or change the "
            "role first."
        )
