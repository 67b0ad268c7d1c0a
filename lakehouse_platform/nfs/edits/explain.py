"""Finds the line of a rewritten file that a publication was refused for.

A publication parses only the lines that changed, and counts rows of its own. The whole text is read again here, which
takes as long as it is large, but only after an error.
"""

from __future__ import annotations

from typing import TypeVar

from lakehouse_platform.errors import LakehouseError, RowError
from lakehouse_platform.nfs.content import Content
from lakehouse_platform.nfs.edits.check import RowChecker
from lakehouse_platform.nfs.edits.constraints import violations_of
from lakehouse_platform.nfs.edits.draft import chunks
from lakehouse_platform.nfs.tree.image import Image

_Error = TypeVar("_Error", bound=LakehouseError)


def explained(error: _Error, text: Content, image: Image, *, allow_missing: bool) -> _Error | RowError:
    """Return the error of the first wrong line of a text, with its number; the given error if every line is sound."""
    checker = RowChecker(
        image.schema, image.key, violations_of(image.constraints, image.schema), allow_missing=allow_missing
    )
    try:
        for data in chunks(text, 0, text.size):
            checker.feed(data)
        checker.finish()
    except RowError as found:
        return found
    return error
