"""The asynchronous client's operations on accounts are the synchronous one's; what they do is tested with all faces."""

from __future__ import annotations

from lakehouse_platform.client.aio_accounts import AsyncAccountOperations
from lakehouse_platform.client.sync_accounts import AccountOperations
from lakehouse_platform_tests.unit.client.parity import assert_same_but_awaited


def test_the_operations_are_the_same_and_are_awaited() -> None:
    assert_same_but_awaited(AccountOperations, AsyncAccountOperations)
