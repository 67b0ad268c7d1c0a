"""Access tokens: JSON Web Tokens signed with HMAC-SHA-256 and nothing else (RFC 7519, RFC 8725).

What a token must look like is stricter than the standard: exactly our header, all our claims, each of its type.
A client is told that its token is past its time, and of all other faults only that there is one.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import jwt
from jwt.exceptions import PyJWTError

from lakehouse_platform.errors import ConfigError, TokenExpiredError, TokenInvalidError
from lakehouse_platform.model.actors import Role, SubscriptionTier

ALGORITHM: Final = "HS256"
_TYPE: Final = "JWT"
# RFC 7518 §3.2.
_LEAST_KEY_BYTES = 32
# Ours have about 500; longer ones are refused before anything is decoded.
_MOST_TOKEN_BYTES = 4096
# How far the clocks of two machines may differ before a fresh token counts as one from the future. The end of a
# token has no such allowance.
_SKEW = timedelta(seconds=30)
# One kilobyte each.
_REMEMBERED = 4096
_REQUIRED = ("iss", "aud", "sub", "sid", "jti", "iat", "exp", "role", "tier")
# PyJWT would read the clock itself; times are checked here against the clock that is given.
_OPTIONS: Any = {
    "require": list(_REQUIRED), "verify_exp": False, "verify_nbf": False, "verify_iat": False, "strict_aud": True,
    "enforce_minimum_key_length": True,
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """What a token says.

    Attributes:
        sub: The user's id.
        sid: The session's id.
        jti: The token's own id.
        role: The user's role when it was issued.
        tier: The user's subscription when it was issued.
        issued_at: When it was issued, to the second.
        expires_at: From when on it is void, to the second.
    """

    sub: str
    sid: str
    jti: str
    role: Role
    tier: SubscriptionTier
    issued_at: datetime
    expires_at: datetime


class TokenSigner:
    """Issues and verifies tokens. Safe to share between threads."""

    def __init__(self, keys: Mapping[str, bytes], current: str, issuer: str, audience: str) -> None:
        """Take the keys.

        Args:
            keys: Key id to key; all verify.
            current: Id of the key that signs.
            issuer: Who issues the tokens: tokens of others are refused.
            audience: Whom they are for: tokens for others are refused.

        Raises:
            ConfigError: A key has less than 32 bytes, or the current one is missing.
        """
        if current not in keys:
            raise ConfigError(f"Signing key {current!r} is not among the keys: add it.", kid=current)
        for kid, key in keys.items():
            if len(key) < _LEAST_KEY_BYTES:
                raise ConfigError(
                    f"Signing key {kid!r} has {len(key)} bytes; HS256 needs at least {_LEAST_KEY_BYTES}.",
                    kid=kid,
                )
        self._keys = dict(keys)
        self._current = current
        self._issuer = issuer
        self._audience = audience
        self._verified: OrderedDict[bytes, tuple[Claims, datetime]] = OrderedDict()
        self._lock = threading.Lock()

    def issue(self, claims: Claims) -> str:
        """Return a signed token; parts of a second in its times are cut off."""
        payload = {
            "iss": self._issuer,
            "aud": self._audience,
            "sub": claims.sub,
            "sid": claims.sid,
            "jti": claims.jti,
            "iat": int(claims.issued_at.timestamp()),
            "exp": int(claims.expires_at.timestamp()),
            "role": claims.role.value,
            "tier": claims.tier.value,
        }
        key = self._keys[self._current]
        return jwt.encode(payload, key, ALGORITHM, headers={"typ": _TYPE, "kid": self._current})

    def verify(self, token: str, now: datetime) -> Claims:
        """Return what a token says, if it is ours, unchanged and in its time.

        Args:
            token: The token.
            now: The time that counts.

        Raises:
            TokenExpiredError: It is ours, but past its time.
            TokenInvalidError: It is not ours, or was changed.
        """
        # By digest: neither the time of the look-up nor a dump of this table tells anything of a token.
        digest = hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
        with self._lock:
            found = self._verified.get(digest)
            if found is not None:
                self._verified.move_to_end(digest)
        if found is None:
            found = self._decoded(token)
        claims, not_before = found
        _require_in_time(claims, not_before, now)
        self._remember(digest, found)
        return claims

    def _remember(self, digest: bytes, found: tuple[Claims, datetime]) -> None:
        with self._lock:
            self._verified[digest] = found
            while len(self._verified) > _REMEMBERED:
                self._verified.popitem(last=False)

    def _decoded(self, token: str) -> tuple[Claims, datetime]:
        """Return the claims of a token whose signature is right, and from when on it counts."""
        # PyJWT takes padding, so one token would have several texts; and only ASCII can be base64.
        if len(token) > _MOST_TOKEN_BYTES or not token.isascii() or "=" in token:
            raise _invalid()
        try:
            payload = self._payload(token)
        except (PyJWTError, ValueError, RecursionError) as error:
            raise _invalid() from error
        return _claims(payload)

    def _payload(self, token: str) -> Mapping[str, Any]:
        header = jwt.get_unverified_header(token)
        kid = header.get("kid")
        # Nothing that a header could ask for is needed: no other algorithm, no key by address, no extension.
        if header != {"alg": ALGORITHM, "typ": _TYPE, "kid": kid} or kid not in self._keys:
            raise _invalid()
        return jwt.decode(
            token,
            self._keys[kid],
            algorithms=[ALGORITHM],
            issuer=self._issuer,
            audience=self._audience,
            options=_OPTIONS,
        )


def _claims(payload: Mapping[str, Any]) -> tuple[Claims, datetime]:
    try:
        claims = Claims(
            sub=_text(payload["sub"]),
            sid=_text(payload["sid"]),
            jti=_text(payload["jti"]),
            role=Role(payload["role"]),
            tier=SubscriptionTier(payload["tier"]),
            issued_at=_time(payload["iat"]),
            expires_at=_time(payload["exp"]),
        )
        return claims, _time(payload["nbf"]) if "nbf" in payload else claims.issued_at
    except (ValueError, OverflowError, OSError) as error:
        raise _invalid() from error


def _text(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError("a claim is no text")
    return value


def _time(value: object) -> datetime:
    # Whole seconds only; `True` is an int for Python.
    if type(value) is not int:
        raise ValueError("a time is no whole number")
    return datetime.fromtimestamp(value, UTC)


def _require_in_time(claims: Claims, not_before: datetime, now: datetime) -> None:
    if max(claims.issued_at, not_before) > now + _SKEW:
        raise _invalid()
    if now >= claims.expires_at:
        raise TokenExpiredError("The token is past its time: refresh it or sign in again.")


def _invalid() -> TokenInvalidError:
    return TokenInvalidError("The token is not valid here: sign in again.")
