"""The client's operations on accounts are named as those of `AuthActor`; what they do is tested with all faces."""

from __future__ import annotations

import pytest

from lakehouse_platform.client.sync import LakehouseClient
from lakehouse_platform.client.sync_accounts import AccountOperations
from lakehouse_platform.services.accounts import AuthActor
from lakehouse_platform_tests.unit.client.parity import arguments, operations

OURS, THEIRS = operations(AccountOperations), operations(AuthActor)
# The owner's on the machine itself, what a server does with each request, and what a server of the mount does.
NOT_OVER_HTTP = {"bootstrap", "authenticate", "authenticate_key", "admit_ticket"}
# They are about who asks.
OWN = {"verify": ["token"], "logout": ["token"], "refresh": ["refresh_token"], "change_password": ["user_id"]}
# Whose sign-in it is stands in its address.
MORE = {"revoke_session": ["user_id"]}


def test_every_operation_is_there() -> None:
    assert set(THEIRS) - NOT_OVER_HTTP <= set(operations(LakehouseClient))


@pytest.mark.parametrize("name", OURS)
def test_the_arguments_are_the_same_in_the_same_order(name: str) -> None:
    theirs = [one for one in arguments(THEIRS[name]) if one not in OWN.get(name, [])]
    assert arguments(OURS[name]) == theirs + MORE.get(name, [])
