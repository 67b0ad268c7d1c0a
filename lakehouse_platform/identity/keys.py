"""The keys that sign tokens: the configured one, or files in the state directory."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from lakehouse_platform.errors import ConfigError, StoragePermissionError
from lakehouse_platform.private_files import load_secret, private_directory, reported
from lakehouse_platform.settings import LakehouseConfig

# RFC 7518 §3.2: an HS256 key has at least as many bits as the hash.
KEY_BYTES = 32
_DIRECTORY = "signing-keys"
_SUFFIX = ".key"
_FIRST = "k0-first"


@dataclass(frozen=True, slots=True)
class SigningKeys:
    """The keys that tokens may be signed with.

    Attributes:
        keys: Key id to key: all of them verify.
        current: The id of the key that signs.
    """

    keys: Mapping[str, bytes] = field(repr=False)
    current: str


def signing_keys(config: LakehouseConfig, state_dir: Path) -> SigningKeys:
    """Return the configured key alone if there is one, else the keys in the state directory: the newest signs.

    The first key is made on first use. Lakehouses on an object store that are served from several machines need the
    configured key, because each machine has a state directory of its own.

    Raises:
        ConfigError: A key is shorter than 32 bytes.
        StoragePermissionError, StorageIoError: The files cannot be used, or others can read them.
    """
    if config.jwt_secret is not None:
        secret = config.jwt_secret.get_secret_value().encode()
        return SigningKeys({(kid := _configured_id(secret)): secret}, kid)
    directory = private_directory(private_directory(state_dir) / _DIRECTORY)
    if not _files(directory):
        _make(directory / f"{_FIRST}{_SUFFIX}", _new_key)
    keys = {path.name.removesuffix(_SUFFIX): _read(path) for path in _files(directory)}
    return SigningKeys(keys, max(keys))


def rotate(
    state_dir: Path,
    *,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    make: Callable[[], bytes] = lambda: secrets.token_bytes(KEY_BYTES),
) -> str:
    """Add a key that signs from now on and return its id; tokens of the old keys verify until these are retired.

    A running server uses it once it has read the keys anew.

    Raises:
        StoragePermissionError, StorageIoError: The files cannot be used.
    """
    directory = private_directory(private_directory(state_dir) / _DIRECTORY)
    # The time makes the newest sort last; behind "k0-first", whatever the time.
    kid = f"k{clock().astimezone(UTC):%Y%m%dT%H%M%S%f}-{secrets.token_hex(4)}"
    _make(directory / f"{kid}{_SUFFIX}", make)
    return kid


def retire(state_dir: Path, kid: str) -> None:
    """Remove a key: tokens that it signed are void once the servers have read the keys anew.

    Raises:
        ConfigError: There is no such key, or it is the one that signs.
    """
    directory = private_directory(private_directory(state_dir) / _DIRECTORY)
    names = [path.name.removesuffix(_SUFFIX) for path in _files(directory)]
    if kid not in names:
        raise ConfigError(
            f"There is no signing key {kid!r}: there are {', '.join(names) or 'none'}.", kid=kid
        )
    if kid == max(names):
        raise ConfigError(f"Signing key {kid!r} is in use: add a new one before you remove it.", kid=kid)
    (directory / f"{kid}{_SUFFIX}").unlink()


def _files(directory: Path) -> list[Path]:
    return sorted(path for path in directory.iterdir() if path.suffix == _SUFFIX and path.name[0] != ".")


def _make(path: Path, make: Callable[[], bytes]) -> None:
    with reported(path):
        load_secret(path, make)


def _read(path: Path) -> bytes:
    with reported(path):
        if path.stat().st_mode & 0o077:
            raise StoragePermissionError(
                f"Others can read the signing key in {path}: remove the file, so that a new one is made.",
                path=str(path),
            )
        key = path.read_bytes()
    if len(key) < KEY_BYTES:
        raise ConfigError(
            f"The signing key in {path} has {len(key)} bytes; at least {KEY_BYTES} are needed: remove the file.",
            path=str(path),
        )
    return key


def _configured_id(secret: bytes) -> str:
    """Return an id that changes with the key; its digest tells no more of the key than any signed token does."""
    return "c-" + hashlib.sha256(b"lakehouse-signing-key\0" + secret).hexdigest()[:16]


def _new_key() -> bytes:
    return secrets.token_bytes(KEY_BYTES)
