"""The client's operations on tables are called as those of the services; what they do is tested with all faces."""

from __future__ import annotations

import pytest

from lakehouse_platform.client.sync_tables import TableOperations
from lakehouse_platform.services.tables import TableAccess
from lakehouse_platform_tests.unit.client.parity import arguments, operations

OURS, THEIRS = operations(TableOperations), operations(TableAccess)
# What a client says once, when it is made, and what doors ask before they take a body.
NOT_OVER_HTTP = {"acting_as", "check_may_write"}
MORE = {"scan": ["rows"]}
LESS = {"create": ["properties"], "merge": ["evolve"]}


def test_every_operation_is_there() -> None:
    assert set(THEIRS) - NOT_OVER_HTTP == set(OURS)


@pytest.mark.parametrize("name", OURS)
def test_the_arguments_are_the_same_in_the_same_order(name: str) -> None:
    theirs = [one for one in arguments(THEIRS[name]) if one not in LESS.get(name, [])]
    assert arguments(OURS[name]) == theirs + MORE.get(name, [])
