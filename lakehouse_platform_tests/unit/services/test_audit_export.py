"""The audit log is exported as a stream, and that is in the audit log."""

from __future__ import annotations

import threading

import pytest

from lakehouse_platform.audit.entries import AuditEntry
from lakehouse_platform.errors import PermissionDeniedError
from lakehouse_platform.model.actions import ActionType, Outcome
from lakehouse_platform.model.actors import ANONYMOUS
from lakehouse_platform.services import audit_export
from lakehouse_platform.services.lakehouse import Lakehouse


def _noted(lake: Lakehouse, count: int) -> None:
    for number in range(count):
        lake.accounts.audit.log(AuditEntry(action=ActionType.CUSTOM, user_id="u", details=str(number)))


def _exports(lake: Lakehouse) -> list[tuple[str, int | None]]:
    found = lake.accounts.audit.search(action=ActionType.DATA_EXPORT)
    return [(one.outcome, one.row_count) for one in found]


def test_an_export_goes_over_all_pages_in_the_order_of_the_chain(
    lake: Lakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_export, "_PAGE", 2)
    with lake:
        _noted(lake, 5)
        export = lake.audit.export(user_id="u")
        assert export.reader().read_all().column("details").to_pylist() == list("01234")
        assert _exports(lake) == [(Outcome.STARTED, None), (Outcome.DONE, 5)]


def test_an_export_that_is_given_up_says_how_much_was_handed_out(
    lake: Lakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_export, "_PAGE", 2)
    with lake:
        _noted(lake, 5)
        reader = lake.audit.export(user_id="u").reader()
        reader.read_next_batch()
        del reader
        for thread in threading.enumerate():
            if thread.name == "audit-export-end":
                thread.join()
        assert _exports(lake) == [(Outcome.STARTED, None), (Outcome.DONE, 2)]


def test_who_may_not_read_the_log_gets_nothing(lake: Lakehouse) -> None:
    with lake, pytest.raises(PermissionDeniedError):
        lake.audit.export(actor=ANONYMOUS).reader()
