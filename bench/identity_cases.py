"""Who acts, and what of it is written down: checks of tokens, sign-ins, audit entries, and rows over HTTP."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import jwt
import pyarrow as pa
from argon2 import PasswordHasher
from deltalake import DeltaTable, write_deltalake

from bench.data import rows
from bench.pairs import Pair, Side, Target
from bench.workshop import Case, Sizes, Workshop, pair, raw_fsync
from lakehouse_platform.audit.entries import AuditEntry, take
from lakehouse_platform.audit.log import AuditLog
from lakehouse_platform.client.sync import LakehouseClient
from lakehouse_platform.identity.tokens import ALGORITHM, Claims, TokenSigner
from lakehouse_platform.model.actions import ActionType
from lakehouse_platform.model.actors import Role, SubscriptionTier
from lakehouse_platform.services.accounts import AuthActor
from lakehouse_platform.services.lakehouse import Lakehouse
from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.store.tables import SYSTEM_TABLES
from lakehouse_platform_tests.support.serve_process import serving_process

# Issue 4: 20 000 checks of tokens a second, and as many acknowledged entries; rows over HTTP at half the rate of
# reading them in the process; one check of the password and one small commit for a sign-in.
_PER_MS = 20
_HTTP = Target(ratio=2, overhead_ms=0)

_NAME, _PASSWORD = "bench-person", "correct horse battery staple 42!"
_KEY = bytes(range(32))
_ISSUER, _AUDIENCE = "bench", "lakehouse"
_SUBMITTERS, _REQUESTS = 4, 64
# What one sync takes along on the raw side: as many as our threads hand in together.
_TAKEN_ALONG = 100


def identity_cases(sizes: Sizes) -> tuple[Case, ...]:
    """Return the cases of identity, audit log and HTTP."""
    checks, entries, large = (
        f"{number:,}".replace(",", " ") for number in (sizes.checks, sizes.entries, sizes.rows)
    )
    return (
        Case(f"{checks} token checks / bare decode", _token_checks, 31, _rate(sizes.checks)),
        Case(f"{checks} new tokens / bare decode", _new_tokens, 31, None),
        Case("sign-in / Argon2 and one commit, fsync on both sides", _sign_in, 21),
        Case(f"{entries} audit entries, promised / appends", _promised, 21, _rate(sizes.entries)),
        Case(f"{entries} audit entries in batches / appends", _in_batches, 21, _rate(sizes.entries)),
        Case(f"{entries} audit entries one by one / appends", _one_by_one, 11, None),
        Case(f"{entries} audit entries to the table / write_deltalake", _to_the_table, 11, None),
        Case(f"HTTP scan of {large} rows / in process", _http_scan, 21, _HTTP),
    )


def _rate(count: int) -> Target:
    return Target(ratio=1, overhead_ms=0, limit_ms=count / _PER_MS)


# ── Tokens and sign-ins ───────────────────────────────────────────────────────────────────────────


def _token_checks(workshop: Workshop) -> Pair:
    """Check one sign-in's token as is done with each request: signature, time, live session, account as it is now."""
    accounts = _accounts(workshop)
    token = accounts.login(_NAME, _PASSWORD).access_token
    # The platform's key is none of ours: the raw side decodes the same claims signed with another one.
    claims = jwt.decode(token, options={"verify_signature": False})
    raw = jwt.encode(claims, _KEY, ALGORITHM)
    return pair(
        lambda: [_decoded(raw, claims["iss"], claims["aud"]) for _ in range(workshop.sizes.checks)],
        lambda: [accounts.verify(token) for _ in range(workshop.sizes.checks)],
    )


def _new_tokens(workshop: Workshop) -> Pair:
    """Only informs: what a token costs that was not seen before, without the session behind it."""
    now = datetime.now(UTC)
    signer = _signer()
    tokens = [signer.issue(_claims(number, now)) for number in range(workshop.sizes.checks)]
    fresh = [signer]

    def forget() -> None:
        fresh[0] = _signer()

    return Pair(
        Side(lambda: [_decoded(token, _ISSUER, _AUDIENCE) for token in tokens]),
        Side(lambda: [fresh[0].verify(token, now) for token in tokens], before=forget),
    )


def _sign_in(workshop: Workshop) -> Pair:
    accounts = _accounts(workshop)
    accounts.login(_NAME, _PASSWORD)  # the first of an hour also writes when it was
    hasher = PasswordHasher()
    stored = hasher.hash(_PASSWORD)
    raw, row = str(workshop.place / "raw"), _session_row()

    def check_and_commit() -> None:
        hasher.verify(stored, _PASSWORD)
        write_deltalake(raw, row, mode="append")
        raw_fsync(raw, DeltaTable(raw).version())

    return pair(check_and_commit, lambda: accounts.login(_NAME, _PASSWORD))


def _accounts(workshop: Workshop) -> AuthActor:
    config = LakehouseConfig(base_path=str(workshop.place / "lake"), state_path=str(workshop.place / "state"))
    accounts = workshop.cleanup.enter_context(AuthActor(DeltaStore(config)))
    accounts.bootstrap(_NAME, "bench@example.com", _PASSWORD)
    return accounts


def _signer() -> TokenSigner:
    return TokenSigner({"k": _KEY}, "k", _ISSUER, _AUDIENCE)


def _decoded(token: str, issuer: str, audience: str) -> dict[str, Any]:
    return jwt.decode(token, _KEY, algorithms=[ALGORITHM], issuer=issuer, audience=audience)


def _claims(number: int, now: datetime) -> Claims:
    return Claims(
        sub=f"user {number}",
        sid=f"session {number}",
        jti=f"token {number}",
        role=Role.USER,
        tier=SubscriptionTier.PRO,
        issued_at=now,
        expires_at=now + timedelta(hours=1),
    )


def _session_row() -> pa.Table:
    schema = SYSTEM_TABLES["sessions"].schema
    return pa.Table.from_pylist([dict.fromkeys(schema.names, "x" * 36)], schema=schema)


# ── The audit log ─────────────────────────────────────────────────────────────────────────────────


def _promised(workshop: Workshop) -> Pair:
    """Four threads hand their entries in and wait for the promises."""
    log, count = _log(workshop), workshop.sizes.entries

    def submit(number: int) -> list[str]:
        promises = [log.submit(_entry()) for _ in range(number)]
        return [promise.result() for promise in promises]

    return _audited(workshop, log, lambda: _by_threads(_SUBMITTERS, count, submit))


def _in_batches(workshop: Workshop) -> Pair:
    """Four threads record a hundred at a time."""
    log, count = _log(workshop), workshop.sizes.entries

    def record(number: int) -> list[str]:
        batches = [_entries(min(_TAKEN_ALONG, number - first)) for first in range(0, number, _TAKEN_ALONG)]
        return [audit_id for batch in batches for audit_id in log.record_all(batch)]

    return _audited(workshop, log, lambda: _by_threads(_SUBMITTERS, count, record))


def _one_by_one(workshop: Workshop) -> Pair:
    """Only informs: a thread for each request, as the gate records, where threads that take turns cost most."""
    log, count = _log(workshop), workshop.sizes.entries

    def record(number: int) -> list[str]:
        return [log.record(_entry()) for _ in range(number)]

    return _audited(workshop, log, lambda: _by_threads(_REQUESTS, count, record))


def _to_the_table(workshop: Workshop) -> Pair:
    """Only informs: until the entries are chained and in the table, beside a commit of the same rows by itself."""
    log, count = _log(workshop), workshop.sizes.entries
    store = log.store

    def record() -> None:
        log.record_all(_entries(count))
        log.flush()

    record()
    written = store.scan("audit_log").to_arrow().slice(0, count)
    raw = workshop.place / "raw"
    return pair(lambda: write_deltalake(raw, written, mode="append"), record)


def _audited(workshop: Workshop, log: AuditLog, record: Callable[[], object]) -> Pair:
    """Pair recording with appends of the same bytes to a file, each with its sync."""
    sizes = workshop.sizes
    payload = take(_entry()).to_bytes() * min(_TAKEN_ALONG, sizes.entries)
    file = os.open(workshop.place / "raw", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    workshop.cleanup.callback(os.close, file)

    def append() -> None:
        for _ in range(0, sizes.entries, _TAKEN_ALONG):
            os.write(file, payload)
            os.fdatasync(file)

    # What the run before left for the table must not be moved in this one's time.
    return Pair(Side(append, before=log.flush), Side(record, before=log.flush))


def _by_threads(threads: int, count: int, work: Callable[[int], object]) -> None:
    with ThreadPoolExecutor(threads) as pool:
        for done in [pool.submit(work, max(1, count // threads)) for _ in range(threads)]:
            done.result()


def _log(workshop: Workshop) -> AuditLog:
    log = AuditLog(workshop.store(durability="fsync"), Path(workshop.place) / "audit")
    workshop.cleanup.callback(log.close)
    return log


def _entries(count: int) -> list[AuditEntry]:
    return [_entry() for _ in range(count)]


def _entry() -> AuditEntry:
    return AuditEntry(
        action=ActionType.DATA_READ,
        user_id="9f2c1f0e-5a51-4c7e-9d0b-0d9f3f6b7a10",
        resource="orders",
        row_count=1_000,
        duration_ms=1.5,
        ip_address="192.0.2.17",
        request_id="2f6d6a3be3f44a0b9c1e6c1f2f4f8a77",
    )


# ── HTTP ──────────────────────────────────────────────────────────────────────────────────────────


def _http_scan(workshop: Workshop) -> Pair:
    """Read a whole table as Arrow, through the gate on both sides: in this process, and from a server in another."""
    config = LakehouseConfig(base_path=str(workshop.place / "lake"), state_path=str(workshop.place / "state"))
    write_deltalake(Path(config.base_path) / "large", rows(workshop.sizes.rows))
    lakehouse = workshop.cleanup.enter_context(Lakehouse.open(config))
    lakehouse.accounts.bootstrap(_NAME, "bench@example.com", _PASSWORD)
    client = _client(workshop.cleanup, config)
    return pair(lambda: lakehouse.tables.scan("large").to_arrow(), lambda: client.scan("large"))


def _client(cleanup: ExitStack, config: LakehouseConfig) -> LakehouseClient:
    server = cleanup.enter_context(serving_process(config))
    client = cleanup.enter_context(LakehouseClient(server.base_url))
    client.login(_NAME, _PASSWORD)
    return client
