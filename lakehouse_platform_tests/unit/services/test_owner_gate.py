"""The owner's way through the gate: it makes nothing but its journal, and is nobody else's."""

from __future__ import annotations

from contextlib import closing

import pyarrow as pa
import pytest

from lakehouse_platform.errors import PermissionDeniedError
from lakehouse_platform.identity.permissions import Permission
from lakehouse_platform.model.actors import OWNER, Role
from lakehouse_platform.services.lakehouse import Lakehouse
from lakehouse_platform.services.owner_gate import OwnerGate, has_audit_log
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform_tests.unit.services.conftest import person


def test_a_lakehouse_has_an_audit_log_once_it_is_initialised(store: DeltaStore) -> None:
    assert not has_audit_log(store)
    store.create("rides", pa.schema([("id", pa.int64())]))
    assert not has_audit_log(store)
    Lakehouse(store).init()
    assert has_audit_log(store)


def test_what_the_owner_does_is_written_down_and_nothing_else_is_made(store: DeltaStore) -> None:
    with closing(OwnerGate(store)) as owner:
        assert owner.gate.run(OWNER, Permission.READ_TABLE, "rides", lambda _: 7) == 7
    assert store.tables() == []
    with Lakehouse(store) as lakehouse:
        (found,) = lakehouse.accounts.audit.search()
    assert (found.user_id, found.action, found.resource) == ("owner", "data_read", "rides")


def test_who_has_a_subscription_is_refused(store: DeltaStore) -> None:
    with closing(OwnerGate(store)) as owner, pytest.raises(PermissionDeniedError):
        owner.gate.run(person("root", Role.SUPERADMIN), Permission.READ_TABLE, "rides", lambda _: 7)
