"""A server's state directory: on the local disk, private, and used by one server at a time."""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
from contextlib import ExitStack
from hashlib import blake2s
from pathlib import Path

from lakehouse_platform.errors import ConfigError, StorageIoError, StoragePermissionError
from lakehouse_platform.private_files import check_private, load_secret, state_root

_KEY_BYTES = 32


def state_home() -> Path:
    """Return the directory that holds the state directories of this user's servers."""
    return state_root() / "nfs"


def default_state_directory(source: str) -> Path:
    """Return where the state of the server of a lakehouse or table is kept, if the user names no place.

    Args:
        source: Location of the lakehouse or table, always written the same way.
    """
    return state_home() / blake2s(source.encode(), digest_size=8).hexdigest()


class StateDirectory:
    """A state directory that this server has locked until it closes it or ends.

    Attributes:
        path: Where it is.
        key: The secret that signs file handles; the same in every life of the server.
    """

    def __init__(self, path: Path) -> None:
        """Make the directory if it is missing, and lock it.

        Raises:
            ConfigError: Another server uses it.
            StoragePermissionError: Others could change what is in it, or this user may not.
            StorageIoError: The disk fails, or a file in it is damaged.
        """
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            check_private(path)
            with ExitStack() as undo:
                self._lock = _locked(path)
                undo.callback(os.close, self._lock)
                self.path = path
                self.key = load_secret(path / "key", lambda: secrets.token_bytes(_KEY_BYTES))
                undo.pop_all()
        except PermissionError as error:
            raise StoragePermissionError(
                f"The state directory {path} cannot be used: {error}. Choose another one.", path=str(path)
            ) from error
        except OSError as error:
            raise StorageIoError(
                f"The state directory {path} cannot be used: {error}.", path=str(path)
            ) from error

    def close(self) -> None:
        """Let another server use the directory."""
        os.close(self._lock)

    def __enter__(self) -> StateDirectory:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _locked(path: Path) -> int:
    descriptor = os.open(path / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.truncate(descriptor, 0)
        os.pwrite(descriptor, b"%d\n" % os.getpid(), 0)
    except OSError as error:
        holder = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip()
        os.close(descriptor)
        if error.errno not in (errno.EAGAIN, errno.EACCES):
            raise
        raise ConfigError(
            f"The state directory {path} is in use by the server with process id {holder}: "
            "stop that server, or give this one a state directory of its own.",
            path=str(path),
            pid=holder,
        ) from error
    return descriptor
