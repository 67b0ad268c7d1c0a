"""Where a table or a lakehouse stands: a local path or an object-store URI with its options."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

import pyarrow as pa
import pyarrow.fs as pafs
from deltalake.fs import DeltaStorageHandler

from lakehouse_platform.errors import InvalidNameError

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
# Schemes that deltalake 1.6 opens without further packages.
_REMOTE_SCHEMES = frozenset(
    {"s3", "s3a", "az", "azure", "adl", "abfs", "abfss", "gs", "http", "https", "memory"}
)
# Arrow opens a directory and, if it is not there, looks whether it is: one that is made in between is an error
# (pyarrow 25.0.1, seen once among four processes that created a table).
_LISTINGS = 5
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
            InvalidNameError: The scheme is unknown, the path has characters that Delta readers break on, or the URI
                holds credentials, which belong into the options.
        """
        plain = os.fspath(text)
        if not plain:
            raise InvalidNameError("The path is empty: name a directory or a URI, such as ./lakehouse.")
        if not _SCHEME.match(plain):
            return cls(_local(plain), options or {})
        parts = urlsplit(plain)
        if parts.scheme == "file":
            if parts.netloc not in {"", "localhost"}:
                raise InvalidNameError(f"file://{parts.netloc}/… names another machine: write file:///path.")
            return cls(_local(unquote(parts.path)), options or {})
        return cls(_remote(plain, parts), options or {})

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
        return Location(f"{self.uri.rstrip('/')}/{name}", self.options)

    def filesystem(self) -> pafs.FileSystem:
        """Return a filesystem whose root is this location."""
        if self.is_local:
            return pafs.SubTreeFileSystem(self.uri, pafs.LocalFileSystem())
        return pafs.PyFileSystem(_ObjectStore(self.uri, dict(self.options)))

    def entries(self, directory: str = "") -> list[pafs.FileInfo]:
        """Return what is in a directory below this location; nothing if it is not there."""
        filesystem, selector = self.filesystem(), pafs.FileSelector(directory, allow_not_found=True)
        for _ in range(_LISTINGS - 1):
            with suppress(FileNotFoundError):
                return filesystem.get_file_info(selector)
        return filesystem.get_file_info(selector)


class _ObjectStore(DeltaStorageHandler):
    """The engine's object store as a filesystem that can also be written to."""

    def open_output_stream(self, path: str, metadata: dict[str, str] | None = None) -> pa.PythonFile:
        """Open a new object for writing."""
        return pa.PythonFile(_BytesSink(self._handler.open_output_stream(path, metadata)))


class _BytesSink:
    """Hands the engine's output stream the bytes that it insists on; pyarrow gives it buffers (deltalake 1.6.6)."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, data: Any) -> int:
        """Write and return the number of bytes."""
        return self._stream.write(bytes(data))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def looks_like_location(text: str) -> bool:
    """Tell whether a text is written as a path or URI rather than as a table name."""
    return "/" in text or os.sep in text or text in {".", ".."} or text.startswith("~")


def _local(path: str) -> str:
    try:
        absolute = Path(path).expanduser().absolute()
    except RuntimeError as error:
        raise InvalidNameError(
            f"{path!r} names the home directory of a user that is not known here."
        ) from error
    # Behind a symbolic link ".." is another directory than the text suggests: ask the file system.
    plain = str(absolute.resolve() if ".." in absolute.parts else absolute)
    _refuse_forbidden(plain)
    return os.path.normpath(plain)


def _remote(uri: str, parts: SplitResult) -> str:
    if parts.scheme not in _REMOTE_SCHEMES:
        raise InvalidNameError(
            f"URI scheme {parts.scheme!r} is unknown: use a local path, s3://, az:// or abfss://.",
            uri=parts.scheme,
        )
    # In abfss:// the part before "@" is the container. The text itself is never shown: it may hold a secret.
    if parts.password is not None or parts.query or (parts.username and not parts.scheme.startswith("abfs")):
        raise InvalidNameError(
            f"This {parts.scheme}:// URI holds credentials or a query: give them as storage options instead.",
            uri=parts.scheme,
        )
    if (
        not parts.hostname
        or {".", "..", ""} & set(parts.path.strip("/").split("/")[:-1])
        or parts.path.endswith("/..")
    ):
        raise InvalidNameError(
            f"{uri!r} names no bucket, or has '.', '..' or an empty part in its path: write it out.", uri=uri
        )
    plain = f"{parts.scheme}://{parts.netloc}{parts.path}".rstrip("/")
    _refuse_forbidden(uri)
    return plain


def _refuse_forbidden(path: str) -> None:
    if found := _FORBIDDEN.search(path):
        raise InvalidNameError(
            f"Path {path!r} contains {found[0]!r}, which Delta readers break on: choose another directory.",
            path=path,
        )
