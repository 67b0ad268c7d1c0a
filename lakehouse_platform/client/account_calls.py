"""Operations on accounts as requests, and what their answers mean."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from lakehouse_platform.client.decoding import decoded, decoded_list, member, text, whole_number
from lakehouse_platform.client.problems import json_of
from lakehouse_platform.client.records import ApiKey, Claims, Grant, Session, Usage, User, UserPage
from lakehouse_platform.client.requests import Answer, Call, Request, T, query, segment
from lakehouse_platform.errors import InvalidArgumentError
from lakehouse_platform.model.actors import AccountStatus, Role, SubscriptionTier
from lakehouse_platform.model.rights import Right, Scopes

_AUTH, _ME, _USERS, _PROGRAMS = "/v1/auth", "/v1/me", "/v1/users", "/v1/service-accounts"
_DAY = timedelta(days=1)


# ── Signing in and out ────────────────────────────────────────────────────────────────────────────────


def register(username: str, email: str, password: str, tier: SubscriptionTier) -> Call[User]:
    """Return the call that makes an account."""
    fields = {"username": username, "email": email, "password": password, "tier": tier.value}
    return Call(Request(method="POST", path=f"{_AUTH}/register", fields=fields, is_signed=False), _user)


def login(login: str, password: str) -> Request:
    """Return the request that signs in; it is never sent twice, for each is counted."""
    fields = {"login": login, "password": password}
    return Request(method="POST", path=f"{_AUTH}/login", fields=fields, is_signed=False, is_single=True)


def verify() -> Call[Claims]:
    """Return the call for what one's access token says."""
    return _get(f"{_AUTH}/verify", Claims)


def logout() -> Call[None]:
    """Return the call that ends this sign-in."""
    return Call(Request(method="POST", path=f"{_AUTH}/logout"), _nothing)


def logout_everywhere(user_id: str | None) -> Call[int]:
    """Return the call that ends all sign-ins of a user, or one's own."""
    if user_id is None:
        return Call(Request(method="POST", path=f"{_AUTH}/logout-everywhere"), _ended)
    return Call(Request(method="DELETE", path=_of(user_id, "sessions")), _ended)


def change_password(old_password: str, new_password: str) -> Call[User]:
    """Return the call that changes one's own password."""
    fields = {"current_password": old_password, "new_password": new_password}
    return Call(Request(method="POST", path=f"{_AUTH}/password", fields=fields), _user)


# ── One's account, or another's ───────────────────────────────────────────────────────────────────────


def user(user_id: str | None) -> Call[User]:
    """Return the call for an account."""
    return _get(_of(user_id), User)


def sessions(user_id: str | None) -> Call[list[Session]]:
    """Return the call for sign-ins that have not ended."""
    return _list(_of(user_id, "sessions"), Session, "sessions")


def usage(user_id: str | None) -> Call[Usage]:
    """Return the call for what is used up of the limits."""
    return _get(_of(user_id, "usage"), Usage)


def grants(user_id: str | None) -> Call[list[Grant]]:
    """Return the call for rights on tables."""
    return _list(_of(user_id, "grants"), Grant, "grants")


def revoke_session(session_id: str, user_id: str | None) -> Call[None]:
    """Return the call that ends one sign-in."""
    path = _of(user_id, f"sessions/{segment(session_id)}")
    return Call(Request(method="DELETE", path=path), _nothing)


def mount_ticket() -> Call[str]:
    """Return the call for the ticket with which one mounts tables."""
    return Call(Request(method="POST", path=f"{_ME}/mount-tickets"), _ticket)


# ── Administration ────────────────────────────────────────────────────────────────────────────────────


def users(after: str, limit: int, status: AccountStatus | None) -> Call[UserPage]:
    """Return the call for a page of all accounts."""
    asked = query(after=after or None, limit=limit, status=status.value if status else None)

    def read(answer: Answer) -> UserPage:
        page = json_of(answer)
        return decoded(UserPage, {"users": member(page, "users"), "next_after": member(page, "next")})

    return Call(Request(method="GET", path=_USERS, query=asked), read)


def move(user_id: str, verb: str) -> Call[User]:
    """Return the call that approves, rejects, disables or enables an account."""
    return Call(Request(method="POST", path=_of(user_id, verb)), _user)


def change_role(user_id: str, role: Role) -> Call[User]:
    """Return the call that gives a user another role."""
    return Call(Request(method="PUT", path=_of(user_id, "role"), fields={"role": role.value}), _user)


def change_tier(user_id: str, tier: SubscriptionTier) -> Call[User]:
    """Return the call that gives a user another subscription."""
    return Call(Request(method="PUT", path=_of(user_id, "tier"), fields={"tier": tier.value}), _user)


def set_password(user_id: str, new_password: str) -> Call[User]:
    """Return the call that gives a user a new password."""
    return Call(
        Request(method="PUT", path=_of(user_id, "password"), fields={"new_password": new_password}), _user
    )


def reset_usage(user_id: str) -> Call[None]:
    """Return the call that forgets what a user has used up."""
    return Call(Request(method="DELETE", path=_of(user_id, "usage")), _nothing)


def override_limits(user_id: str, per_minute: int | None, per_day: int | None) -> Call[None]:
    """Return the call that gives a user limits of their own."""
    fields = {"per_minute": per_minute, "per_day": per_day}
    return Call(Request(method="PUT", path=_of(user_id, "limits"), fields=fields), _nothing)


def follow_tier(user_id: str) -> Call[None]:
    """Return the call that takes such limits back."""
    return Call(Request(method="DELETE", path=_of(user_id, "limits")), _nothing)


def grant(user_id: str, table: str, right: Right) -> Call[Grant]:
    """Return the call that gives a user a right on a table."""
    path = _of(user_id, f"grants/{segment(table)}")
    request = Request(method="PUT", path=path, fields={"right": right.value})
    return Call(request, lambda answer: decoded(Grant, json_of(answer)))


def revoke_grant(user_id: str, table: str) -> Call[None]:
    """Return the call that takes it away."""
    return Call(Request(method="DELETE", path=_of(user_id, f"grants/{segment(table)}")), _nothing)


# ── Programs ──────────────────────────────────────────────────────────────────────────────────────────


def create_service_account(name: str, role: Role, tier: SubscriptionTier) -> Call[User]:
    """Return the call that makes an account for a program."""
    fields = {"name": name, "role": role.value, "tier": tier.value}
    return Call(Request(method="POST", path=_PROGRAMS, fields=fields), _user)


def service_accounts() -> Call[list[User]]:
    """Return the call for the accounts of programs."""
    return _list(_PROGRAMS, User, "service_accounts")


def create_api_key(
    user_id: str, label: str, scopes: Scopes | str | Iterable[str], expires_in: timedelta | None
) -> Call[ApiKey]:
    """Return the call that makes an API key.

    Raises:
        InvalidArgumentError: Its life is not a number of whole days.
    """
    asked = scopes if isinstance(scopes, Scopes) else Scopes.parse(scopes)
    if expires_in is not None and expires_in % _DAY:
        raise InvalidArgumentError("An API key lives a number of whole days: give such a time, or None.")
    fields: dict[str, Any] = {"label": label, "scopes": asked.texts()}
    fields["expires_in_days"] = None if expires_in is None else expires_in // _DAY
    request = Request(method="POST", path=_keys(user_id), fields=fields)
    return Call(request, lambda answer: decoded(ApiKey, json_of(answer)))


def list_api_keys(user_id: str) -> Call[list[ApiKey]]:
    """Return the call for the keys of a program's account."""
    return _list(_keys(user_id), ApiKey, "keys")


def revoke_api_key(user_id: str, key_id: str) -> Call[None]:
    """Return the call that makes a key void."""
    return Call(Request(method="DELETE", path=f"{_keys(user_id)}/{segment(key_id)}"), _nothing)


# ── Parts ─────────────────────────────────────────────────────────────────────────────────────────────


def _of(user_id: str | None, part: str | None = None) -> str:
    """Return the address of an account, or of one's own."""
    path = _ME if user_id is None else f"{_USERS}/{segment(user_id)}"
    return path if part is None else f"{path}/{part}"


def _keys(user_id: str) -> str:
    return f"{_PROGRAMS}/{segment(user_id)}/keys"


def _get(path: str, cls: type[T]) -> Call[T]:
    return Call(Request(method="GET", path=path), lambda answer: decoded(cls, json_of(answer)))


def _list(path: str, cls: type[T], name: str) -> Call[list[T]]:
    request = Request(method="GET", path=path)
    return Call(request, lambda answer: decoded_list(cls, member(json_of(answer), name)))


def _user(answer: Answer) -> User:
    return decoded(User, json_of(answer))


def _ended(answer: Answer) -> int:
    return whole_number(member(json_of(answer), "ended"))


def _ticket(answer: Answer) -> str:
    return text(member(json_of(answer), "ticket"))


def _nothing(answer: Answer) -> None:
    del answer
