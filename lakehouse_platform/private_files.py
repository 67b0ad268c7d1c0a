"""Files that only this user may read: the state directory of a lakehouse, and the secrets in it."""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Callable, Generator
from contextlib import contextmanager
from hashlib import blake2s
from pathlib import Path

from lakehouse_platform.errors import StorageIoError, StoragePermissionError


def state_root() -> Path:
    """Return the directory that holds what lakehouses and their servers keep for this user."""
    # An empty or relative value counts as none: XDG Base Directory Specification 0.8.
    given = Path(os.environ.get("XDG_STATE_HOME", ""))
    base = given if given.is_absolute() else Path.home() / ".local" / "state"
    return base / "lakehouse"


def state_directory(state_path: str | None, base_uri: str) -> Path:
    """Return where the journals, secrets and counters of a lakehouse are kept, without making it.

    Args:
        state_path: What the setting says.
        base_uri: Location of the lakehouse, always written the same way: `store.base.uri`.
    """
    if state_path is not None:
        return Path(state_path).expanduser().absolute()
    return state_root() / blake2s(base_uri.encode(), digest_size=8).hexdigest()


def private_directory(path: Path) -> Path:
    """Make a directory that only this user may use, if it is missing, and return it.

    Raises:
        StoragePermissionError: Others could change what is in it, or this user may not.
        StorageIoError: The disk fails.
    """
    with reported(path, "The state directory"):
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        check_private(path)
    return path


@contextmanager
def reported(path: Path, what: str = "The file") -> Generator[None]:
    """Turn what the operating system complains about into our errors.

    Args:
        path: What is worked on.
        what: What that is, at the beginning of a sentence.
    """
    try:
        yield
    except PermissionError as error:
        raise StoragePermissionError(
            f"{what} {path} cannot be used: {error}. Choose another state_path.", path=str(path)
        ) from error
    except OSError as error:
        raise StorageIoError(f"{what} {path} cannot be used: {error}.", path=str(path)) from error


def load_secret(path: Path, make: Callable[[], bytes]) -> bytes:
    """Return what a private file holds; if there is none, make it, durable before it is first used.

    Several processes may do so at once: all get the same secret.

    Raises:
        StorageIoError: The file has not the length of what is made.
        StoragePermissionError: Others can read or change the file.
    """
    fresh = make()
    if not path.exists():
        _write_private(path, fresh)
    if path.stat().st_mode & 0o077:
        raise StoragePermissionError(
            f"Others can read the secret in {path}: remove the file and start again; what it signed is void then.",
            path=str(path),
        )
    secret = path.read_bytes()
    if len(secret) != len(fresh):
        raise StorageIoError(
            f"The secret in {path} is damaged: remove the file and start again; what it signed is void then.",
            path=str(path),
        )
    return secret


def replace_private(path: Path, content: bytes) -> None:
    """Write a private file in place of the one that may be there; whole and durable, or as it was.

    Whoever does so holds a lock (`locked`), so that two do not write at once.

    Raises:
        StoragePermissionError, StorageIoError: It cannot be written.
    """
    unfinished = path.with_name(f"{path.name}.new")
    with reported(path):
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(descriptor, 0o600)
            file.write(content)
            file.flush()
            os.fsync(descriptor)
        unfinished.rename(path)
        _sync_directory(path.parent)


@contextmanager
def locked(path: Path) -> Generator[None]:
    """Hold a lock that all processes of this user wait for; it ends with the process at the latest.

    Args:
        path: The file of the lock, made if it is missing and never removed.

    Raises:
        StoragePermissionError, StorageIoError: It cannot be used.
    """
    with reported(path):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        with reported(path):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _write_private(path: Path, secret: bytes) -> None:
    unfinished = path.with_name(f"{path.name}.new")
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if path.exists():
            # Somebody made it while this one waited: their secret is in use already.
            unfinished.unlink(missing_ok=True)
            return
        os.fchmod(descriptor, 0o600)
        os.ftruncate(descriptor, 0)
        os.write(descriptor, secret)
        os.fsync(descriptor)
        unfinished.rename(path)
    finally:
        os.close(descriptor)
    _sync_directory(path.parent)


def _sync_directory(path: Path) -> None:
    directory = os.open(path, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def check_private(path: Path) -> None:
    """Make sure that a directory is this user's alone.

    Raises:
        StoragePermissionError: It is no directory, or others own it or could change what is in it.
    """
    found = path.stat(follow_symlinks=False)
    if not stat.S_ISDIR(found.st_mode):
        raise StoragePermissionError(f"The state directory {path} is not a directory.", path=str(path))
    if found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise StoragePermissionError(
            f"Others can change the state directory {path}: make it yours alone (chmod 700) or choose another one.",
            path=str(path),
        )
    path.chmod(0o700)
