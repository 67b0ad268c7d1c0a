"""The place and the platform's own tables of a lakehouse, made where they are missing."""

from __future__ import annotations

from lakehouse_platform.errors import StoragePermissionError
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.store.tables import SYSTEM_TABLES


def prepare(store: DeltaStore) -> list[str]:
    """Create the lakehouse's directory and its system tables where they are missing; return all their names.

    Raises:
        StoragePermissionError: The place cannot be written to.
    """
    base = store.base
    if base.is_local:
        try:
            base.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoragePermissionError(
                f"{base.uri} cannot be created ({error.strerror}): choose another base_path.", path=base.uri
            ) from error
    return [store.ensure(spec).name for spec in SYSTEM_TABLES.values()]
