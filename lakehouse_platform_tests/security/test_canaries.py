"""Secrets are planted in every request that takes one; then everything that was written or answered is searched."""

from __future__ import annotations

import base64
import gzip
import json
import logging
from pathlib import Path

import pytest

from lakehouse_platform.model.actors import Role
from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform_tests.support.http_server import LiveHttp, http_server
from lakehouse_platform_tests.support.people import user

CANARY = "Kanarienvogel-7d31-singt-im-Bergwerk"
NEXT_CANARY = "Zeisig-90c2-singt-auf-dem-Dach"
WRONG_CANARY = "Falke-55aa-singt-nicht"
TYPED_IN_THE_WRONG_FIELD = "Adler-31bd-kreist-ueber-dem-Tal"


def _sent_secrets(live: LiveHttp) -> tuple[list[str], list[str]]:
    """Use passwords, tokens and keys in all ways, rightly and wrongly, and return them and the answers' texts."""
    accounts, answers = live.lakehouse.accounts, list[str]()
    register = {"username": "canary", "email": "canary@example.com", "password": CANARY}
    made = live.post("/v1/auth/register", json=register)
    answers += [made.text, live.post("/v1/auth/register", json=register).text]
    answers += [live.post("/v1/auth/register", json={**register, "email": 1}).text]
    accounts.approve(made.json()["user_id"])
    signed_in = live.post("/v1/auth/login", json={"login": "canary", "password": CANARY}).json()
    headers = {"Authorization": f"Bearer {signed_in['access_token']}"}
    answers += [
        live.get(path, headers=headers).text for path in ("/v1/me", "/v1/me/sessions", "/v1/auth/verify")
    ]
    for body in (
        {"login": "canary", "password": WRONG_CANARY},
        {"login": TYPED_IN_THE_WRONG_FIELD, "password": "x"},
        {"login": "canary", "password": [WRONG_CANARY]},
        {"login": "canary", "password": WRONG_CANARY, "extra": WRONG_CANARY},
        {"login": "canary", "password": WRONG_CANARY * 100},
    ):
        answers.append(live.post("/v1/auth/login", json=body).text)
    answers.append(live.post("/v1/auth/login", content=f'{{"password": "{WRONG_CANARY}",').text)
    answers.append(live.post("/v1/auth/login", content=f"password={WRONG_CANARY}").text)
    # It stands in this one answer and nowhere else.
    ticket = live.post("/v1/me/mount-tickets", headers=headers).json()["ticket"]
    change = {"current_password": CANARY, "new_password": NEXT_CANARY}
    answers.append(live.post("/v1/auth/password", headers=headers, json=change).text)
    renewed = live.post("/v1/auth/refresh", json={"refresh_token": signed_in["refresh_token"]}).json()
    answers.append(live.post("/v1/auth/refresh", json={"refresh_token": signed_in["refresh_token"]}).text)
    program = accounts.create_service_account("program")
    key = accounts.create_api_key(program.user_id, "canary").key
    answers.append(live.get("/v1/me", headers={"Authorization": f"Bearer {key}"}).text)
    answers.append(live.get("/v1/me", headers={"Authorization": f"Bearer {key}x"}).text)
    # People paste secrets where they do not belong.
    answers.append(live.get(f"/v1/tables?token={signed_in['access_token']}", headers=headers).text)
    tokens = [
        signed_in["access_token"],
        signed_in["refresh_token"],
        renewed["access_token"],
        renewed["refresh_token"],
    ]
    return [CANARY, NEXT_CANARY, WRONG_CANARY, TYPED_IN_THE_WRONG_FIELD, *tokens, key, ticket], answers


def _variants(secret: str) -> list[bytes]:
    encoded = base64.b64encode(secret.encode()).rstrip(b"=")[:-2]
    # The secret part of an API key; other tokens may hold the same sign anywhere.
    last = secret.split("_", 2)[2] if secret.startswith("lhk_") else secret
    return [secret.encode(), encoded, json.dumps(secret)[1:-1].encode(), last.encode()]


def _written(places: list[Path]) -> dict[str, bytes]:
    """Return every file, and what is packed in it as Parquet's readers see it."""
    import pyarrow.parquet as pq

    found: dict[str, bytes] = {}
    for path in (file for place in places for file in place.rglob("*") if file.is_file()):
        found[str(path)] = path.read_bytes()
        if path.suffix == ".parquet":
            found[f"{path} (rows)"] = str(pq.read_table(path).to_pylist()).encode()
        elif path.suffix == ".gz":
            found[f"{path} (unpacked)"] = gzip.decompress(path.read_bytes())
    return found


def test_no_secret_is_written_logged_counted_or_answered(
    config: LakehouseConfig, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with http_server(config) as live:
        boss = live.person("boss", Role.SUPERADMIN)
        secrets, answers = _sent_secrets(live)
        answers += [
            live.get("/metrics", boss).text,
            live.get("/v1/audit?limit=10000", boss).text,
            live.get("/v1/audit/export", boss, headers={"accept": "application/x-ndjson"}).text,
            *(live.get(f"/v1/tables/{table}/rows", boss).text for table in ("users", "sessions", "api_keys")),
        ]
        key = _signing_key(config)
    logged = [f"{record.getMessage()} {record.exc_text or ''} {record.args}" for record in caplog.records]
    # httpx is the client: what it logs is its own, and only addresses.
    told = "\n".join([*answers, *(line for line in logged if "HTTP Request:" not in line)]).encode()
    written = _written([tmp_path]) | {"answers and logs": told}
    assert len(written) > 20
    found = [
        (name, secret)
        for name, content in written.items()
        for secret in secrets
        if any(variant in content for variant in _variants(secret))
    ]
    assert found == []
    assert [name for name, content in written.items() if key in content and "signing-keys" not in name] == []


def _signing_key(config: LakehouseConfig) -> bytes:
    (file,) = Path(str(config.state_path)).rglob("signing-keys/*.key")
    return file.read_bytes()


def test_the_search_finds_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "a").write_text(f"x{CANARY}y")
    (tmp_path / "b.gz").write_bytes(gzip.compress(CANARY.encode()))
    written = _written([tmp_path])
    found = {name for name, content in written.items() if CANARY.encode() in content}
    assert found == {str(tmp_path / "a"), f"{tmp_path / 'b.gz'} (unpacked)"}


def test_the_files_with_secrets_are_for_their_owner_alone(config: LakehouseConfig) -> None:
    with http_server(config) as live:
        user(live.lakehouse.accounts, "somebody")
        state = Path(str(config.state_path))
        open_to_others = [str(path) for path in [state, *state.rglob("*")] if path.stat().st_mode & 0o077]
        private = [path for path in open_to_others if not _is_below_a_private_directory(Path(path))]
    assert private == []


def _is_below_a_private_directory(path: Path) -> bool:
    return any(parent.stat().st_mode & 0o077 == 0 for parent in path.parents if parent.exists())
