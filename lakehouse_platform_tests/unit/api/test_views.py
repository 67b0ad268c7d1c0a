"""Views show what they name, and nothing secret has a name there."""

from __future__ import annotations

import inspect
from datetime import UTC, datetime, timedelta

import pytest

from lakehouse_platform.api import views
from lakehouse_platform.identity.api_keys import ApiKeyRecord, ApiKeys
from lakehouse_platform.model.rights import Right, Scopes
from lakehouse_platform.services.accounts import AuthActor
from lakehouse_platform.services.lakehouse import Lakehouse
from lakehouse_platform.store.tables import SYSTEM_TABLES
from lakehouse_platform_tests.support.people import PASSWORD, user

VIEWS = [view for _, view in inspect.getmembers(views, inspect.isclass) if issubclass(view, views.View)]
NOW = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.__name__)
def test_no_view_has_a_field_for_a_secret_column(view: type[views.View]) -> None:
    secret = {column for spec in SYSTEM_TABLES.values() for column in spec.secret_columns}
    assert not secret & set(view.model_fields)


def test_an_account_and_a_sign_in_are_shown_without_hashes(lake: Lakehouse) -> None:
    with lake:
        accounts: AuthActor = lake.accounts
        made = user(accounts, "ada")
        tokens = accounts.login("ada", PASSWORD)
        (session,) = accounts.sessions(made.user_id)
        shown = views.UserView.model_validate(made).model_dump_json()
        shown += views.SessionView.model_validate(session).model_dump_json()
        assert made.user_id in shown
        assert session.session_id in shown
        for secret in (made.password_hash, tokens.access_token, str(tokens.refresh_token)):
            assert secret not in shown
        assert views.TokensView.model_validate(tokens).token_type == "Bearer"


def test_a_key_is_shown_with_its_scopes_as_they_are_written(lake: Lakehouse) -> None:
    lake.init()
    scopes = Scopes((("rides", Right.WRITE),), administration=True)
    made = ApiKeys(lake.store).create("somebody", "nightly", scopes, NOW, timedelta(days=1))
    record: ApiKeyRecord = made.record
    shown = views.ApiKeyView.of(record)
    assert shown.scopes == ["write:rides", "admin"]
    assert (shown.key_id, shown.label, shown.expires_at) == (made.key_id, "nightly", NOW + timedelta(days=1))
    assert made.key not in shown.model_dump_json()
