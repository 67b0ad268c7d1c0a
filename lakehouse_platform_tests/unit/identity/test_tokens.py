"""Tokens: ours are understood, and nothing else is, however it was made."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import jwt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse_platform.errors import ConfigError, TokenExpiredError, TokenInvalidError
from lakehouse_platform.identity.tokens import Claims, TokenSigner
from lakehouse_platform.model.actors import Role, SubscriptionTier

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
KEY = bytes(range(32))
OTHER_KEY = bytes(range(100, 140))
CLAIMS = Claims(
    sub="0b2e",
    sid="5a1f",
    jti="77",
    role=Role.USER,
    tier=SubscriptionTier.PRO,
    issued_at=NOW,
    expires_at=NOW + timedelta(hours=24),
)


def signer(keys: dict[str, bytes] | None = None, current: str = "a", **other: str) -> TokenSigner:
    return TokenSigner(keys or {"a": KEY}, current, **{"issuer": "lake", "audience": "api", **other})


def payload(**changes: Any) -> dict[str, Any]:
    seconds = int(NOW.timestamp())
    made = {
        "iss": "lake", "aud": "api", "sub": "0b2e", "sid": "5a1f", "jti": "77", "iat": seconds,
        "exp": seconds + 3600, "role": "user", "tier": "pro",
    }  # fmt: skip
    return {key: value for key, value in {**made, **changes}.items() if value is not ...}


def encoded(part: object) -> str:
    raw = part if isinstance(part, bytes) else json.dumps(part).encode()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def forged(header: object, body: object, key: bytes = KEY, digest: str = "sha256") -> str:
    signed = f"{encoded(header)}.{encoded(body)}"
    return f"{signed}.{encoded(hmac.digest(key, signed.encode(), digest))}"


HEADER = {"alg": "HS256", "typ": "JWT", "kid": "a"}


def refused(token: str, now: datetime = NOW) -> None:
    with pytest.raises(TokenInvalidError) as caught:
        signer().verify(token, now)
    assert caught.value.message == "The token is not valid here: sign in again."


def test_a_token_says_what_it_was_issued_with() -> None:
    made = signer()
    assert made.verify(made.issue(CLAIMS), NOW) == CLAIMS
    assert signer().verify(made.issue(CLAIMS), NOW) == CLAIMS


def test_parts_of_a_second_are_cut_off() -> None:
    late = replace(CLAIMS, issued_at=NOW + timedelta(milliseconds=999))
    assert signer().verify(signer().issue(late), NOW) == CLAIMS


def test_what_this_test_forges_would_be_taken_if_nothing_were_wrong_with_it() -> None:
    assert signer().verify(forged(HEADER, payload()), NOW).sub == "0b2e"


def test_it_ends_on_the_second_with_no_allowance() -> None:
    made = signer()
    token = made.issue(CLAIMS)
    assert made.verify(token, CLAIMS.expires_at - timedelta(microseconds=1)) == CLAIMS
    for late in (CLAIMS.expires_at, CLAIMS.expires_at + timedelta(days=1000)):
        with pytest.raises(TokenExpiredError, match="past its time"):
            made.verify(token, late)  # remembered
        with pytest.raises(TokenExpiredError, match="past its time"):
            signer().verify(token, late)  # new


def test_it_is_void_before_it_was_issued() -> None:
    token = signer().issue(CLAIMS)
    assert signer().verify(token, NOW - timedelta(seconds=30)) == CLAIMS
    refused(token, NOW - timedelta(seconds=31))
    remembering = signer()
    remembering.verify(token, NOW)
    with pytest.raises(TokenInvalidError):
        remembering.verify(token, NOW - timedelta(seconds=31))


def test_not_before_is_heeded() -> None:
    later = int(NOW.timestamp()) + 600
    token = forged(HEADER, payload(nbf=later))
    refused(token)
    assert signer().verify(token, NOW + timedelta(minutes=10)).sub == "0b2e"


@pytest.mark.parametrize("alg", ["none", "None", "NONE", "nOnE", ""])
def test_an_unsigned_token_is_refused(alg: str) -> None:
    header = {**HEADER, "alg": alg}
    refused(f"{encoded(header)}.{encoded(payload())}.")
    refused(f"{encoded(header)}.{encoded(payload())}")
    refused(forged(header, payload()))


def test_a_token_that_the_library_made_without_a_signature_is_refused() -> None:
    refused(jwt.encode(payload(), None, algorithm="none", headers={"kid": "a"}))  # type: ignore[arg-type]


@pytest.mark.parametrize(("alg", "digest"), [("HS384", "sha384"), ("HS512", "sha512")])
def test_another_hash_with_the_right_key_is_refused(alg: str, digest: str) -> None:
    refused(forged({**HEADER, "alg": alg}, payload(), KEY * 2, digest))
    refused(forged({**HEADER, "alg": alg}, payload(), KEY, digest))


@pytest.mark.parametrize("alg", ["RS256", "ES256", "PS256", "EdDSA"])
def test_a_token_that_claims_a_public_key_is_refused_even_with_our_hmac(alg: str) -> None:
    """RS/HS confusion: a key of ours must never be used under another name."""
    refused(forged({**HEADER, "alg": alg}, payload()))


def test_a_public_key_in_the_place_of_a_secret_signs_nothing() -> None:
    public = b"-----BEGIN PUBLIC KEY-----\nMFwwDQYJKoZIhvcNAQEBBQADSwAwSAJBAL\n-----END PUBLIC KEY-----\n"
    refused(forged(HEADER, payload(), public))
    refused(forged({**HEADER, "jwk": {"kty": "oct", "k": encoded(OTHER_KEY)}}, payload(), OTHER_KEY))


@pytest.mark.parametrize(
    "more",
    [{"jku": "https://evil.example/keys"}, {"x5u": "https://evil.example"}, {"jwk": {"kty": "oct", "k": "AAAA"}},
     {"crit": ["exp"]}, {"crit": []}, {"b64": True}, {"cty": "JWT"}, {"zip": "DEF"}],
)  # fmt: skip
def test_a_header_that_asks_for_more_is_refused(more: dict[str, Any]) -> None:
    refused(forged({**HEADER, **more}, payload()))


@pytest.mark.parametrize("kid", [..., None, "", "b", "../../etc/passwd", 1, ["a"], {"a": 1}, "a' OR '1'='1"])
def test_a_token_must_name_one_of_our_keys(kid: object) -> None:
    refused(forged({k: v for k, v in {**HEADER, "kid": kid}.items() if v is not ...}, payload()))


@pytest.mark.parametrize("header", [[], "HS256", 1, None, {}, {"alg": ["HS256"], "typ": "JWT", "kid": "a"}])
def test_a_header_of_another_shape_is_refused(header: object) -> None:
    refused(forged(header, payload()))


@pytest.mark.parametrize("body", [[], "text", 1, None, {}, b"\xff\xfe", b"{", b"[" * 3000])
def test_a_payload_of_another_shape_is_refused(body: object) -> None:
    refused(forged(HEADER, body))


@pytest.mark.parametrize("name", ["iss", "aud", "sub", "sid", "jti", "iat", "exp", "role", "tier"])
@pytest.mark.parametrize("value", [..., None, "", [], {}, True, -1.5, ["api"]])
def test_every_claim_must_be_there_and_of_its_kind(name: str, value: object) -> None:
    refused(forged(HEADER, payload(**{name: value})))


@pytest.mark.parametrize(
    "changes",
    [{"iss": "other"}, {"iss": "lake "}, {"iss": ["lake"]}, {"aud": "other"}, {"aud": ["api", "other"]},
     {"role": "root"}, {"role": "USER"}, {"tier": "gold"}, {"exp": 10**30}, {"exp": float(2**31)}, {"nbf": "1"}],
)  # fmt: skip
def test_claims_of_other_issuers_audiences_and_kinds_are_refused(changes: dict[str, Any]) -> None:
    refused(forged(HEADER, payload(**changes)))


def test_a_token_for_another_issuer_or_audience_is_refused() -> None:
    refused(signer(issuer="elsewhere").issue(CLAIMS))
    refused(signer(audience="elsewhere").issue(CLAIMS))


def test_a_token_of_another_key_is_refused_and_another_keys_id_does_not_help() -> None:
    refused(signer({"a": OTHER_KEY}).issue(CLAIMS))
    both = signer({"a": KEY, "b": OTHER_KEY})
    with pytest.raises(TokenInvalidError):
        both.verify(forged({**HEADER, "kid": "b"}, payload(), KEY), NOW)


def test_an_old_key_verifies_until_it_is_removed() -> None:
    token = signer({"a": KEY}).issue(CLAIMS)
    rotated = signer({"a": KEY, "b": OTHER_KEY}, "b")
    assert rotated.verify(token, NOW) == CLAIMS
    assert jwt.get_unverified_header(rotated.issue(CLAIMS))["kid"] == "b"
    with pytest.raises(TokenInvalidError):
        signer({"b": OTHER_KEY}, "b").verify(token, NOW)


def test_a_change_of_any_one_character_is_noticed() -> None:
    token = signer().issue(CLAIMS)
    known = signer()
    known.verify(token, NOW)
    for place, character in enumerate(token):
        for other in ("A" if character != "A" else "B", "-", ".", "=", "\n", "é"):
            if other != character:
                with pytest.raises(TokenInvalidError):
                    known.verify(token[:place] + other + token[place + 1 :], NOW)


def test_a_token_has_one_text() -> None:
    """The last character of a signature holds two bits that mean nothing: other texts of it are other tokens."""
    token = signer().issue(CLAIMS)
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    for other in alphabet.replace(token[-1], ""):
        refused(token[:-1] + other)
    for other in (
        token + "=",
        token + "==",
        token + "\n",
        " " + token,
        token + ".",
        "." + token,
        token + "\0",
    ):
        refused(other)


def test_parts_of_two_tokens_make_none() -> None:
    one, two = signer().issue(CLAIMS).split("."), signer().issue(replace(CLAIMS, role=Role.ADMIN)).split(".")
    refused(".".join([one[0], two[1], one[2]]))
    refused(".".join(one[:2]))
    refused(".".join([*one, one[2]]))
    refused("")


@pytest.mark.parametrize("text", ["a" * 5000, "é.é.é", "\ud800", "a.b.c", "..", "\0"])
def test_what_is_no_token_at_all_is_refused(text: str) -> None:
    refused(text)


@given(st.text())
def test_no_text_is_taken_or_breaks_it(text: str) -> None:
    refused(text)


@given(
    st.dictionaries(
        st.sampled_from([*payload(), "nbf"]),
        st.none() | st.text() | st.integers() | st.booleans(),
        min_size=1,
    )
)
def test_a_signed_payload_is_taken_whole_or_refused(changes: dict[str, Any]) -> None:
    try:
        claims = signer().verify(forged(HEADER, payload(**changes)), NOW)
    except (TokenInvalidError, TokenExpiredError):
        return
    assert claims.sub == changes.get("sub", "0b2e")
    assert claims.expires_at > NOW


@pytest.mark.parametrize("length", [0, 1, 31])
def test_a_short_key_is_refused(length: int) -> None:
    with pytest.raises(ConfigError, match="at least 32"):
        signer({"a": bytes(length)})


def test_the_current_key_must_be_there() -> None:
    with pytest.raises(ConfigError, match="'b' is not among"):
        signer({"a": KEY}, "b")


def test_neither_errors_nor_claims_show_the_token_or_the_key() -> None:
    made = signer()
    token = made.issue(CLAIMS)
    with pytest.raises(TokenInvalidError) as caught:
        made.verify(token[:-2] + "xx", NOW)
    assert token[:20] not in str(caught.value.to_dict())
    assert repr(KEY) not in repr(made)


def test_it_remembers_a_limited_number_of_tokens_and_no_text_of_them() -> None:
    made = signer()
    tokens = [made.issue(replace(CLAIMS, jti=str(number))) for number in range(4200)]
    for token in tokens:
        made.verify(token, NOW)
    assert len(made._verified) == 4096
    assert set(made._verified) == {hashlib.sha256(token.encode()).digest() for token in tokens[-4096:]}
    assert made.verify(tokens[0], NOW).jti == "0"


def test_a_token_that_was_refused_is_not_remembered() -> None:
    made = signer()
    with pytest.raises(TokenInvalidError):
        made.verify("a.b.c", NOW)
    with pytest.raises(TokenExpiredError):
        made.verify(made.issue(CLAIMS), CLAIMS.expires_at)
    assert len(made._verified) == 0


def test_a_repeated_check_takes_microseconds() -> None:
    made = signer()
    token = made.issue(CLAIMS)
    made.verify(token, NOW)

    def seconds() -> float:
        started = time.perf_counter()
        for _ in range(100):
            made.verify(token, NOW)
        return (time.perf_counter() - started) / 100

    # Measured: 3 µs, and 40 µs with a check of the signature. The best of some: the machine may be busy.
    assert min(seconds() for _ in range(20)) < 15e-6
