"""Accounts asked of a server, as who is signed in there."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from lakehouse_platform.cli.accounts import Facts, UserPage, facts
from lakehouse_platform.cli.server_sign_in import ServerSignIn
from lakehouse_platform.errors import AuthenticationFailedError, InvalidArgumentError
from lakehouse_platform.model.actors import ANONYMOUS, ActorKind, Role, SubscriptionTier
from lakehouse_platform.model.rights import Right

_NAMES = ("user_id", "username", "email", "role", "tier")


class ServerAccounts:
    """See `Accounts`."""

    def __init__(self, sign_in: ServerSignIn) -> None:
        self._sign_in = sign_in

    def whoami(self) -> Facts:
        """Return who acts, where, and through which door."""
        where = {"door": "http", "place": self._sign_in.place}
        if self._sign_in.current() is None:
            return {"kind": ANONYMOUS.kind.value, "user_id": ANONYMOUS.id, **where}
        user = facts(self._sign_in.ask(lambda client: client.user()), _NAMES)
        kept = self._sign_in.current()
        life = {"session_id": kept.session_id, "expires_at": kept.expires_at} if kept else {}
        return {"kind": ActorKind.USER.value, **user, **where, **life}

    def login(self, login: str, password: str) -> Facts:
        """Sign in, keep the sign-in for the next commands, and return who it is."""
        self._sign_in.begin(login, password)
        return self.whoami()

    def logout(self) -> bool:
        """End the sign-in and forget it; tell whether there was one."""
        return self._sign_in.end()

    def change_password(self, current: str, new: str) -> Facts:
        """Change the password of who is signed in."""
        return facts(self._sign_in.ask(lambda client: client.change_password(current, new)))

    def access_token(self) -> str:
        """Return the access token of who is signed in."""
        kept = self._sign_in.current()
        if kept is None:
            raise self._nobody()
        return kept.access_token

    def mount_ticket(self) -> str:
        """Return the ticket with which who is signed in mounts tables."""
        if self._sign_in.current() is None:
            raise self._nobody()
        return self._sign_in.ask(lambda client: client.mount_ticket())

    def verify(self, token: str) -> Facts:
        """Return what an access token says."""
        return facts(self._sign_in.ask_with(token, lambda client: client.verify()))

    def register(self, username: str, email: str, password: str, tier: str) -> Facts:
        """Make an account."""
        wanted = SubscriptionTier(tier)
        return facts(self._sign_in.ask(lambda client: client.register(username, email, password, wanted)))

    def bootstrap(self, username: str, email: str, password: str) -> Facts:
        """Refuse: only the owner of the lakehouse's files can."""
        raise InvalidArgumentError(
            "The first superadmin is made where the lakehouse's files are, not by a server."
        )

    def users(self, *, after: str = "", limit: int = 100) -> UserPage:
        """Return a page of the accounts."""
        page = self._sign_in.ask(lambda client: client.users(after=after, limit=limit))
        return UserPage([facts(user) for user in page.users], page.next_after)

    def user(self, user_id: str) -> Facts:
        """Return an account."""
        return facts(self._sign_in.ask(lambda client: client.user(user_id)))

    def move(self, verb: str, user_id: str) -> Facts:
        """Approve, reject, disable or enable an account."""
        return facts(
            self._sign_in.ask(
                lambda client: {
                    "approve": client.approve,
                    "reject": client.reject,
                    "disable": client.disable,
                    "enable": client.enable,
                }[verb](user_id)
            )
        )

    def change_role(self, user_id: str, role: str) -> Facts:
        """Give a user another role."""
        return facts(self._sign_in.ask(lambda client: client.change_role(user_id, Role(role))))

    def change_tier(self, user_id: str, tier: str) -> Facts:
        """Give a user another subscription."""
        return facts(self._sign_in.ask(lambda client: client.change_tier(user_id, SubscriptionTier(tier))))

    def set_password(self, user_id: str, password: str) -> Facts:
        """Give a user a new password."""
        return facts(self._sign_in.ask(lambda client: client.set_password(user_id, password)))

    def sessions(self, user_id: str) -> list[Facts]:
        """Return a user's sign-ins."""
        return [facts(one) for one in self._sign_in.ask(lambda client: client.sessions(user_id))]

    def end_sessions(self, user_id: str) -> int:
        """End all sign-ins of a user and return how many there were."""
        return self._sign_in.ask(lambda client: client.logout_everywhere(user_id))

    def end_session(self, user_id: str, session_id: str) -> bool:
        """End one sign-in and tell whether it had not ended before."""
        if session_id not in {one["session_id"] for one in self.sessions(user_id)}:
            return False
        self._sign_in.ask(lambda client: client.revoke_session(session_id, user_id))
        return True

    def usage(self, user_id: str) -> Facts:
        """Return how much of the limits a user has used up."""
        return facts(self._sign_in.ask(lambda client: client.usage(user_id)))

    def reset_usage(self, user_id: str) -> None:
        """Forget what a user has used up."""
        self._sign_in.ask(lambda client: client.reset_usage(user_id))

    def override_limits(self, user_id: str, per_minute: int | None, per_day: int | None) -> None:
        """Give a user limits in place of the tier's."""
        self._sign_in.ask(lambda client: client.override_limits(user_id, per_minute, per_day))

    def follow_tier(self, user_id: str) -> None:
        """Give a user the limits of the tier again."""
        self._sign_in.ask(lambda client: client.follow_tier(user_id))

    def grants(self, user_id: str) -> list[Facts]:
        """Return a user's rights on tables."""
        return [facts(one) for one in self._sign_in.ask(lambda client: client.grants(user_id))]

    def grant(self, user_id: str, table: str, right: str) -> Facts:
        """Give a user a right on a table."""
        return facts(self._sign_in.ask(lambda client: client.grant(user_id, table, Right(right))))

    def revoke_grant(self, user_id: str, table: str) -> bool:
        """Take a user's right on a table away and tell whether there was one."""
        had_one = table in {one["table"] for one in self.grants(user_id)}
        self._sign_in.ask(lambda client: client.revoke_grant(user_id, table))
        return had_one

    def create_service_account(self, name: str, role: str, tier: str) -> Facts:
        """Make an account for a program."""
        return facts(
            self._sign_in.ask(
                lambda client: client.create_service_account(
                    name, role=Role(role), tier=SubscriptionTier(tier)
                )
            )
        )

    def create_key(self, user_id: str, label: str, scopes: Sequence[str], days: int | None) -> Facts:
        """Make an API key for a program's account; only here is it told."""
        life = None if days is None else timedelta(days=days)
        return facts(self._sign_in.ask(lambda client: client.create_api_key(user_id, label, scopes, life)))

    def keys(self, user_id: str) -> list[Facts]:
        """Return the keys of a program's account."""
        found = [facts(key) for key in self._sign_in.ask(lambda client: client.list_api_keys(user_id))]
        for key in found:
            del key["key"]
        return found

    def revoke_key(self, user_id: str, key_id: str) -> bool:
        """Make a key void and tell whether it was not before."""
        counted = {key["key_id"] for key in self.keys(user_id) if not key["revoked_at"]}
        self._sign_in.ask(lambda client: client.revoke_api_key(user_id, key_id))
        return key_id in counted

    def _nobody(self) -> AuthenticationFailedError:
        return AuthenticationFailedError(
            f"Nobody is signed in at {self._sign_in.place}: sign in with `lakehouse login` first."
        )
