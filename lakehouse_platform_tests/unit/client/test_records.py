"""What the client returns."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from lakehouse_platform.audit import reports
from lakehouse_platform.client import records
from lakehouse_platform.client.decoding import decoded
from lakehouse_platform.client.records import ApiKey, Tokens, User, Version
from lakehouse_platform.identity.api_keys import ApiKeyRecord
from lakehouse_platform.identity.grants import Grant as GrantOfServer
from lakehouse_platform.identity.sessions import SessionRecord
from lakehouse_platform.identity.tokens import Claims as ClaimsOfServer
from lakehouse_platform.identity.users import UserRecord

NOW = datetime(2026, 2, 1, 12, tzinfo=UTC)
ENTRY = {
    "version": 42, "timestamp": "2026-02-01T12:00:00.000Z", "timestamp_ms": 1769947200000, "operation": "WRITE",
    "parameters": {"mode": "Append"}, "metrics": {}, "actor": "owner", "door": "http", "reason": None,
}  # fmt: skip


def test_a_version_is_read_like_a_dictionary_and_like_a_record() -> None:
    entry = decoded(Version, ENTRY)
    assert (entry["version"], entry["operation"], entry["timestamp"]) == (
        42,
        "WRITE",
        "2026-02-01T12:00:00.000Z",
    )
    assert (entry.version, entry.timestamp) == (42, NOW)
    assert dict(entry) == ENTRY == entry.to_dict()
    with pytest.raises(KeyError):
        entry["nothing"]


def test_no_text_of_a_record_shows_a_secret() -> None:
    tokens = Tokens(access_token="hush", refresh_token="hush", expires_at=NOW, user_id="u")
    assert "hush" not in repr(tokens)
    assert str(tokens) == "hush"
    assert "hush" not in repr(ApiKey(key_id="k", label="l", scopes=(), key="hush"))


@pytest.mark.parametrize(
    ("ours", "theirs", "secret"),
    [
        (User, UserRecord, {"password_hash"}),
        (records.Claims, ClaimsOfServer, set[str]()),
        (records.Grant, GrantOfServer, set[str]()),
        (
            records.Session,
            SessionRecord,
            {"token_hash", "refresh_hash", "refresh_expires_at", "refreshed_at"},
        ),
        (ApiKey, ApiKeyRecord, {"key_hash"}),
        (records.AuditRecord, reports.AuditRecord, set[str]()),
        (records.BillingSummary, reports.BillingSummary, set[str]()),
    ],
)
def test_records_are_named_as_in_process(ours: type, theirs: type, secret: set[str]) -> None:
    assert set(theirs.__dataclass_fields__) - secret <= set(ours.__dataclass_fields__)
    assert (
        not secret
        & {"password_hash", "token_hash", "refresh_hash", "key_hash"}
        & set(ours.__dataclass_fields__)
    )
