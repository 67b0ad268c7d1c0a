"""Accounts, sign-ins, grants and audit entries as JSON shows them; what is secret has no field here."""

from __future__ import annotations

from datetime import datetime
from typing import Self

from pydantic import BaseModel, ConfigDict, Field

from lakehouse_platform.identity.api_keys import ApiKeyRecord
from lakehouse_platform.model.actors import AccountStatus, Role, SubscriptionTier
from lakehouse_platform.model.rights import Right


class View(BaseModel):
    """Base of what is shown: made from the platform's own records, field by field."""

    model_config = ConfigDict(from_attributes=True)


class UserView(View):
    """An account."""

    user_id: str
    username: str
    email: str
    role: Role
    tier: SubscriptionTier
    status: AccountStatus
    is_service: bool = Field(description="Whether it is a program's, with API keys and no password.")
    created_at: datetime
    updated_at: datetime
    last_login_at: datetime | None
    approved_at: datetime | None


class SessionView(View):
    """A sign-in."""

    session_id: str
    user_id: str
    created_at: datetime
    expires_at: datetime
    refreshed_at: datetime | None
    refresh_expires_at: datetime | None
    ip_address: str | None
    user_agent: str | None


class SessionsView(View):
    """Sign-ins, the newest first."""

    sessions: list[SessionView]


class QuotaView(View):
    """How many requests are allowed; null for no limit."""

    per_minute: int | None
    per_day: int | None


class UsageView(View):
    """What is used up of the limits in the current minute and UTC day."""

    quota: QuotaView
    minute: int
    day: int


class GrantView(View):
    """A right on a table; the table `*` stands for every one."""

    user_id: str
    table: str
    right: Right
    granted_by: str
    granted_at: datetime


class GrantsView(View):
    """Grants, by the name of the table."""

    grants: list[GrantView]


class EndedView(View):
    """How many sign-ins were ended."""

    ended: int


class TokensView(View):
    """A sign-in: keep both tokens secret; the refresh token is good for one renewal."""

    access_token: str
    refresh_token: str | None
    token_type: str = "Bearer"  # noqa: S105 - the kind of token, RFC 6750
    expires_at: datetime = Field(description="When the access token ends.")
    user_id: str
    session_id: str


class MountTicketView(View):
    """A ticket for mounting tables as files: keep it secret."""

    ticket: str = Field(description="Stands before the export's name in the path that is mounted.")
    session_id: str = Field(description="The sign-in's id: the ticket is void when that ends.")


class ClaimsView(View):
    """What an access token says, with the role and tier that the user has now."""

    sub: str = Field(description="The user's id.")
    sid: str = Field(description="The sign-in's id.")
    jti: str = Field(description="The token's id.")
    role: Role
    tier: SubscriptionTier
    issued_at: datetime
    expires_at: datetime


class ApiKeyView(View):
    """An API key, without what it opens."""

    key_id: str
    user_id: str
    label: str
    scopes: list[str]
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None
    revoked_at: datetime | None

    @classmethod
    def of(cls, record: ApiKeyRecord) -> Self:
        """Return what is shown of a key."""
        return cls(
            key_id=record.key_id,
            user_id=record.user_id,
            label=record.label,
            scopes=record.scopes.texts(),
            created_at=record.created_at,
            expires_at=record.expires_at,
            last_used_at=record.last_used_at,
            revoked_at=record.revoked_at,
        )


class AuditRecordView(View):
    """An entry of the audit log; an erased one has an empty user id."""

    sequence: int
    audit_id: str
    timestamp: str
    user_id: str
    action: str
    outcome: str
    details: str | None
    resource: str | None
    row_count: int | None
    ip_address: str | None
    door: str
    request_id: str | None
