"""Files to import: found by path, URI or pattern, opened as streams, with our errors."""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.fs as pafs

from lakehouse_platform.errors import (
    LakehouseError,
    SourceFormatError,
    SourceNotFoundError,
    StorageIoError,
    StoragePermissionError,
)
from lakehouse_platform.store.location import Location

Progress = Callable[[int, int], None]
_WILD = re.compile(r"[*?\[]")
_DAMAGED = re.compile(r"compressed|zlib|inflate|[Pp]arquet|[Cc]orrupt|thrift")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One file to read.

    Attributes:
        filesystem: Where it is.
        path: Its path there.
        shown: How messages name it.
        size: Its bytes.
    """

    filesystem: pafs.FileSystem
    path: str
    shown: str
    size: int

    def open(self) -> pa.NativeFile:
        """Open the file for reading from anywhere.

        Raises:
            SourceNotFoundError: It is gone.
            StoragePermissionError: Access is denied.
            StorageIoError: Opening failed otherwise.
        """
        with reading(self.shown):
            return self.filesystem.open_input_file(self.path)


def one_file(source: str | os.PathLike[str], options: Mapping[str, str] | None = None) -> SourceFile:
    """Return the file that a path or URI names.

    Raises:
        SourceNotFoundError: Nothing is there, or a directory.
        StoragePermissionError: Access is denied.
        StorageIoError: The storage failed.
    """
    text = os.fspath(source)
    filesystem, base = _rooted(text, options)
    with reading(text):
        info = filesystem.get_file_info(base)
    if info.type is pafs.FileType.Directory:
        raise SourceNotFoundError(f"{text!r} is a directory: name a file in it.", source=text)
    if info.type is pafs.FileType.NotFound:
        raise _nothing(text)
    return SourceFile(filesystem, base, text, info.size)


def many_files(
    source: str | os.PathLike[str], suffix: str, options: Mapping[str, str] | None = None
) -> tuple[SourceFile, ...]:
    """Return the files that a path, URI, directory or pattern names, in order of their paths.

    A directory stands for all files below it that end in `suffix`, without hidden ones and those whose name
    or directory begins with `_`. In a pattern, `*` and `?` stay within a name, `**` crosses directories, and
    what it does not name is left out too.

    Raises:
        SourceNotFoundError: Nothing matches.
        StoragePermissionError: Access is denied.
        StorageIoError: The storage failed.
    """
    text = os.fspath(source)
    directory, pattern = _split_pattern(text)
    filesystem, base = _rooted(directory, options)
    with reading(text):
        info = filesystem.get_file_info(base)
        if info.type is pafs.FileType.File and pattern is None:
            return (SourceFile(filesystem, base, text, info.size),)
        found = _files_below(filesystem, base) if info.type is pafs.FileType.Directory else []
    if pattern is None and any(
        os.path.relpath(path, base or ".").startswith("_delta_log/") for path, _ in found
    ):
        raise SourceFormatError(
            f"{text!r} is a Delta table, and some of its files may not belong to it any more: query it instead.",
            source=text,
        )
    matches = _matcher(pattern, suffix)
    chosen = [(path, size) for path, size in found if matches(os.path.relpath(path, base or "."))]
    if not chosen:
        raise _nothing(text)
    shown = directory.rstrip("/")
    return tuple(
        SourceFile(filesystem, path, f"{shown}/{os.path.relpath(path, base or '.')}", size)
        for path, size in sorted(chosen)
    )


@contextmanager
def reading(shown: str) -> Generator[None]:
    """Turn errors of reading a source into ours; ours pass unchanged."""
    try:
        yield
    except LakehouseError:
        raise
    except FileNotFoundError as error:
        raise _nothing(shown) from error
    except PermissionError as error:
        raise StoragePermissionError(
            f"Reading {shown!r} is not allowed: check its permissions.", source=shown
        ) from error
    except (OSError, EOFError, pa.ArrowException) as error:
        if isinstance(error, pa.ArrowInvalid) or _DAMAGED.search(str(error)):
            raise SourceFormatError(
                f"{shown!r} is damaged or not of the expected format: {error}", source=shown
            ) from error
        raise StorageIoError(f"Reading {shown!r} failed: {error}. Try again.", source=shown) from error


def is_uri(text: str) -> bool:
    """Tell whether a text is a URI rather than a local path."""
    return _SCHEME.match(text) is not None and not text.startswith("file://")


def local_path(text: str) -> Path:
    """Return the absolute local path that a path or `file://` URI names."""
    return Path(text.removeprefix("file://")).expanduser().absolute()


def _rooted(text: str, options: Mapping[str, str] | None) -> tuple[pafs.FileSystem, str]:
    if not is_uri(text):
        return pafs.LocalFileSystem(), str(local_path(text))
    parent, _, name = text.rstrip("/").rpartition("/")
    return Location.parse(parent, options).filesystem(), name


def _split_pattern(text: str) -> tuple[str, str | None]:
    """Split `a/b/*.parquet` into `a/b` and the pattern; a path that exists as written is no pattern."""
    wild = _WILD.search(text)
    if wild is None or (not is_uri(text) and local_path(text).exists()):
        return text, None
    slash = text.rfind("/", 0, wild.start())
    return (text[:slash] or "/" if slash >= 0 else "."), text[slash + 1 :]


def _files_below(filesystem: pafs.FileSystem, base: str) -> list[tuple[str, int]]:
    selector = pafs.FileSelector(base, recursive=True)
    infos = filesystem.get_file_info(selector)
    return [(info.path, info.size) for info in infos if info.type is pafs.FileType.File]


def _matcher(pattern: str | None, suffix: str) -> Callable[[str], bool]:
    if pattern is None:
        return lambda path: path.endswith(suffix) and not _is_hidden(path)
    regex = re.compile(_glob_regex(pattern))
    named = _is_hidden(pattern)
    return lambda path: regex.fullmatch(path) is not None and (named or not _is_hidden(path))


def _is_hidden(path: str) -> bool:
    return any(part.startswith((".", "_")) for part in path.split("/"))


def _glob_regex(pattern: str) -> str:
    parts = re.split(r"(\*\*/|\*\*|\*|\?)", pattern)
    wild = {"**/": r"(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    # fnmatch does the `[…]` classes; its wrapping `(?s:` and `)\Z` are cut off.
    return "".join(wild.get(part) or fnmatch.translate(part)[4:-3] for part in parts)


def _nothing(shown: str) -> SourceNotFoundError:
    return SourceNotFoundError(f"No file matches {shown!r}: check the path.", source=shown)
