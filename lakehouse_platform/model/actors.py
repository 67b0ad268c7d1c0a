"""Who acts: roles, subscription tiers, states of an account, and the actor of an operation."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum, auto
from typing import TypeVar

from lakehouse_platform.errors import InvalidArgumentError
from lakehouse_platform.model.rights import Scopes

_Kind = TypeVar("_Kind", bound=StrEnum)


class Role(StrEnum):
    """What a user may do; what each role is allowed is written in `identity/permissions.py`."""

    USER = auto()
    ADMIN = auto()
    SUPERADMIN = auto()


class SubscriptionTier(StrEnum):
    """How much a user may ask for; the limits are written in `identity/limits.py`."""

    FREE = auto()
    PRO = auto()
    ENTERPRISE = auto()


class AccountStatus(StrEnum):
    """Where an account stands: only an active one can sign in."""

    PENDING = auto()
    ACTIVE = auto()
    REJECTED = auto()
    DISABLED = auto()


class ActorKind(StrEnum):
    """What kind of caller acts: the local owner of the files, a person, a program, or nobody known."""

    OWNER = auto()
    USER = auto()
    SERVICE = auto()
    ANONYMOUS = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """Who acts in an operation.

    Attributes:
        id: The user's id (UUID text), or `owner` or `anonymous`.
        kind: What kind of caller it is.
        role: The user's role; None for the owner and for nobody known.
        tier: The user's subscription; None where no limit of requests applies.
        session_id: The sign-in that the request belongs to, if it belongs to one.
        ip_address: Where the request came from, if it came over a network.
        user_agent: The client program, if it told its name.
        request_id: The request that this is part of, if it came over a network.
        scopes: What the API key of a program may of what its account may; a program without any may nothing. None
            for everybody else.
        key_id: The API key that the request was made with.
    """

    id: str
    kind: ActorKind
    role: Role | None = None
    tier: SubscriptionTier | None = None
    session_id: str | None = None
    ip_address: str | None = None
    user_agent: str | None = None
    request_id: str | None = None
    scopes: Scopes | None = None
    key_id: str | None = None


OWNER = Actor(id="owner", kind=ActorKind.OWNER)
ANONYMOUS = Actor(id="anonymous", kind=ActorKind.ANONYMOUS)


def member_of(kind: type[_Kind], value: object) -> _Kind:
    """Return the member that is given, itself or as its text.

    Raises:
        InvalidArgumentError: It is none.
    """
    try:
        return kind(value)
    except ValueError as error:
        raise InvalidArgumentError(
            f"{value!r} is no {kind.__name__}; these are: {', '.join(kind)}.", allowed=list(kind)
        ) from error
