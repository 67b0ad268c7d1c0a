"""The library libnfs: an NFS client that is not Linux's, and never asks for attributes when it closes a file."""

from __future__ import annotations

import ctypes
import ctypes.util
import os
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from typing import Any


def is_there() -> bool:
    """Tell whether the library is installed."""
    return ctypes.util.find_library("nfs") is not None


@cache
def _library() -> ctypes.CDLL:
    library = ctypes.CDLL(ctypes.util.find_library("nfs"))
    pointer, text = ctypes.c_void_p, ctypes.c_char_p
    signatures: dict[str, tuple[Any, ...]] = {
        "nfs_destroy_context": (pointer,),
        "nfs_parse_url_dir": (pointer, text),
        "nfs_destroy_url": (pointer,),
        "nfs_mount": (pointer, text, text),
        "nfs_open": (pointer, text, ctypes.c_int, ctypes.POINTER(pointer)),
        "nfs_write": (pointer, pointer, ctypes.c_uint64, text),
        "nfs_pwrite": (pointer, pointer, ctypes.c_uint64, ctypes.c_uint64, text),
        "nfs_read": (pointer, pointer, ctypes.c_uint64, text),
        "nfs_ftruncate": (pointer, pointer, ctypes.c_uint64),
        "nfs_close": (pointer, pointer),
        "nfs_rename": (pointer, text, text),
        "nfs_unlink": (pointer, text),
    }
    for name, types in signatures.items():
        getattr(library, name).argtypes = types
    library.nfs_init_context.restype = library.nfs_parse_url_dir.restype = pointer
    library.nfs_get_error.restype, library.nfs_get_error.argtypes = text, (pointer,)
    return library


class LibNfs:
    """One mount.

    Args:
        port: Of the server on this machine.
        export: The path to mount.
    """

    def __init__(self, port: int, export: str) -> None:
        self._nfs = _library().nfs_init_context()
        url = f"nfs://127.0.0.1{export}?nfsport={port}&mountport={port}&version=3"
        parsed = _library().nfs_parse_url_dir(self._nfs, url.encode())
        _library().nfs_destroy_url(parsed)
        self.call("nfs_mount", b"127.0.0.1", export.encode())

    @contextmanager
    def open(self, path: str, flags: int) -> Generator[LibNfsFile]:
        """Open a file until the block ends."""
        handle = ctypes.c_void_p()
        self.call("nfs_open", path.encode(), flags, ctypes.byref(handle))
        file = LibNfsFile(self, handle)
        try:
            yield file
        except BaseException:
            _library().nfs_close(self._nfs, handle)
            raise
        self.call("nfs_close", handle)

    def rename(self, path: str, new: str) -> None:
        """Move a file."""
        self.call("nfs_rename", path.encode(), new.encode())

    def unlink(self, path: str) -> None:
        """Remove a file."""
        self.call("nfs_unlink", path.encode())

    def close(self) -> None:
        """End the connection."""
        _library().nfs_destroy_context(self._nfs)

    def call(self, name: str, *arguments: Any) -> int:
        """Call a function of the library on this mount; its errors are raised."""
        result = getattr(_library(), name)(self._nfs, *arguments)
        if result < 0:
            raise OSError(-result, f"{os.strerror(-result)}: {_library().nfs_get_error(self._nfs)!r}")
        return result


class LibNfsFile:
    """An open file."""

    def __init__(self, mount: LibNfs, handle: ctypes.c_void_p) -> None:
        self._mount, self._handle = mount, handle

    def write(self, data: bytes) -> None:
        """Write all bytes at the place where the last call ended."""
        while data:
            count = self._mount.call("nfs_write", self._handle, len(data), data)
            data = data[count:]

    def pwrite(self, data: bytes, offset: int) -> None:
        """Write at an offset."""
        count = self._mount.call("nfs_pwrite", self._handle, offset, len(data), data)
        assert count == len(data)

    def truncate(self, size: int) -> None:
        """Cut the file."""
        self._mount.call("nfs_ftruncate", self._handle, size)
