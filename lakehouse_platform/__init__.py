"""A lakehouse of Delta tables: ACID store, SQL, time travel, maintenance, command line and Dagster assets.

The names below are loaded when first used, so that importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lakehouse_platform.audit.entries import AuditEntry
    from lakehouse_platform.client.aio import AsyncLakehouseClient
    from lakehouse_platform.client.sync import LakehouseClient
    from lakehouse_platform.errors import LakehouseError
    from lakehouse_platform.model.actions import ActionType
    from lakehouse_platform.model.actors import Role, SubscriptionTier
    from lakehouse_platform.model.origin import Door, Origin
    from lakehouse_platform.model.schema import Field, Schema
    from lakehouse_platform.nfs.service import NfsServer
    from lakehouse_platform.services.accounts import AuthActor
    from lakehouse_platform.services.auditing import AuditActor
    from lakehouse_platform.services.lakehouse import Lakehouse
    from lakehouse_platform.settings import LakehouseConfig
    from lakehouse_platform.store.commit import AppTransaction
    from lakehouse_platform.store.database import DatabaseOps
    from lakehouse_platform.store.delta_store import DeltaStore
    from lakehouse_platform.store.table import Table
    from lakehouse_platform.upkeep.scheduler import MaintenanceScheduler

__version__ = version("lakehouse-platform")
__all__ = [
    "ActionType",
    "AppTransaction",
    "AsyncLakehouseClient",
    "AuditActor",
    "AuditEntry",
    "AuthActor",
    "DatabaseOps",
    "DeltaStore",
    "Door",
    "Field",
    "Lakehouse",
    "LakehouseClient",
    "LakehouseConfig",
    "LakehouseError",
    "MaintenanceScheduler",
    "NfsServer",
    "Origin",
    "Role",
    "Schema",
    "SubscriptionTier",
    "Table",
]

_HOMES = {
    "ActionType": "model.actions",
    "AppTransaction": "store.commit",
    "AsyncLakehouseClient": "client.aio",
    "AuditActor": "services.auditing",
    "AuditEntry": "audit.entries",
    "AuthActor": "services.accounts",
    "DatabaseOps": "store.database",
    "DeltaStore": "store.delta_store",
    "Door": "model.origin",
    "Field": "model.schema",
    "Lakehouse": "services.lakehouse",
    "LakehouseClient": "client.sync",
    "LakehouseConfig": "settings",
    "LakehouseError": "errors",
    "MaintenanceScheduler": "upkeep.scheduler",
    "NfsServer": "nfs.service",
    "Origin": "model.origin",
    "Role": "model.actors",
    "Schema": "model.schema",
    "SubscriptionTier": "model.actors",
    "Table": "store.table",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
