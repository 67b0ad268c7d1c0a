"""API keys: only hashes are kept, one answer to all that does not count, and a use is noted once an hour."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from lakehouse_platform.errors import AuthenticationFailedError, InvalidArgumentError, LakehouseError
from lakehouse_platform.identity.api_keys import ApiKeyRecord, ApiKeys, NewApiKey, is_key_id
from lakehouse_platform.model.rights import Right, Scopes
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.store.tables import SYSTEM_TABLES
from lakehouse_platform_tests.support.identity_worker import NOW

DAY, HOUR = timedelta(days=1), timedelta(hours=1)
READ_RIDES = Scopes.parse("read:rides")


@pytest.fixture
def key_store(store: DeltaStore) -> DeltaStore:
    store.ensure(SYSTEM_TABLES["api_keys"])
    return store


@pytest.fixture
def keys(key_store: DeltaStore) -> ApiKeys:
    return ApiKeys(key_store)


def made(keys: ApiKeys, user_id: str = "u", life: timedelta | None = DAY) -> NewApiKey:
    return keys.create(user_id, "nightly import", READ_RIDES, NOW, life)


def version(store: DeltaStore) -> int:
    return store.table("api_keys").version()


# ── Making ──────────────────────────────────────────────────────────────────────────────────────────


def test_a_key_is_one_commit_and_counts_in_every_process(key_store: DeltaStore, keys: ApiKeys) -> None:
    before = version(key_store)
    new = made(keys)
    assert version(key_store) == before + 1
    for reader in (keys, ApiKeys(key_store)):
        assert reader.check(new.key, NOW) == new.record
        assert reader.list("u") == [new.record]
    assert new.record == ApiKeyRecord(
        key_id=new.key_id, user_id="u", label="nightly import", scopes=READ_RIDES, created_at=NOW,
        key_hash=hashlib.sha256(new.key.encode()).hexdigest(), expires_at=NOW + DAY,
    )  # fmt: skip


def test_a_key_says_its_id_and_holds_256_random_bits(keys: ApiKeys) -> None:
    new = [made(keys) for _ in range(3)]
    assert all(re.fullmatch(f"lhk_{one.key_id}_[0-9a-f]{{64}}", one.key) for one in new)
    assert len({one.key_id for one in new}) == len({one.key.rpartition("_")[2] for one in new}) == 3
    assert all(is_key_id(one.key_id) and not is_key_id(one.key) for one in new)


def test_the_secret_is_nowhere_but_in_the_answer(key_store: DeltaStore, keys: ApiKeys) -> None:
    new = made(keys)
    secret = new.key.rpartition("_")[2].encode()
    files = [path for path in Path(key_store.base.uri).rglob("*") if path.is_file()]
    assert files
    assert [path for path in files if secret in path.read_bytes()] == []
    assert str(new) == new.key
    assert secret.decode() not in repr(new)
    assert new.record.key_hash not in repr(new)


@pytest.mark.parametrize("label", ["", "  ", "x" * 101, "a\nb", "a\0b", "\u202eabc"])
def test_a_label_is_a_short_printable_text(key_store: DeltaStore, keys: ApiKeys, label: str) -> None:
    before = version(key_store)
    with pytest.raises(InvalidArgumentError, match="label"):
        keys.create("u", label, READ_RIDES, NOW, DAY)
    assert version(key_store) == before


@pytest.mark.parametrize("life", [timedelta(0), timedelta(seconds=-1), timedelta(days=3651), timedelta.max])
def test_a_life_is_within_its_bounds(key_store: DeltaStore, keys: ApiKeys, life: timedelta) -> None:
    before = version(key_store)
    with pytest.raises(InvalidArgumentError, match="3650 days"):
        made(keys, life=life)
    assert version(key_store) == before


@pytest.mark.parametrize("table", [*sorted(SYSTEM_TABLES), "USERS"])
def test_no_scope_names_the_platforms_own_tables(keys: ApiKeys, table: str) -> None:
    with pytest.raises(InvalidArgumentError, match="platform's own"):
        keys.create("u", "import", Scopes(((table, Right.READ),)), NOW, DAY)
    assert keys.list("u") == []


def test_a_key_without_any_scope_is_not_made(keys: ApiKeys) -> None:
    with pytest.raises(InvalidArgumentError, match="scopes"):
        keys.create("u", "import", Scopes(), NOW, DAY)


# ── Checking ────────────────────────────────────────────────────────────────────────────────────────


def forged(new: NewApiKey, other: NewApiKey) -> dict[str, str]:
    secret, others = (one.key.rpartition("_")[2] for one in (new, other))
    flipped = secret[:-1] + ("0" if secret[-1] != "0" else "1")
    return {
        "an unknown id": f"lhk_{'0' * 16}_{secret}",
        "another key's secret": f"lhk_{new.key_id}_{others}",
        "another key's id": f"lhk_{other.key_id}_{secret}",
        "one digit changed": f"lhk_{new.key_id}_{flipped}",
        "its hash in place of the secret": f"lhk_{new.key_id}_{new.record.key_hash}",
        "no secret": f"lhk_{new.key_id}_",
        "the id alone": new.key_id,
        "a secret too short": new.key[:-1],
        "a secret too long": new.key + "0",
        "capitals": new.key.upper(),
        "a line behind": new.key + "\n",
        "a space before": " " + new.key,
        "other digits": new.key[:-1] + "\u0663",
        "nothing": "",
        "a lone surrogate": new.key[:-1] + "\ud800",
    }


def test_all_that_does_not_count_gets_one_answer(keys: ApiKeys) -> None:
    new, other, revoked = made(keys), made(keys), made(keys)
    keys.revoke("u", revoked.key_id, NOW)
    wrong = [(text, NOW) for text in forged(new, other).values()] + [(revoked.key, NOW), (new.key, NOW + DAY)]
    answers: set[tuple[str, str]] = set()
    for text, now in wrong:
        with pytest.raises(AuthenticationFailedError) as caught:
            keys.check(text, now)
        answers.add((str(caught.value), str(caught.value.to_dict())))
    assert len(answers) == 1
    assert keys.check(new.key, NOW) == new.record


def test_a_key_counts_until_its_last_moment(keys: ApiKeys) -> None:
    new, endless = made(keys), made(keys, life=None)
    assert keys.check(new.key, NOW + DAY - timedelta(microseconds=1)).key_id == new.key_id
    with pytest.raises(AuthenticationFailedError):
        keys.check(new.key, NOW + DAY)
    assert keys.check(endless.key, NOW + 10_000 * DAY).expires_at is None


def test_a_row_that_holds_no_key_lets_nobody_in_and_holds_up_nobody(
    key_store: DeltaStore, keys: ApiKeys
) -> None:
    new, other = made(keys), made(keys)
    for scopes in ("", "everything", "read:rides own:towns"):
        key_store.table("api_keys").merge([{"key_id": new.key_id, "scopes": scopes, "_op": "UPDATE"}])
        with pytest.raises(AuthenticationFailedError):
            keys.check(new.key, NOW)
        assert keys.check(other.key, NOW) == other.record


def test_a_check_reads_no_file_and_makes_no_commit(key_store: DeltaStore, keys: ApiKeys) -> None:
    new = made(keys)
    before = version(key_store)
    for _ in range(100):
        keys.check(new.key, NOW)
    assert version(key_store) == before


# ── Revoking ────────────────────────────────────────────────────────────────────────────────────────


def test_a_revoked_key_is_void_at_once_in_every_process_and_stays_listed(
    key_store: DeltaStore, keys: ApiKeys
) -> None:
    new, other, elsewhere = made(keys), made(keys), ApiKeys(key_store)
    assert elsewhere.check(new.key, NOW)
    assert keys.revoke("u", new.key_id, NOW + HOUR)
    for reader in (keys, elsewhere):
        with pytest.raises(AuthenticationFailedError):
            reader.check(new.key, NOW)
        assert reader.check(other.key, NOW)
    assert replace(new.record, revoked_at=NOW + HOUR) in keys.list("u")


def test_a_key_is_revoked_once_and_only_as_its_accounts(key_store: DeltaStore, keys: ApiKeys) -> None:
    new = made(keys)
    before = version(key_store)
    assert not keys.revoke("another", new.key_id, NOW)
    assert not keys.revoke("u", "0" * 16, NOW)
    assert version(key_store) == before
    assert keys.revoke("u", new.key_id, NOW)
    assert not keys.revoke("u", new.key_id, NOW + HOUR)
    assert keys.list("u")[0].revoked_at == NOW


def test_nothing_of_a_key_is_left_in_the_log_of_the_table(key_store: DeltaStore, keys: ApiKeys) -> None:
    new = made(keys)
    keys.note_use(new.record, NOW)
    keys.revoke("u", new.key_id, NOW)
    log = Path(key_store.table("api_keys").location.uri) / "_delta_log"
    assert [path for path in log.glob("*.json") if new.key_id in path.read_text()] == []


# ── The last use ────────────────────────────────────────────────────────────────────────────────────


def used(keys: ApiKeys, new: NewApiKey, after: timedelta) -> None:
    now = NOW + after
    keys.note_use(keys.check(new.key, now), now)


def test_a_use_is_noted_at_most_once_an_hour(key_store: DeltaStore, keys: ApiKeys) -> None:
    new = made(keys)
    assert new.record.last_used_at is None
    before = version(key_store)
    for minutes in (0, 1, 30, 59):
        used(keys, new, timedelta(minutes=minutes))
        assert (keys.list("u")[0].last_used_at, version(key_store)) == (NOW, before + 1)
    used(keys, new, HOUR)
    assert (keys.list("u")[0].last_used_at, version(key_store)) == (NOW + HOUR, before + 2)


def test_another_process_sees_that_a_use_is_noted(key_store: DeltaStore, keys: ApiKeys) -> None:
    new = made(keys)
    used(keys, new, timedelta(0))
    before = version(key_store)
    used(ApiKeys(key_store), new, timedelta(minutes=5))
    assert version(key_store) == before


def test_many_threads_note_a_use_in_one_commit(key_store: DeltaStore, keys: ApiKeys) -> None:
    new = made(keys)
    before = version(key_store)
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda _: keys.note_use(new.record, NOW), range(64)))
    assert version(key_store) == before + 1


def test_a_use_that_could_not_be_noted_is_noted_the_next_time(key_store: DeltaStore, keys: ApiKeys) -> None:
    new = made(keys)
    log = Path(key_store.table("api_keys").location.uri) / "_delta_log"
    hidden = log.rename(log.with_name("away"))
    with pytest.raises(LakehouseError):
        keys.note_use(new.record, NOW)
    hidden.rename(log)
    keys.note_use(new.record, NOW)
    assert keys.list("u")[0].last_used_at == NOW


def test_a_use_brings_no_erased_key_back(key_store: DeltaStore, keys: ApiKeys) -> None:
    new = made(keys)
    key_store.table("api_keys").merge([{"key_id": new.key_id, "_op": "DELETE"}])
    keys.note_use(new.record, NOW)
    assert keys.list("u") == []
    with pytest.raises(AuthenticationFailedError):
        keys.check(new.key, NOW)


@pytest.mark.parametrize(
    "change",
    [lambda keys, new: keys.revoke("u", new.key_id, NOW), lambda keys, new: keys.note_use(new.record, NOW)],
)
def test_a_change_keeps_everything_else(
    keys: ApiKeys, change: Callable[[ApiKeys, NewApiKey], object]
) -> None:
    new, other = made(keys), made(keys)
    change(keys, new)
    found = {one.key_id: one for one in keys.list("u")}
    assert replace(found[new.key_id], revoked_at=None, last_used_at=None) == new.record
    assert found[other.key_id] == other.record
