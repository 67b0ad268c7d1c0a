"""User names and e-mail addresses: which are allowed, and which are the same."""

from __future__ import annotations

import hashlib
import re
import unicodedata

from lakehouse_platform.errors import InvalidNameError
from lakehouse_platform.model.actors import ANONYMOUS, OWNER

# Their entries in the audit log must not be taken for an account's.
_RESERVED = frozenset({OWNER.id, ANONYMOUS.id})
_USERNAME = re.compile(r"[A-Za-z0-9._-]{3,64}")
# RFC 5321 §4.5.3.1: the part before the @ has at most 64 octets, the whole path 256 with its angle brackets.
_MOST_LOCAL_BYTES = 64
_MOST_EMAIL_BYTES = 254
# RFC 5322's dot-atom, with the letters of other scripts that RFC 6531 adds; quoted forms are refused.
_LOCAL = re.compile(r"[\w!#$%&'*+/=?^`{|}~-]+(\.[\w!#$%&'*+/=?^`{|}~-]+)*")
# RFC 5890 §2.3.1: the labels of a domain; one label alone is no address on the internet.
_DOMAIN = re.compile(r"([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


def check_username(text: str) -> str:
    """Return a user name as it is kept.

    Raises:
        InvalidNameError: It has other characters than letters, digits, `.`, `_` and `-`, or not 3 to 64 of them.
    """
    name = text.strip()
    if _USERNAME.fullmatch(name) is None:
        raise InvalidNameError(
            "A user name has 3 to 64 characters: letters without accents, digits, '.', '_' and '-'. Choose another one."
        )
    return name


def check_new_username(text: str) -> str:
    """Return the user name of an account that is to be made, as it is kept.

    Raises:
        InvalidNameError: It is no user name, or is what the audit log calls those who have no account.
    """
    name = check_username(text)
    if name.lower() in _RESERVED:
        raise InvalidNameError(f"Nobody can have the user name {name!r}: choose another one.")
    return name


def normal_email(text: str) -> str:
    """Return an e-mail address as it is kept: trimmed, in NFC, its domain in lower-case ASCII (IDNA).

    Raises:
        InvalidNameError: It is no address of the form name@domain.
    """
    local, _, domain = unicodedata.normalize("NFC", text.strip()).rpartition("@")
    ascii_domain = _ascii_domain(domain)
    address = f"{local}@{ascii_domain}"
    if (
        _LOCAL.fullmatch(local) is None
        or _DOMAIN.fullmatch(ascii_domain) is None
        or len(local.encode()) > _MOST_LOCAL_BYTES
        or len(address.encode()) > _MOST_EMAIL_BYTES
    ):
        raise InvalidNameError("That is no e-mail address: write it like name@example.com.")
    return address


def email_key(text: str) -> str:
    """Return what is equal for equal e-mail addresses, and tells none.

    Neither capitals make a difference nor other forms of the same letters, such as wide ones, which nobody tells apart.

    Raises:
        InvalidNameError: It is no address of the form name@domain.
    """
    folded = unicodedata.normalize("NFKC", normal_email(text)).lower()
    return _digest("email", unicodedata.normalize("NFKC", folded))


def username_key(text: str) -> str:
    """Return what is equal for equal user names, and tells none; capitals make no difference.

    Raises:
        InvalidNameError: It is no user name.
    """
    return _digest("username", check_username(text).lower())


def login_key(text: str) -> str:
    """Return what is equal for equal names at a sign-in, whether they are valid or not; failures are counted by it."""
    return _digest("login", unicodedata.normalize("NFC", text.strip()).lower())


def _ascii_domain(domain: str) -> str:
    try:
        # The standard library knows IDNA 2003, which is what most mail servers still look up.
        return domain.encode("idna").decode("ascii").lower()
    except UnicodeError:
        return ""


def _digest(kind: str, text: str) -> str:
    # "replace" is for lone surrogates, which only a sign-in may bring here.
    return hashlib.sha256(f"{kind}\0{text}".encode("utf-8", "replace")).hexdigest()
