"""What the edits of a table need to know of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from lakehouse_platform.nfs.tree.image import Form, Image
from lakehouse_platform.store.pinned import Pinned
from lakehouse_platform.store.table import Table


class ImageSource(Protocol):
    """The images of one table; `current` and `retained` never block, the others may."""

    @property
    def pinned(self) -> Pinned | None:
        """The newest version that was seen."""
        ...

    def current(self, form: Form = ...) -> Image | None:
        """Return the last known image."""
        ...

    def retained(self, form: Form = ...) -> Sequence[Image]:
        """Return the last images, newest first."""
        ...

    def refresh(self, form: Form = ...) -> Image:
        """Find the newest version and return its image."""
        ...

    def at(self, version: int, form: Form = ...) -> Image:
        """Return the image of any version."""
        ...


class View(Protocol):
    """The `data.csv` of one table."""

    @property
    def key(self) -> bytes:
        """What stands for the table in handles."""
        ...

    @property
    def images(self) -> ImageSource:
        """Its images."""
        ...

    @property
    def table(self) -> Table:
        """The table, with the origin of the mount's changes."""
        ...
