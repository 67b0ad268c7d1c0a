"""Where a table or a lakehouse stands: a local path or an object-store URI with its options."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pyarrow.fs as pafs
from deltalake.fs import DeltaStorageHandler

from lakehouse_platform.errors import InvalidNameError

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
# Schemes that deltalake 1.6 opens without further packages.
_REMOTE_SCHEMES = frozenset(
    {"s3", "s3a", "az", "azure", "adl", "abfs", "abfss", "gs", "http", "https", "memory"}
)
# deltalake 1.6.6 fails on "%" and "\" in local paths and panics on "["; the others break Polars and DuckDB.
_FORBIDDEN = re.compile(r"[%\\\[\]#?*\x00-\x1f]")


@dataclass(frozen=True, slots=True)
class Location:
    """An absolute local path or an object-store URI, and how to reach it.

    Attributes:
        uri: Absolute local path, or URI without a trailing slash.
        options: Storage options in delta-rs's names; never shown.
    """

    uri: str
    options: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)

    @classmethod
    def parse(cls, text: str | os.PathLike[str], options: Mapping[str, str] | None = None) -> Location:
        """Return the location that a path or URI names; relative paths count from the working directory.

        Raises:
            InvalidNameError: The scheme is unknown, or the path has characters that Delta readers break on.
        """
        plain = os.fspath(text)
        if not _SCHEME.match(plain):
            return cls(_checked(str(Path(plain).expanduser().absolute()), plain), options or {})
        parts = urlsplit(plain)
        if parts.scheme == "file":
            return cls(_checked(unquote(parts.path).rstrip("/") or "/", plain), options or {})
        if parts.scheme not in _REMOTE_SCHEMES:
            raise InvalidNameError(
                f"URI scheme {parts.scheme!r} is unknown: use a local path, s3://, az:// or abfss://.", uri=parts.scheme
            )
        return cls(_checked(plain.rstrip("/"), plain), options or {})

    @property
    def is_local(self) -> bool:
        """Whether the location is on a local disk."""
        return not _SCHEME.match(self.uri)

    @property
    def path(self) -> Path:
        """The local path; only for local locations."""
        return Path(self.uri)

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.uri.rsplit("/", 1)[-1]

    @property
    def storage_options(self) -> dict[str, str] | None:
        """The options as the engine takes them."""
        return dict(self.options) or None

    def child(self, name: str) -> Location:
        """Return the location `name` below this one."""
        return Location(f"{self.uri}/{name}", self.options)

    def filesystem(self) -> pafs.FileSystem:
        """Return a filesystem whose root is this location."""
        if self.is_local:
            return pafs.SubTreeFileSystem(self.uri, pafs.LocalFileSystem())
        return pafs.PyFileSystem(DeltaStorageHandler(self.uri, dict(self.options)))


def looks_like_location(text: str) -> bool:
    """Tell whether a text is written as a path or URI rather than as a table name."""
    return "/" in text or os.sep in text or text in {".", ".."} or text.startswith("~")


def _checked(path: str, written: str) -> str:
    if found := _FORBIDDEN.search(path):
        raise InvalidNameError(
            f"Path {written!r} contains {found[0]!r}, which Delta readers break on: choose another directory.",
            path=written,
        )
    return os.path.normpath(path) if path.startswith("/") else path
