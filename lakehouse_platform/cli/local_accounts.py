"""Accounts asked of the lakehouse itself, in this process, as who is signed in there or as the owner of the files."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from lakehouse_platform.cli.accounts import Facts, UserPage, facts
from lakehouse_platform.cli.local_sign_in import LocalSignIn
from lakehouse_platform.errors import AuthenticationFailedError
from lakehouse_platform.identity.api_keys import ApiKeyRecord
from lakehouse_platform.identity.users import UserRecord
from lakehouse_platform.model.actors import OWNER, Actor, ActorKind, Role, SubscriptionTier
from lakehouse_platform.model.rights import Right
from lakehouse_platform.services.accounts import AuthActor

# What is shown: whatever else a record holds stays in the house.
_USER = (
    "user_id", "username", "email", "role", "tier", "status", "is_service", "created_at", "updated_at", "last_login_at",
    "approved_at",
)  # fmt: skip
_NAMES = ("user_id", "username", "email", "role", "tier")
_KEY = ("key_id", "user_id", "label", "created_at", "expires_at", "last_used_at", "revoked_at")
_SESSION = (
    "session_id", "user_id", "created_at", "expires_at", "refreshed_at", "refresh_expires_at", "ip_address",
    "user_agent",
)  # fmt: skip


class LocalAccounts:
    """See `Accounts`."""

    def __init__(self, sign_in: LocalSignIn) -> None:
        self._sign_in = sign_in

    def whoami(self) -> Facts:
        """Return who acts, where, and through which door."""
        where = {"door": "cli", "place": self._sign_in.place}
        kept = self._sign_in.current()
        if kept is None:
            return {"kind": OWNER.kind.value, "user_id": OWNER.id, **where}
        actor = self._actor
        user = facts(self._auth.user(actor.id, actor=actor), _NAMES)
        life = {"session_id": kept.session_id, "expires_at": kept.expires_at}
        return {"kind": actor.kind.value, **user, **where, **life}

    def login(self, login: str, password: str) -> Facts:
        """Sign in, keep the sign-in for the next commands, and return who it is."""
        self._sign_in.begin(login, password)
        return self.whoami()

    def logout(self) -> bool:
        """End the sign-in and forget it; tell whether there was one."""
        return self._sign_in.end()

    def change_password(self, current: str, new: str) -> Facts:
        """Change the password of who is signed in."""
        actor = self._actor
        if actor.kind is ActorKind.OWNER:
            raise _nobody()
        return _user(self._auth.change_password(actor.id, current, new, actor=actor))

    def access_token(self) -> str:
        """Return the access token of who is signed in."""
        kept = self._sign_in.current()
        if kept is None:
            raise _nobody()
        return kept.access_token

    def mount_ticket(self) -> str:
        """Return the ticket with which who is signed in mounts tables."""
        actor = self._actor
        if actor.kind is ActorKind.OWNER:
            raise _nobody()
        return self._auth.mount_ticket(actor)

    def verify(self, token: str) -> Facts:
        """Return what an access token says."""
        return facts(self._auth.verify(token))

    def register(self, username: str, email: str, password: str, tier: str) -> Facts:
        """Make an account."""
        return _user(
            self._auth.register(username, email, password, SubscriptionTier(tier), actor=self._actor)
        )

    def bootstrap(self, username: str, email: str, password: str) -> Facts:
        """Make the first superadmin."""
        return _user(self._auth.bootstrap(username, email, password, actor=self._actor))

    def users(self, *, after: str = "", limit: int = 100) -> UserPage:
        """Return a page of the accounts."""
        page = self._auth.users(after=after, limit=limit, actor=self._actor)
        return UserPage([_user(user) for user in page.users], page.next_after)

    def user(self, user_id: str) -> Facts:
        """Return an account."""
        return _user(self._auth.user(user_id, actor=self._actor))

    def move(self, verb: str, user_id: str) -> Facts:
        """Approve, reject, disable or enable an account."""
        auth = self._auth
        moves = {
            "approve": auth.approve,
            "reject": auth.reject,
            "disable": auth.disable,
            "enable": auth.enable,
        }
        return _user(moves[verb](user_id, actor=self._actor))

    def change_role(self, user_id: str, role: str) -> Facts:
        """Give a user another role."""
        return _user(self._auth.change_role(user_id, Role(role), actor=self._actor))

    def change_tier(self, user_id: str, tier: str) -> Facts:
        """Give a user another subscription."""
        return _user(self._auth.change_tier(user_id, SubscriptionTier(tier), actor=self._actor))

    def set_password(self, user_id: str, password: str) -> Facts:
        """Give a user a new password."""
        return _user(self._auth.set_password(user_id, password, actor=self._actor))

    def sessions(self, user_id: str) -> list[Facts]:
        """Return a user's sign-ins."""
        return [facts(one, _SESSION) for one in self._auth.sessions(user_id, actor=self._actor)]

    def end_sessions(self, user_id: str) -> int:
        """End all sign-ins of a user and return how many there were."""
        return self._auth.logout_everywhere(user_id, actor=self._actor)

    def end_session(self, user_id: str, session_id: str) -> bool:
        """End one sign-in and tell whether it had not ended before."""
        actor = self._actor
        theirs = {one.session_id for one in self._auth.sessions(user_id, actor=actor)}
        return session_id in theirs and self._auth.revoke_session(session_id, actor=actor)

    def usage(self, user_id: str) -> Facts:
        """Return how much of the limits a user has used up."""
        return facts(self._auth.usage(user_id, actor=self._actor))

    def reset_usage(self, user_id: str) -> None:
        """Forget what a user has used up."""
        self._auth.reset_usage(user_id, actor=self._actor)

    def override_limits(self, user_id: str, per_minute: int | None, per_day: int | None) -> None:
        """Give a user limits in place of the tier's."""
        self._auth.override_limits(user_id, per_minute, per_day, actor=self._actor)

    def follow_tier(self, user_id: str) -> None:
        """Give a user the limits of the tier again."""
        self._auth.follow_tier(user_id, actor=self._actor)

    def grants(self, user_id: str) -> list[Facts]:
        """Return a user's rights on tables."""
        return [facts(grant) for grant in self._auth.grants(user_id, actor=self._actor)]

    def grant(self, user_id: str, table: str, right: str) -> Facts:
        """Give a user a right on a table."""
        return facts(self._auth.grant(user_id, table, Right(right), actor=self._actor))

    def revoke_grant(self, user_id: str, table: str) -> bool:
        """Take a user's right on a table away and tell whether there was one."""
        return self._auth.revoke_grant(user_id, table, actor=self._actor)

    def create_service_account(self, name: str, role: str, tier: str) -> Facts:
        """Make an account for a program."""
        made = self._auth.create_service_account(
            name, role=Role(role), tier=SubscriptionTier(tier), actor=self._actor
        )
        return _user(made)

    def create_key(self, user_id: str, label: str, scopes: Sequence[str], days: int | None) -> Facts:
        """Make an API key for a program's account; only here is it told."""
        life = None if days is None else timedelta(days=days)
        made = self._auth.create_api_key(user_id, label, scopes, life, actor=self._actor)
        return {"key": made.key, **_key(made.record)}

    def keys(self, user_id: str) -> list[Facts]:
        """Return the keys of a program's account."""
        return [_key(record) for record in self._auth.list_api_keys(user_id, actor=self._actor)]

    def revoke_key(self, user_id: str, key_id: str) -> bool:
        """Make a key void and tell whether it was not before."""
        return self._auth.revoke_api_key(user_id, key_id, actor=self._actor)

    @property
    def _auth(self) -> AuthActor:
        return self._sign_in.lakehouse.accounts

    @property
    def _actor(self) -> Actor:
        return self._sign_in.actor()


def _user(user: UserRecord) -> Facts:
    return facts(user, _USER)


def _key(record: ApiKeyRecord) -> Facts:
    return {**facts(record, _KEY), "scopes": record.scopes.texts()}


def _nobody() -> AuthenticationFailedError:
    return AuthenticationFailedError("Nobody is signed in here: sign in with `lakehouse login` first.")
