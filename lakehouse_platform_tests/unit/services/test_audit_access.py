"""Watching the audit log: one entry says so, and who may not any more sees nothing more."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lakehouse_platform.errors import PermissionDeniedError
from lakehouse_platform.model.actions import ActionType, Outcome
from lakehouse_platform.model.actors import OWNER, Actor, ActorKind, Role
from lakehouse_platform.services.lakehouse import Lakehouse

ADMIN = Actor(id="admin-1", kind=ActorKind.USER, role=Role.ADMIN)


def test_watching_is_one_entry_however_often_one_looks(lake: Lakehouse) -> None:
    with lake:
        look = lake.audit.watch(actor=ADMIN)
        seen = look(ADMIN, 0)
        for _ in range(3):
            assert look(ADMIN, seen[-1].sequence if seen else 0) == [] or seen == []
        entries = lake.audit.search(user_id=ADMIN.id)
        assert [(entry.action, entry.details) for entry in entries] == [(ActionType.ADMIN_ACTION, "watching")]


def test_what_is_found_fits_the_conditions_and_comes_after_the_entry_that_is_named(lake: Lakehouse) -> None:
    with lake:
        look = lake.audit.watch(actor=OWNER, action=ActionType.REGISTER)
        lake.accounts.register("alice", "alice@example.com", "seven small boats at noon")
        (first,) = look(OWNER, 0)
        assert look(OWNER, first.sequence) == []
        lake.accounts.register("bob", "bob@example.com", "seven small boats at noon")
        assert [entry.action for entry in look(OWNER, first.sequence)] == [ActionType.REGISTER]


def test_who_loses_the_permission_sees_nothing_more_and_that_is_recorded(lake: Lakehouse) -> None:
    with lake:
        look = lake.audit.watch(actor=ADMIN)
        with pytest.raises(PermissionDeniedError):
            look(replace(ADMIN, role=Role.USER), 0)
        assert len(lake.audit.search(user_id=ADMIN.id, outcome=Outcome.DENIED)) == 1


def test_who_may_not_read_the_log_cannot_begin_to_watch(lake: Lakehouse) -> None:
    with lake, pytest.raises(PermissionDeniedError):
        lake.audit.watch(actor=replace(ADMIN, role=Role.USER))
