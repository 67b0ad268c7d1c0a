"""Tokens over HTTP: what is forged, changed, stale, ended, renewed or another's opens nothing."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from lakehouse_platform.model.actors import Role
from lakehouse_platform.private_files import state_directory
from lakehouse_platform_tests.security.conftest import Fort
from lakehouse_platform_tests.support.http_server import LiveHttp, Person
from lakehouse_platform_tests.support.people import OTHER_PASSWORD, PASSWORD

PUBLIC_KEY = b"-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n"


def _encoded(part: object) -> str:
    raw = part if isinstance(part, bytes) else json.dumps(part).encode()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _decoded(part: str) -> dict[str, Any]:
    return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))


def _signed(header: object, payload: object, key: bytes, digest: str = "sha256") -> str:
    text = f"{_encoded(header)}.{_encoded(payload)}"
    return f"{text}.{_encoded(hmac.digest(key, text.encode(), digest))}"


def _key(fort: Fort) -> bytes:
    """Return the key that the server signs with: whoever has it and cannot end a sign-in still needs one."""
    config = fort.live.lakehouse.config
    place = state_directory(config.state_path, fort.live.lakehouse.store.base.uri)
    (file,) = (place / "signing-keys").glob("*.key")
    return file.read_bytes()


Forge = Callable[[dict[str, Any], dict[str, Any], bytes], str]
FORGED: dict[str, Forge] = {
    "no signature": lambda h, p, k: f"{_encoded(h | {'alg': 'none'})}.{_encoded(p)}.",
    "no signature in other capitals": lambda h, p, k: f"{_encoded(h | {'alg': 'nOnE'})}.{_encoded(p)}.",
    "no algorithm": lambda h, p, k: f"{_encoded({'typ': 'JWT'})}.{_encoded(p)}.",
    "signature cut off": lambda h, p, k: f"{_encoded(h)}.{_encoded(p)}.",
    "empty key": lambda h, p, k: _signed(h, p, b""),
    "public key as a secret": lambda h, p, k: _signed(h, p, PUBLIC_KEY),
    "claims RSA, our key": lambda h, p, k: _signed(h | {"alg": "RS256"}, p, k),
    "claims Ed25519, our key": lambda h, p, k: _signed(h | {"alg": "EdDSA"}, p, k),
    "another hash, our key": lambda h, p, k: _signed(h | {"alg": "HS512"}, p, k, "sha512"),
    "key in the header": lambda h, p, k: _signed(h | {"jwk": {"kty": "oct", "k": _encoded(b"x" * 32)}}, p, b"x" * 32),
    "key at an address": lambda h, p, k: _signed(h | {"jku": "https://example.com/keys"}, p, b"x" * 32),
    "key from a path": lambda h, p, k: _signed(h | {"kid": "../../../../dev/null"}, p, b""),
    "key from a query": lambda h, p, k: _signed(h | {"kid": "x' UNION SELECT 'x"}, p, b"x"),
    "our key's name, another key": lambda h, p, k: _signed(h, p, hashlib.sha256(k).digest()),
    "our key, not yet valid": lambda h, p, k: _signed(h, p | {"iat": int(time.time()) + 3600}, k),
    "our key, not before": lambda h, p, k: _signed(h, p | {"nbf": int(time.time()) + 3600}, k),
    "our key, past its time": lambda h, p, k: _signed(h, p | {"iat": 1, "exp": int(time.time()) - 1}, k),
    "our key, no end": lambda h, p, k: _signed(h, {name: v for name, v in p.items() if name != "exp"}, k),
    "our key, another audience": lambda h, p, k: _signed(h, p | {"aud": "elsewhere"}, k),
    "our key, another issuer": lambda h, p, k: _signed(h, p | {"iss": "elsewhere"}, k),
    # Not even the key helps without a sign-in of the lakehouse that has this very token.
    "our key, mightier": lambda h, p, k: _signed(h, p | {"role": "superadmin"}, k),
    "our key, another user": lambda h, p, k: _signed(h, p | {"sub": "0" * 32}, k),
    "our key, another sign-in": lambda h, p, k: _signed(h, p | {"sid": "0" * 32}, k),
    "our key, another id": lambda h, p, k: _signed(h, p | {"jti": "0" * 32}, k),
}  # fmt: skip


@pytest.mark.parametrize("forge", FORGED.values(), ids=FORGED.keys())
def test_a_forged_token_opens_nothing(fort: Fort, forge: Forge) -> None:
    ours = fort.people[Role.USER].tokens.access_token
    header, payload = map(_decoded, ours.split(".")[:2])
    token = forge(header, payload, _key(fort))
    assert token != ours
    for path in ("/v1/me", "/v1/auth/verify", "/v1/users", "/metrics"):
        answer = fort.live.get(path, headers={"Authorization": f"Bearer {token}"})
        assert answer.status_code == 401, answer.text
        assert answer.headers["www-authenticate"] == "Bearer"
        assert token not in answer.text


def test_what_the_forger_begins_with_would_be_taken(fort: Fort) -> None:
    ours = fort.people[Role.USER].tokens.access_token
    header, payload = map(_decoded, ours.split(".")[:2])
    # JSON as PyJWT writes it.
    text = ".".join(_encoded(json.dumps(part, separators=(",", ":")).encode()) for part in (header, payload))
    again = f"{text}.{_encoded(hmac.digest(_key(fort), text.encode(), 'sha256'))}"
    assert fort.live.get("/v1/me", headers={"Authorization": f"Bearer {again}"}).status_code == (
        200 if again == ours else 401
    )
    assert again.split(".")[1] == ours.split(".")[1]


@pytest.mark.parametrize(
    "header",
    [
        "Basic dGhlLXVzZXI6eA==",
        "Bearer",
        "Token x",
        "Bearer a b",
        "Bearer\u00a0x",
        "x" * 20_000,
    ],
    ids=lambda text: text[:12],
)
def test_what_is_no_token_is_refused(fort: Fort, header: str) -> None:
    answer = fort.live.get("/v1/me", headers={b"Authorization": header.encode("latin-1")})  # type: ignore[dict-item]
    assert answer.status_code == 401


def test_two_tokens_in_one_request_are_refused(fort: Fort) -> None:
    user, boss = (fort.people[role].headers["Authorization"] for role in (Role.USER, Role.SUPERADMIN))
    both = [("Authorization", user), ("Authorization", boss)]
    assert fort.live.client.get("/v1/users", headers=both).status_code == 401


def test_a_token_in_the_address_or_a_cookie_is_not_looked_at(fort: Fort) -> None:
    token = fort.people[Role.SUPERADMIN].tokens.access_token
    assert fort.live.get(f"/v1/users?access_token={token}").status_code == 401
    assert fort.live.get("/v1/users", headers={"Cookie": f"access_token={token}"}).status_code == 401


def test_a_refresh_token_opens_nothing_and_an_access_token_renews_nothing(fort: Fort) -> None:
    tokens = fort.live.person("the-confused").tokens
    as_access = {"Authorization": f"Bearer {tokens.refresh_token}"}
    assert fort.live.get("/v1/me", headers=as_access).status_code == 401
    answer = fort.live.post("/v1/auth/refresh", json={"refresh_token": tokens.access_token})
    assert answer.status_code == 401


def _ended(live: LiveHttp, person: Person) -> None:
    live.post("/v1/auth/logout", person)


def _renewed(live: LiveHttp, person: Person) -> None:
    live.post("/v1/auth/refresh", json={"refresh_token": person.tokens.refresh_token})


def _new_password(live: LiveHttp, person: Person) -> None:
    live.lakehouse.accounts.set_password(person.user_id, OTHER_PASSWORD)


def _disabled_and_enabled(live: LiveHttp, person: Person) -> None:
    live.lakehouse.accounts.disable(person.user_id)
    live.lakehouse.accounts.enable(person.user_id)


def _revoked(live: LiveHttp, person: Person) -> None:
    live.request("DELETE", f"/v1/me/sessions/{person.tokens.session_id}", person)


@pytest.mark.parametrize("end", [_ended, _renewed, _new_password, _disabled_and_enabled, _revoked])
def test_a_token_is_void_from_the_moment_that_its_sign_in_changed(
    fort: Fort, end: Callable[[LiveHttp, Person], None]
) -> None:
    person = fort.live.person(f"ended-by{end.__name__.replace('_', '-')}")
    assert fort.live.get("/v1/me", person).status_code == 200
    end(fort.live, person)
    answer = fort.live.get("/v1/me", person)
    assert (answer.status_code, answer.json()["code"]) == (401, "authentication_failed")


def test_a_refresh_token_that_is_replayed_ends_what_the_thief_and_the_owner_have(fort: Fort) -> None:
    owner = fort.live.person("the-robbed")
    stolen = {"refresh_token": owner.tokens.refresh_token}
    renewed = fort.live.post("/v1/auth/refresh", json=stolen).json()
    replayed = fort.live.post("/v1/auth/refresh", json=stolen)
    assert (replayed.status_code, replayed.json()["code"]) == (401, "token_reuse")
    assert owner.user_id not in replayed.text
    for token in (owner.tokens.access_token, renewed["access_token"]):
        assert fort.live.get("/v1/me", headers={"Authorization": f"Bearer {token}"}).status_code == 401
    again = fort.live.post("/v1/auth/refresh", json={"refresh_token": renewed["refresh_token"]})
    assert again.status_code == 401
    assert fort.live.lakehouse.accounts.login("the-robbed", PASSWORD)


def test_api_keys_that_are_wrong_revoked_or_past_their_time_get_one_answer(fort: Fort) -> None:
    accounts = fort.live.lakehouse.accounts
    program = accounts.create_service_account("a-program-with-keys")
    made = accounts.create_api_key(program.user_id, "revoked")
    accounts.revoke_api_key(program.user_id, made.key_id)
    right = accounts.create_api_key(program.user_id, "right").key
    keys = [
        made.key,
        right[:-1] + ("A" if right[-1] != "A" else "B"),
        "lhk_" + "0" * 16 + "_" + "x" * 43,
        "lhk_",
        "lhk__",
    ]
    told: set[str] = set()
    for key in keys:
        answer = fort.live.get("/v1/me", headers={"Authorization": f"Bearer {key}"})
        assert answer.status_code == 401
        told.add(str({name: value for name, value in answer.json().items() if name != "request_id"}))
    assert len(told) == 1
    assert fort.live.get("/v1/me", headers={"Authorization": f"Bearer {right}"}).status_code == 200
