"""A server's state directory: on the local disk, private, and used by one server at a time."""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import stat
from collections.abc import Callable
from contextlib import ExitStack
from hashlib import blake2s
from pathlib import Path

from lakehouse_platform.errors import ConfigError, StorageIoError, StoragePermissionError

_KEY_BYTES = 32


def state_home() -> Path:
    """Return the directory that holds the state directories of this user's servers."""
    # An empty or relative value counts as none: XDG Base Directory Specification 0.8.
    given = Path(os.environ.get("XDG_STATE_HOME", ""))
    base = given if given.is_absolute() else Path.home() / ".local" / "state"
    return base / "lakehouse" / "nfs"


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
            _check_private(path)
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


def load_secret(path: Path, make: Callable[[], bytes]) -> bytes:
    """Return what a private file holds; if there is none, make it, durable before it is first used.

    Raises:
        StorageIoError: The file has not the length of what is made.
        StoragePermissionError: Others can read or change the file.
    """
    fresh = make()
    if not path.exists():
        _write_private(path, fresh)
    if path.stat().st_mode & 0o077:
        raise StoragePermissionError(
            f"Others can read the secret in {path}: remove the file, restart the server and mount again.",
            path=str(path),
        )
    secret = path.read_bytes()
    if len(secret) != len(fresh):
        raise StorageIoError(
            f"The secret in {path} is damaged: remove the file, restart the server and mount again.",
            path=str(path),
        )
    return secret


def _write_private(path: Path, secret: bytes) -> None:
    unfinished = path.with_name(f"{path.name}.new")
    unfinished.unlink(missing_ok=True)
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.write(descriptor, secret)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    unfinished.rename(path)
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _check_private(path: Path) -> None:
    found = path.stat(follow_symlinks=False)
    if not stat.S_ISDIR(found.st_mode):
        raise StoragePermissionError(f"The state directory {path} is not a directory.", path=str(path))
    if found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise StoragePermissionError(
            f"Others can change the state directory {path}: make it yours alone (chmod 700) or choose another one.",
            path=str(path),
        )
    path.chmod(0o700)


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
