"""Table names: which texts may name a table."""

from __future__ import annotations

import re

from lakehouse_platform.errors import InvalidNameError

# Readers of other makes break on spaces, "%", "[", "#" and letters beyond ASCII in table paths.
_TABLE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
# With a directory of this name in it, the directory of all tables would look like a table.
_LOG_DIRECTORY = "_delta_log"


def is_table_name(text: str) -> bool:
    """Tell whether `text` may name a table."""
    return (
        _TABLE_NAME.fullmatch(text) is not None and not text.endswith(".") and text.lower() != _LOG_DIRECTORY
    )


def check_table_name(text: str) -> str:
    """Return `text` unchanged if it may name a table.

    Raises:
        InvalidNameError: Otherwise.
    """
    if not is_table_name(text):
        raise InvalidNameError(
            f"{text!r} cannot name a table: use 1 to 128 of A-Z, a-z, 0-9, '_', '.' and '-', "
            "beginning with a letter, digit or '_' and not ending with '.', and not '_delta_log'.",
            name=text,
        )
    return text
