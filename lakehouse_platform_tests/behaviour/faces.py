"""One way to ask for an operation, whatever face of the platform answers: the services themselves, or a client."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from enum import Enum
from typing import Any, Protocol

from lakehouse_platform.audit.entries import AuditEntry
from lakehouse_platform.client.aio import AsyncLakehouseClient
from lakehouse_platform.client.sync import LakehouseClient
from lakehouse_platform.errors import LakehouseError
from lakehouse_platform.model.actors import Actor
from lakehouse_platform.services.lakehouse import Lakehouse

# What HTTP shows nobody, and what only one of the faces has.
_NOT_COMPARED = {"password_hash", "token_hash", "refresh_hash", "refresh_expires_at", "refreshed_at"}
# RFC 9457's own names: details of these names cannot cross.
_NOT_CROSSING = {"type", "title", "status", "detail", "code", "request_id", "errors"}


class Face(Protocol):
    """Somebody who asks through one of the faces."""

    def do(self, operation: str, *arguments: Any, **more: Any) -> Any:
        """Ask for an operation by its name, and return its result in plain values."""
        ...


class InProcess:
    """The services, for an actor."""

    def __init__(self, lakehouse: Lakehouse, actor: Actor) -> None:
        self._lakehouse = lakehouse
        self._actor = actor
        self._tables = lakehouse.tables.acting_as(actor)

    def do(self, operation: str, *arguments: Any, **more: Any) -> Any:
        if operation == "log":
            more.setdefault("user_id", self._actor.id)
            entry = AuditEntry(action=arguments[0], **more)
            return plain(self._lakehouse.audit.log(entry, actor=self._actor))
        if operation in {"user", "sessions", "usage", "grants"} and not arguments:
            arguments = (self._actor.id,)
        if operation == "change_password":
            arguments = (self._actor.id, *arguments)
        if hasattr(self._tables, operation):
            return plain(getattr(self._tables, operation)(*arguments, **more))
        part: Any = self._lakehouse.accounts
        if operation in {"activity", "billing_summary", "search", "verify_audit"}:
            part, operation = self._lakehouse.audit, operation.removesuffix("_audit")
        return plain(getattr(part, operation)(*arguments, actor=self._actor, **more))


class OverHttp:
    """The synchronous client."""

    def __init__(self, client: LakehouseClient) -> None:
        self.client = client

    def do(self, operation: str, *arguments: Any, **more: Any) -> Any:
        return plain(getattr(self.client, operation)(*arguments, **more))


class OverHttpAsync:
    """The asynchronous client, each operation run to its end."""

    def __init__(self, client: AsyncLakehouseClient, runner: asyncio.Runner) -> None:
        self.client = client
        self._runner = runner

    def do(self, operation: str, *arguments: Any, **more: Any) -> Any:
        asked = getattr(self.client, operation)(*arguments, **more)
        assert inspect.iscoroutine(asked)
        return plain(self._runner.run(asked))


def plain(result: Any) -> Any:
    """Return a result in values that are the same whatever face gave it; rows in a fixed order."""
    if hasattr(result, "to_pylist"):
        return sorted(result.to_pylist(), key=repr)
    if hasattr(result, "to_dict"):
        return plain(result.to_dict())
    if is_dataclass(result) and not isinstance(result, type):
        return plain(asdict(result))
    if isinstance(result, Mapping):
        return {name: plain(value) for name, value in result.items() if name not in _NOT_COMPARED}
    if isinstance(result, list | tuple):
        return [plain(item) for item in result]
    if isinstance(result, bytes):
        return result.hex()
    return result.value if isinstance(result, Enum) else result


def told(error: LakehouseError) -> dict[str, Any]:
    """Return everything of an error that is to be the same on every face."""
    details = {name: value for name, value in error.details.items() if name not in _NOT_CROSSING}
    return {"class": type(error), "code": error.code, "message": str(error), "details": json_like(details)}


def json_like(value: Any) -> Any:
    """Return a detail as JSON has it."""
    if isinstance(value, Mapping):
        return {str(name): json_like(item) for name, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [json_like(item) for item in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
