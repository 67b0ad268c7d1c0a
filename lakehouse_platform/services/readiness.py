"""Whether a lakehouse could do its work now: its store is asked, and its audit journal is tried."""

from __future__ import annotations

import logging
from collections.abc import Callable

from lakehouse_platform.errors import LakehouseError, TableNotFoundError
from lakehouse_platform.services.lakehouse import Lakehouse
from lakehouse_platform.store.tables import SYSTEM_TABLES, system_table

_log = logging.getLogger(__name__)


def failing_parts(lakehouse: Lakehouse) -> list[str]:
    """Return the names of the parts that do not work now, none if all do; the program's log tells why.

    Args:
        lakehouse: The lakehouse; its accounts are opened if they are not.
    """
    parts: dict[str, Callable[[], object]] = {
        "store": lambda: [lakehouse.store.table(name).version() for name in SYSTEM_TABLES],
        "audit journal": lambda: _try_journal(lakehouse),
    }
    return [name for name, attempt in parts.items() if not _works(name, attempt)]


def is_storage_away(error: LakehouseError) -> bool:
    """Tell whether an error of an open lakehouse means that its storage is away, such as a disk that was unmounted.

    A table of the platform's own that is not found says so: they are there since the lakehouse was made.
    """
    return isinstance(error, TableNotFoundError) and system_table(str(error.details.get("table"))) is not None


def waiting_entries(lakehouse: Lakehouse) -> int:
    """Return how many acknowledged audit entries wait for the table."""
    return lakehouse.accounts.audit.writer.waiting_count


def _try_journal(lakehouse: Lakehouse) -> None:
    lakehouse.accounts.audit.writer.check_writable()


def _works(name: str, attempt: Callable[[], object]) -> bool:
    try:
        attempt()
    except LakehouseError as error:
        _log.warning("not ready: %s: %s", name, error.message)
        return False
    return True
