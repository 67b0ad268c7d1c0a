"""What administrators do with accounts; every call goes through the gate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from lakehouse_platform.identity.grants import Grant
from lakehouse_platform.identity.permissions import Permission, Right
from lakehouse_platform.identity.users import Page, UserRecord
from lakehouse_platform.model.actions import ActionType
from lakehouse_platform.model.actors import OWNER, AccountStatus, Actor, Role, SubscriptionTier
from lakehouse_platform.services.account_changes import require_may_act_on
from lakehouse_platform.services.account_face import AccountFace
from lakehouse_platform.services.gate import Note
from lakehouse_platform.services.ownership import upon


class Administration(AccountFace):
    """The part of `AuthActor` that is for administrators; see there for the actor and the errors of every operation."""

    def users(
        self, *, after: str = "", limit: int = 100, status: AccountStatus | None = None, actor: Actor = OWNER
    ) -> Page:
        """Return a page of all accounts; see `Users.all`."""

        def act(note: Note) -> Page:
            page = self._parts.users.all(after=after, limit=limit, status=status)
            note.row_count = len(page.users)
            return replace(page, users=[self._parts.with_last_sign_in(user) for user in page.users])

        return self._parts.gate.run(actor, Permission.SEE_USERS, None, act, details="accounts")

    def pending(self, *, actor: Actor = OWNER) -> list[UserRecord]:
        """Return the accounts that wait for approval, the oldest first."""
        return self._parts.gate.run(
            actor,
            Permission.SEE_USERS,
            None,
            lambda _: self._parts.users.pending(),
            details="pending accounts",
        )

    def approve(self, user_id: str, *, actor: Actor = OWNER) -> UserRecord:
        """Let who has registered sign in.

        Raises:
            UserNotFoundError: There is no such account.
            InvalidArgumentError: It waits for no approval.
        """
        return self._move(Permission.APPROVE_USER, ActionType.USER_APPROVED, user_id, "approve", actor)

    def reject(self, user_id: str, *, actor: Actor = OWNER) -> UserRecord:
        """Refuse who has registered; see `approve`."""
        return self._move(Permission.APPROVE_USER, ActionType.USER_REJECTED, user_id, "reject", actor)

    def disable(self, user_id: str, *, actor: Actor = OWNER) -> UserRecord:
        """Keep a user from signing in, and end all sign-ins at once.

        Raises:
            UserNotFoundError: There is no such account.
            InvalidArgumentError: It is not active, or is the last superadmin.
        """
        return self._move(Permission.DISABLE_USER, ActionType.USER_DISABLED, user_id, "disable", actor)

    def enable(self, user_id: str, *, actor: Actor = OWNER) -> UserRecord:
        """Let a disabled user sign in again; see `disable`."""
        return self._move(Permission.DISABLE_USER, ActionType.USER_ENABLED, user_id, "enable", actor)

    def change_role(self, user_id: str, role: Role, *, actor: Actor = OWNER) -> UserRecord:
        """Give a user another role, from the next request on.

        Raises:
            UserNotFoundError: There is no such account.
            InvalidArgumentError: It is the last superadmin.
        """
        return self._parts.gate.run(
            actor,
            Permission.CHANGE_ROLE,
            None,
            lambda _: self._parts.changes.change_role(user_id, role, actor),
            details=f"{upon(user_id)} becomes {role}",
        )

    def change_tier(self, user_id: str, tier: SubscriptionTier, *, actor: Actor = OWNER) -> UserRecord:
        """Give a user another subscription, from the next request on.

        Raises:
            UserNotFoundError: There is no such account.
        """
        return self._parts.gate.run(
            actor,
            Permission.CHANGE_TIER,
            None,
            lambda _: self._parts.changes.change_tier(user_id, tier, actor),
            details=f"{upon(user_id)} becomes {tier}",
        )

    def set_password(self, user_id: str, new_password: str, *, actor: Actor = OWNER) -> UserRecord:
        """Give a user who has forgotten it a new password, and end all sign-ins.

        Raises:
            UserNotFoundError: There is no such account.
            PasswordTooWeakError: It is too easy to guess.
        """

        def act(_: Note) -> UserRecord:
            user = self._parts.users.by_id(user_id)
            require_may_act_on(actor, user)
            changed = self._parts.changes.set_password(
                user, new_password, only_if=lambda found, _: require_may_act_on(actor, found)
            )
            self._parts.throttle.forgive(user.username)
            self._parts.throttle.forgive(user.email)
            return changed

        return self._parts.gate.run(actor, Permission.SET_PASSWORD, None, act, details=upon(user_id))

    def reset_usage(self, user_id: str, *, actor: Actor = OWNER) -> None:
        """Forget what a user has used up of the limits."""
        self._change_limits(actor, user_id, "usage forgotten", lambda: self._parts.limits.reset(user_id))

    def override_limits(
        self, user_id: str, per_minute: int | None, per_day: int | None, *, actor: Actor = OWNER
    ) -> None:
        """Give a user limits of their own in place of the tier's; None is no limit.

        Raises:
            InvalidArgumentError: A limit is below 0.
        """
        text = f"{per_minute} a minute, {per_day} a day"
        self._change_limits(
            actor, user_id, text, lambda: self._parts.limits.override(user_id, per_minute, per_day)
        )

    def follow_tier(self, user_id: str, *, actor: Actor = OWNER) -> None:
        """Take back an override: the limits are the tier's again."""
        self._change_limits(
            actor, user_id, "limits of the tier", lambda: self._parts.limits.follow_tier(user_id)
        )

    def grant(self, user_id: str, table: str, right: Right, *, actor: Actor = OWNER) -> Grant:
        """Give a user a right on a table, `*` for every one, in place of the one the user has there.

        Raises:
            UserNotFoundError: There is no such user.
            InvalidNameError, InvalidArgumentError: There is no such table, or it is the platform's own.
        """

        def act(_: Note) -> Grant:
            require_may_act_on(actor, self._parts.users.by_id(user_id))
            return self._parts.grants.grant(user_id, table, right, actor.id)

        details = f"{upon(user_id)} may {right}"
        return self._parts.gate.run(actor, Permission.CHANGE_GRANTS, table, act, details=details)

    def revoke_grant(self, user_id: str, table: str, *, actor: Actor = OWNER) -> bool:
        """Take a user's right on a table away, and tell whether there was one.

        Raises:
            UserNotFoundError: There is no such user.
        """

        def act(_: Note) -> bool:
            require_may_act_on(actor, self._parts.users.by_id(user_id))
            return self._parts.grants.revoke(user_id, table)

        details = f"{upon(user_id)} may no more"
        return self._parts.gate.run(actor, Permission.CHANGE_GRANTS, table, act, details=details)

    def _move(
        self, permission: Permission, action: ActionType, user_id: str, verb: str, actor: Actor
    ) -> UserRecord:
        return self._parts.gate.run(
            actor,
            permission,
            None,
            lambda _: self._parts.changes.move(user_id, verb, actor, self._parts.clock()),
            details=upon(user_id),
            action=action,
        )

    def _change_limits(self, actor: Actor, user_id: str, what: str, change: Callable[[], None]) -> None:
        def act(_: Note) -> None:
            # A limit of 0 would keep a superadmin from everything, also from stopping who set it.
            require_may_act_on(actor, self._parts.users.by_id(user_id))
            change()

        self._parts.gate.run(actor, Permission.CHANGE_LIMITS, None, act, details=f"{upon(user_id)}: {what}")
