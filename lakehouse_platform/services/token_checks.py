"""What the audit log says of checks of tokens and API keys: counts of accepted ones, and refusals, but no floods."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Protocol

from lakehouse_platform.audit.entries import AuditEntry
from lakehouse_platform.errors import AuthError
from lakehouse_platform.identity.throttle import network_of
from lakehouse_platform.model.actions import ActionType, Outcome
from lakehouse_platform.model.actors import ANONYMOUS
from lakehouse_platform.model.origin import Door
from lakehouse_platform.services.sparse import Sparse

_EVERY = timedelta(minutes=1)
_MOST_REFUSALS = 10


class Recorder(Protocol):
    """Where entries go: the audit log."""

    def record_all(self, entries: Sequence[AuditEntry]) -> list[str]:
        """Return the ids of the entries once all are durable."""
        ...


class TokenChecks:
    """Counts checks of tokens. Safe to share between threads.

    A count reaches the audit log within a minute if tokens go on being checked, else with `flush`; a process that is
    killed loses the count of its last minute.
    """

    def __init__(self, audit: Recorder, door: Door) -> None:
        self._audit = audit
        self._door = door
        # By user, and by API key where it was one.
        self._counts: Counter[tuple[str, str | None]] = Counter()
        self._flushed_at: datetime | None = None
        self._refusals = Sparse(_MOST_REFUSALS)
        self._lock = threading.Lock()

    def accepted(self, user_id: str, now: datetime, *, key_id: str | None = None) -> None:
        """Count a token or API key that was accepted.

        Args:
            user_id: Whose it is.
            now: The time.
            key_id: The API key, if it was one.

        Raises:
            AuditWriteFailedError: A minute is over and its counts could not be written; they are kept.
        """
        with self._lock:
            self._counts[user_id, key_id] += 1
            if self._flushed_at is None:
                self._flushed_at = now
            if now - self._flushed_at < _EVERY:
                return
            self._flushed_at = now
        self.flush()

    def refused(
        self, error: AuthError, ip_address: str | None, now: datetime, *, key_id: str | None = None
    ) -> None:
        """Write down a token or API key that was refused.

        Args:
            error: Why; of it only the code is kept.
            ip_address: Where it came from.
            now: The time.
            key_id: The API key, if there is one of this id.

        Raises:
            AuditWriteFailedError: It could not be written.
        """
        left_out = self._refusals.admit(network_of(ip_address or ""), now)
        if left_out is None:
            return
        which = f"; key {key_id}" if key_id else ""
        more = f"; {left_out} more left out" if left_out else ""
        entry = AuditEntry(
            action=ActionType.TOKEN_REJECTED,
            user_id=ANONYMOUS.id,
            details=error.code + which + more,
            ip_address=ip_address,
            outcome=Outcome.FAILED,
            door=self._door,
        )
        self._audit.record_all([entry])

    def flush(self) -> None:
        """Write what is counted into the audit log.

        Raises:
            AuditWriteFailedError: It could not be written; it is kept.
        """
        with self._lock:
            counts, self._counts = self._counts, Counter()
        if not counts:
            return
        try:
            self._audit.record_all([self._summary(*whose, count) for whose, count in counts.items()])
        except BaseException:
            with self._lock:
                self._counts.update(counts)
            raise

    def _summary(self, user_id: str, key_id: str | None, count: int) -> AuditEntry:
        text = f"{count} accepted" + (f"; key {key_id}" if key_id else "")
        return AuditEntry(action=ActionType.TOKEN_CHECKS, user_id=user_id, details=text, door=self._door)
