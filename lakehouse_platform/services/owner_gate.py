"""The gate for the owner of the files alone: it opens nothing but the journal, and that with the first entry."""

from __future__ import annotations

from datetime import datetime
from typing import NoReturn

from lakehouse_platform.audit.delivery import AUDIT_LOG
from lakehouse_platform.audit.spool import Spool
from lakehouse_platform.errors import PermissionDeniedError
from lakehouse_platform.identity.grants import Grants
from lakehouse_platform.model.actors import SubscriptionTier
from lakehouse_platform.private_files import state_directory
from lakehouse_platform.services.auditing import AUDIT_DIRECTORY
from lakehouse_platform.services.gate import Gate
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.store.log import list_log


class OwnerGate:
    """A gate through which the owner goes, and nobody who has a subscription."""

    def __init__(self, store: DeltaStore) -> None:
        """Make nothing yet.

        Args:
            store: The lakehouse.
        """
        state = state_directory(store.config.state_path, store.base.uri)
        self._spool = Spool(store, state / AUDIT_DIRECTORY)
        self.gate = Gate(self._spool, Grants(store), _NoSubscriptions(), origin=store.origin)

    def close(self) -> None:
        """Leave the entries to the next process."""
        self._spool.close()


def has_audit_log(store: DeltaStore) -> bool:
    """Tell whether a lakehouse has an audit log: it was initialised, or has accounts."""
    return not list_log(store.table(AUDIT_LOG).location).is_empty


class _NoSubscriptions:
    def take(self, user_id: str, tier: SubscriptionTier, now: datetime) -> NoReturn:
        """Refuse who would have to be counted."""
        raise PermissionDeniedError("This way in is the owner's alone: sign in.", permission="owner")
