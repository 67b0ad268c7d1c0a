"""Whether an attempt to publish, whose outcome the storage did not tell, has landed. Blocks: call in a thread."""

from __future__ import annotations

from dataclasses import dataclass

from lakehouse_platform.errors import LakehouseError
from lakehouse_platform.nfs.edits.client import Client
from lakehouse_platform.nfs.edits.session import Shape
from lakehouse_platform.nfs.edits.view import View
from lakehouse_platform.nfs.operations import NfsError, Status
from lakehouse_platform.store.engine import open_table


@dataclass(frozen=True, slots=True)
class Landed:
    """An attempt that has landed after all.

    Attributes:
        version: The newest version then.
        rest: What is left of the draft: the beginning of a row.
    """

    version: int
    rest: Shape | None


def resolve(client: Client) -> Landed | None:
    """Find out whether an attempt has landed whose outcome is not known; None if it has not, or there is none.

    Raises:
        NfsError: JUKEBOX: the storage does not answer.
    """
    edit = client.edit
    if edit is None or edit.attempt is None:
        return None
    try:
        is_landed = landed_sequence(client.view, edit.app_id) > edit.sequence
        version = client.view.table.version() if is_landed else 0
    except LakehouseError as error:
        raise NfsError(Status.JUKEBOX, str(error)) from error
    if not is_landed:
        edit.not_published()
        return None
    return Landed(version, edit.published(version))


def landed_sequence(view: View, app_id: str) -> int:
    """Return the number of the last commit that an edit has made, 0 if none."""
    return open_table(view.table.location).transaction_version(app_id) or 0
