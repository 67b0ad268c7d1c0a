"""Changes of accounts by administrators: from which state to which, and by whom upon whom."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lakehouse_platform.errors import InvalidArgumentError, PermissionDeniedError
from lakehouse_platform.identity.passwords import Passwords
from lakehouse_platform.identity.sessions import Sessions
from lakehouse_platform.identity.users import UserRecord, Users
from lakehouse_platform.model.actors import AccountStatus, Actor, ActorKind, Role, SubscriptionTier

# By what an administrator does: the state after it, and the states before it in which it can be done.
_MOVES: Mapping[str, tuple[AccountStatus, frozenset[AccountStatus]]] = {
    "approve": (AccountStatus.ACTIVE, frozenset({AccountStatus.PENDING, AccountStatus.REJECTED})),
    "reject": (AccountStatus.REJECTED, frozenset({AccountStatus.PENDING})),
    "disable": (AccountStatus.DISABLED, frozenset({AccountStatus.ACTIVE})),
    "enable": (AccountStatus.ACTIVE, frozenset({AccountStatus.DISABLED})),
}

# RFC 2606 §2: no mail ever goes there. Every account has an address of its own.
_NO_DOMAIN = "service-accounts.invalid"
# No Argon2id hash, so that no password is right.
_NO_HASH = "none"

_Check = Callable[[UserRecord, Mapping[str, UserRecord]], None]


@dataclass(frozen=True, slots=True)
class AccountChanges:
    """Makes and changes accounts; who may is the gate's matter, upon whom is decided here.

    Attributes:
        users: The accounts.
        sessions: Their sign-ins.
        passwords: Policy and hashes.
    """

    users: Users
    sessions: Sessions
    passwords: Passwords

    def register(
        self,
        username: str,
        email: str,
        password: str,
        *,
        now: datetime,
        tier: SubscriptionTier = SubscriptionTier.FREE,
        role: Role = Role.USER,
        status: AccountStatus = AccountStatus.PENDING,
        only_if: Callable[[Mapping[str, UserRecord]], None] | None = None,
    ) -> UserRecord:
        """Make an account.

        Raises:
            PasswordTooWeakError, InvalidNameError, UserExistsError: See `Passwords` and `Users.create`.
            RateLimitedError: Too many passwords are being hashed.
        """
        self.passwords.require_strong(password, [username, email])
        record = UserRecord(
            user_id=str(uuid.uuid4()),
            username=username,
            email=email,
            password_hash=self.passwords.hash(password),
            role=role,
            tier=tier,
            status=status,
            created_at=now,
            updated_at=now,
            approved_at=now if status is AccountStatus.ACTIVE else None,
        )
        return self.users.create(record, only_if=only_if)

    def make_service(self, name: str, *, role: Role, tier: SubscriptionTier, now: datetime) -> UserRecord:
        """Make an account for a program: active, with no password that anybody could know.

        Raises:
            InvalidNameError, UserExistsError: See `Users.create`.
        """
        user_id = str(uuid.uuid4())
        record = UserRecord(
            user_id=user_id,
            username=name,
            email=f"{user_id}@{_NO_DOMAIN}",
            password_hash=_NO_HASH,
            role=role,
            tier=tier,
            status=AccountStatus.ACTIVE,
            created_at=now,
            updated_at=now,
            approved_at=now,
            is_service=True,
        )
        return self.users.create(record)

    def move(self, user_id: str, verb: str, actor: Actor, now: datetime) -> UserRecord:
        """Bring an account into another state, and end its sign-ins where it must not go on.

        Args:
            user_id: The account.
            verb: `approve`, `reject`, `disable` or `enable`.
            actor: Who does it.
            now: The time.

        Raises:
            UserNotFoundError: There is no such account.
            InvalidArgumentError: It is in no state from which that is possible, or it is the last superadmin.
            PermissionDeniedError: The actor may not act upon this account.
        """
        status, before = _MOVES[verb]

        def only_if(user: UserRecord, others: Mapping[str, UserRecord]) -> None:
            require_may_act_on(actor, user)
            if user.status not in before:
                raise InvalidArgumentError(
                    f"You cannot {verb} this account, because it is {user.status}.", status=user.status.value
                )
            if status is not AccountStatus.ACTIVE:
                _require_other_superadmin(user, others)

        fields: dict[str, Any] = {"approved_at": now} if verb == "approve" else {}
        changed = self.users.change(user_id, only_if=only_if, status=status, **fields)
        # Also when it is enabled: sign-ins that a crash left behind when it was disabled do not come back to life.
        self.sessions.revoke_all(user_id)
        return changed

    def change_role(self, user_id: str, role: Role, actor: Actor) -> UserRecord:
        """Give a user another role; it counts from the next request on.

        Raises:
            UserNotFoundError, InvalidArgumentError, PermissionDeniedError: See `move`.
        """

        def only_if(user: UserRecord, others: Mapping[str, UserRecord]) -> None:
            require_may_act_on(actor, user)
            if role is not Role.SUPERADMIN:
                _require_other_superadmin(user, others)

        return self.users.change(user_id, only_if=only_if, role=role)

    def change_tier(self, user_id: str, tier: SubscriptionTier, actor: Actor) -> UserRecord:
        """Give a user another subscription; it counts from the next request on.

        Raises:
            UserNotFoundError, PermissionDeniedError: See `move`.
        """
        return self.users.change(user_id, only_if=_upon(actor), tier=tier)

    def set_password(
        self, user: UserRecord, password: str, *, keep: str | None = None, only_if: _Check | None = None
    ) -> UserRecord:
        """Give a user a new password and end the user's sign-ins.

        Args:
            user: The user.
            password: The new password.
            keep: Id of a sign-in that goes on.
            only_if: See `Users.change`.

        Raises:
            PasswordTooWeakError: It is too easy to guess.
            InvalidArgumentError: The account is a program's.
        """
        require_person(user)
        self.passwords.require_strong(password, [user.username, user.email])
        hashed = self.passwords.hash(password)
        # Before and after: whatever moment a crash chooses, no sign-in from before the change outlives it.
        self.sessions.revoke_all(user.user_id, keep=keep)
        changed = self.users.change(user.user_id, only_if=only_if, password_hash=hashed)
        self.sessions.revoke_all(user.user_id, keep=keep)
        return changed


def require_may_act_on(actor: Actor, user: UserRecord) -> None:
    """Refuse that an administrator acts upon another one: only superadmins, and the owner of the files, may.

    Raises:
        PermissionDeniedError: The actor may not act upon this account.
    """
    if actor.kind is ActorKind.OWNER or actor.role is Role.SUPERADMIN or user.role is Role.USER:
        return
    raise PermissionDeniedError("Only a superadmin may act upon the account of an administrator: ask one.")


def require_person(user: UserRecord) -> None:
    """Refuse what goes with a password for the account of a program.

    Raises:
        InvalidArgumentError: The account is a program's.
    """
    if user.is_service:
        raise InvalidArgumentError(
            "This is the account of a program, which has no password: make an API key for it with create_api_key."
        )


def require_no_superadmin(users: Mapping[str, UserRecord]) -> None:
    """Refuse a second first superadmin.

    Raises:
        InvalidArgumentError: There is one.
    """
    if any(_is_active_superadmin(user) for user in users.values()):
        raise InvalidArgumentError(
            "There is a superadmin already: sign in as one, and give others that role with change_role."
        )


def _upon(actor: Actor) -> _Check:
    return lambda user, _: require_may_act_on(actor, user)


def _require_other_superadmin(user: UserRecord, users: Mapping[str, UserRecord]) -> None:
    if not _is_active_superadmin(user):
        return
    if not any(_is_active_superadmin(one) for one in users.values() if one.user_id != user.user_id):
        raise InvalidArgumentError(
            "This is the last active superadmin: give another user that role first, or nobody could give it any more."
        )


def _is_active_superadmin(user: UserRecord) -> bool:
    # A program's does not count: if its keys are lost, nobody can make another one as it.
    return user.role is Role.SUPERADMIN and user.is_active and not user.is_service
