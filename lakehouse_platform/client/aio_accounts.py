"""Operations on accounts of the asynchronous client."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from datetime import timedelta

from lakehouse_platform.client import account_calls as calls
from lakehouse_platform.client.records import ApiKey, Claims, Grant, Session, Usage, User, UserPage
from lakehouse_platform.client.requests import Call, T
from lakehouse_platform.model.actors import AccountStatus, Role, SubscriptionTier
from lakehouse_platform.model.rights import READ_EVERY_TABLE, Right, Scopes

# The most that the server gives at once.
_PAGE = 1000
_KEY_LIFE = timedelta(days=90)


class AsyncAccountOperations:
    """The part of the client that is about accounts; names, arguments and errors are those of `AuthActor`.

    Where a user id may be left out, the operation is about one's own account.
    """

    @abstractmethod
    async def _run(self, call: Call[T]) -> T:
        """Go through one operation."""

    # ── One's account ─────────────────────────────────────────────────────────────────────────────

    async def register(
        self, username: str, email: str, password: str, tier: SubscriptionTier = SubscriptionTier.FREE
    ) -> User:
        """Make an account, which may have to wait for approval."""
        return await self._run(calls.register(username, email, password, tier))

    async def verify(self) -> Claims:
        """Return what one's access token says."""
        return await self._run(calls.verify())

    async def change_password(self, old_password: str, new_password: str) -> User:
        """Change one's own password; all other sign-ins end."""
        return await self._run(calls.change_password(old_password, new_password))

    async def user(self, user_id: str | None = None) -> User:
        """Return an account."""
        return await self._run(calls.user(user_id))

    async def sessions(self, user_id: str | None = None) -> list[Session]:
        """Return the sign-ins that have not ended, the newest first."""
        return await self._run(calls.sessions(user_id))

    async def usage(self, user_id: str | None = None) -> Usage:
        """Return how much of the limits is used up."""
        return await self._run(calls.usage(user_id))

    async def grants(self, user_id: str | None = None) -> list[Grant]:
        """Return which tables a user may use beyond what the role allows."""
        return await self._run(calls.grants(user_id))

    async def revoke_session(self, session_id: str, user_id: str | None = None) -> None:
        """End one sign-in; one that has ended already stays so."""
        await self._run(calls.revoke_session(session_id, user_id))

    async def mount_ticket(self) -> str:
        """Return the ticket with which one mounts tables: the same as long as the sign-in lasts."""
        return await self._run(calls.mount_ticket())

    # ── Administration ────────────────────────────────────────────────────────────────────────────

    async def users(
        self, *, after: str = "", limit: int = 100, status: AccountStatus | None = None
    ) -> UserPage:
        """Return a page of all accounts, or of those that stand somewhere."""
        return await self._run(calls.users(after, limit, status))

    async def pending(self) -> list[User]:
        """Return the accounts that wait for approval."""
        found: list[User] = []
        after: str | None = ""
        while after is not None:
            page = await self._run(calls.users(after, _PAGE, AccountStatus.PENDING))
            found += page.users
            after = page.next_after
        return sorted(found, key=lambda user: user.created_at)

    async def approve(self, user_id: str) -> User:
        """Let who has registered sign in."""
        return await self._run(calls.move(user_id, "approve"))

    async def reject(self, user_id: str) -> User:
        """Refuse who has registered."""
        return await self._run(calls.move(user_id, "reject"))

    async def disable(self, user_id: str) -> User:
        """Keep a user from signing in, and end all sign-ins at once."""
        return await self._run(calls.move(user_id, "disable"))

    async def enable(self, user_id: str) -> User:
        """Let a disabled user sign in again."""
        return await self._run(calls.move(user_id, "enable"))

    async def change_role(self, user_id: str, role: Role) -> User:
        """Give a user another role, from the next request on."""
        return await self._run(calls.change_role(user_id, role))

    async def change_tier(self, user_id: str, tier: SubscriptionTier) -> User:
        """Give a user another subscription, from the next request on."""
        return await self._run(calls.change_tier(user_id, tier))

    async def set_password(self, user_id: str, new_password: str) -> User:
        """Give a user who has forgotten it a new password, and end all sign-ins."""
        return await self._run(calls.set_password(user_id, new_password))

    async def reset_usage(self, user_id: str) -> None:
        """Forget what a user has used up of the limits."""
        await self._run(calls.reset_usage(user_id))

    async def override_limits(self, user_id: str, per_minute: int | None, per_day: int | None) -> None:
        """Give a user limits of their own in place of the tier's; None is no limit."""
        await self._run(calls.override_limits(user_id, per_minute, per_day))

    async def follow_tier(self, user_id: str) -> None:
        """Take back an override: the limits are the tier's again."""
        await self._run(calls.follow_tier(user_id))

    async def grant(self, user_id: str, table: str, right: Right) -> Grant:
        """Give a user a right on a table, `*` for every one, in place of the one the user has there."""
        return await self._run(calls.grant(user_id, table, right))

    async def revoke_grant(self, user_id: str, table: str) -> None:
        """Take a user's right on a table away; without one nothing changes."""
        await self._run(calls.revoke_grant(user_id, table))

    # ── Programs ──────────────────────────────────────────────────────────────────────────────────

    async def create_service_account(
        self, name: str, *, role: Role = Role.USER, tier: SubscriptionTier = SubscriptionTier.FREE
    ) -> User:
        """Make an account for a program: it is active at once, and has API keys in place of a password."""
        return await self._run(calls.create_service_account(name, role, tier))

    async def service_accounts(self) -> list[User]:
        """Return the accounts of programs, by name."""
        return await self._run(calls.service_accounts())

    async def create_api_key(
        self,
        user_id: str,
        label: str,
        scopes: Scopes | str | Iterable[str] = READ_EVERY_TABLE,
        expires_in: timedelta | None = _KEY_LIFE,
    ) -> ApiKey:
        """Make an API key for the account of a program; what is returned is the only place that ever holds it.

        Args:
            user_id: The account.
            label: What the key is for.
            scopes: `read:TABLE`, `write:TABLE`, `maintain:TABLE`, with `*` for every table, and `admin`.
            expires_in: How long it counts, in whole days; None for without end.
        """
        return await self._run(calls.create_api_key(user_id, label, scopes, expires_in))

    async def list_api_keys(self, user_id: str) -> list[ApiKey]:
        """Return the keys of a program's account, the newest first."""
        return await self._run(calls.list_api_keys(user_id))

    async def revoke_api_key(self, user_id: str, key_id: str) -> None:
        """Make a key void at once; one that is void already stays so."""
        await self._run(calls.revoke_api_key(user_id, key_id))
