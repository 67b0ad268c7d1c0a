"""Writes that are made once however often they are asked for: by an idempotency key that the caller chooses.

Key, actor and table become an application transaction of the table, so the commit itself tells that the request was
served: no crash can come between. The commit also holds a digest of the request, keyed by the idempotency key, so that
the same key with other content is noticed and nothing can be guessed from the digest.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self, TypeVar, cast

from lakehouse_platform.errors import IdempotencyKeyReusedError, InvalidArgumentError
from lakehouse_platform.store.commit import AppTransaction, Once
from lakehouse_platform.store.table import Table

_T = TypeVar("_T")

_KEY = re.compile(r"[!-~]{1,255}")
_PREFIX = "lakehouse-request-"
# What the commit says: which request it was made for, the digest of what was asked, and at which attempt.
_REQUEST = "lakehouse.request"
_DIGEST = "lakehouse.requestDigest"
_ATTEMPT = "lakehouse.requestAttempt"


@dataclass(frozen=True, slots=True)
class Served:
    """A request that was served before.

    Attributes:
        version: The version that it made; the newest one if its log entry is gone.
        metrics: What its commit counted; empty if its log entry is gone.
        attempt: Which attempt made the commit.
    """

    version: int
    metrics: Mapping[str, Any]
    attempt: str | None = None

    def count(self, name: str) -> int:
        """Return a number that the commit counted; 0 if it did not."""
        return int(self.metrics.get(name) or 0)


@dataclass(frozen=True, slots=True)
class Request:
    """One attempt of a request that is to be served once.

    Attributes:
        app_id: What the table knows the request by.
        digest: Digest of what is asked for.
        attempt: Tells this attempt from others.
    """

    app_id: str
    digest: str
    attempt: str

    @classmethod
    def of(cls, key: str, actor_id: str, table: str, digest: Callable[[hmac.HMAC], None]) -> Self:
        """Return the request of a key.

        Args:
            key: The caller's idempotency key.
            actor_id: Who asks: nobody can meet another's keys.
            table: The table that is written to.
            digest: Feeds everything that is asked for.

        Raises:
            InvalidArgumentError: The key is not 1 to 255 visible ASCII characters.
        """
        if not _KEY.fullmatch(key):
            raise InvalidArgumentError(
                "An idempotency key is 1 to 255 visible ASCII characters: send another one."
            )
        # As JSON, no two triples run into each other.
        name = json.dumps([actor_id, table, key]).encode()
        keyed = hmac.new(key.encode(), digestmod=hashlib.sha256)
        digest(keyed)
        return cls(_PREFIX + hashlib.sha256(name).hexdigest(), keyed.hexdigest(), uuid.uuid4().hex)

    def run(self, table: Table, act: Callable[[Table], _T], again: Callable[[Served], _T]) -> tuple[_T, bool]:
        """Serve the request if it was not served before.

        Args:
            table: The table.
            act: Makes the one change of the table that it is handed.
            again: Returns the result of a request that was served.

        Returns:
            The result, and whether it is that of an earlier attempt.

        Raises:
            IdempotencyKeyReusedError: The key was used for something else.
        """
        if (served := self._served(table)) is not None:
            return again(served), True
        result = act(table.once(self._once()))
        # Another attempt may have come first: then nothing was written just now.
        served = self._served(table)
        if served is None or served.attempt == self.attempt:
            return result, False
        return again(served), True

    def _once(self) -> Once:
        metadata = {_REQUEST: self.app_id, _DIGEST: self.digest, _ATTEMPT: self.attempt}
        return Once(AppTransaction(self.app_id, 1), metadata)

    def _served(self, table: Table) -> Served | None:
        newest, number = table.landed(self.app_id)
        if number is None:
            return None
        for version in range(newest, -1, -1):
            info = table.commit_info(version)
            if info is None:
                break
            if info.get(_REQUEST) == self.app_id:
                return self._checked(version, info)
        # The log was cleaned up since: that it was served is still known, and it must not be again.
        return Served(newest, {})

    def _checked(self, version: int, info: Mapping[str, Any]) -> Served:
        if not hmac.compare_digest(str(info.get(_DIGEST)), self.digest):
            raise IdempotencyKeyReusedError(
                "This idempotency key was used for another request on this table; nothing was changed. Send each new "
                "request with a key of its own.",
                version=version,
            )
        metrics = cast("Mapping[str, Any]", info.get("operationMetrics") or {})
        return Served(version, metrics, info.get(_ATTEMPT))
