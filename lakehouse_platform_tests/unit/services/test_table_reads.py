"""Reading through the gate: rows, the past and SQL, each of it only as far as the actor may see."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from lakehouse_platform.errors import (
    InvalidArgumentError,
    InvalidPredicateError,
    InvalidSqlError,
    LakehouseError,
    PermissionDeniedError,
    RateLimitedError,
    SchemaMismatchError,
    SqlNotAllowedError,
    TableNotFoundError,
    VersionNotFoundError,
)
from lakehouse_platform.identity.grants import Grants
from lakehouse_platform.model.actors import Role, SubscriptionTier
from lakehouse_platform.model.rights import EVERY_TABLE, Right
from lakehouse_platform.services.accounts import AuthActor
from lakehouse_platform.services.tables import TableAccess
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform_tests.support.people import entries, signed_in
from lakehouse_platform_tests.unit.services.conftest import RIDES, person

BASEL, BERN = {"id": 1, "town": "Basel"}, {"id": 2, "town": "Bern"}
TIMEOUTS = pytest.mark.parametrize("timeout", [None, 60.0], ids=["in process", "in a worker"])


@pytest.fixture
def reader(store: DeltaStore, tables: TableAccess) -> TableAccess:
    """The tables for one who may read `rides` only."""
    Grants(store).grant("reader", "rides", Right.READ, by="owner")
    return tables.acting_as(person("reader"))


@pytest.fixture
def root(auth: AuthActor, tables: TableAccess) -> TableAccess:
    """The tables for a superadmin, with accounts and sign-ins in the platform's own."""
    return tables.acting_as(signed_in(auth, "root", Role.SUPERADMIN))


def by_id(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: row["id"])


def test_rows_are_read_by_columns_predicate_and_limit(reader: TableAccess) -> None:
    rows = reader.scan("rides", ["town"], "id = 2", 5)
    assert (rows.to_pylist(), rows.version) == ([{"town": "Bern"}], 2)
    assert reader.query("rides", "town = 'Basel'").to_pylist() == [BASEL]


def test_the_past_is_read_by_version_and_by_time(reader: TableAccess) -> None:
    then = next(one.timestamp for one in reader.history("rides") if one.version == 2)
    for rows in (reader.scan("rides", version=1), reader.read_version("rides", 1)):
        assert (rows.to_pylist(), rows.version) == ([BASEL], 1)
    for rows in (reader.scan("rides", timestamp=then), reader.read_timestamp("rides", then)):
        assert (by_id(rows.to_pylist()), rows.version) == ([BASEL, BERN], 2)
    with pytest.raises(InvalidArgumentError, match="not both"):
        reader.scan("rides", version=1, timestamp=then)
    with pytest.raises(VersionNotFoundError):
        reader.read_version("rides", 9)


def test_changes_are_read_between_versions_and_from_the_feed(reader: TableAccess) -> None:
    assert reader.diff("rides", 1, 2).to_pylist() == [{"_change_type": "insert", **BERN}]
    assert reader.change_feed("rides", 2).to_arrow().select(RIDES.names).to_pylist() == [BERN]


def test_a_reading_keeps_to_its_version(store: DeltaStore, reader: TableAccess) -> None:
    rows = reader.scan("rides")
    assert rows.to_arrow().num_rows == 2
    store.append("rides", [{"id": 3, "town": "Chur"}])
    assert rows.to_arrow().num_rows == 2


def test_a_reading_needs_the_right_each_time(store: DeltaStore, reader: TableAccess) -> None:
    scanned, asked = reader.scan("rides"), reader.sql("SELECT * FROM rides")
    assert scanned.to_arrow().num_rows == asked.to_arrow().num_rows == 2
    Grants(store).revoke("reader", "rides")
    for rows in (scanned, asked):
        with pytest.raises(PermissionDeniedError):
            rows.to_arrow()


def test_where_a_table_stands_is_told_to_those_who_look_after_it(
    tables: TableAccess, reader: TableAccess, store: DeltaStore
) -> None:
    uri = store.table("rides").location.uri
    assert tables.describe("rides").uri == uri
    assert tables.acting_as(person("admin", Role.ADMIN)).describe("rides").uri == uri
    assert reader.describe("rides").uri == "rides"


def test_a_table_that_is_missing_is_told_with_the_names_that_the_actor_may_know(
    store: DeltaStore, reader: TableAccess
) -> None:
    Grants(store).grant("reader", "rider", Right.READ, by="owner")
    for ask in (lambda: reader.scan("rider"), lambda: reader.sql("SELECT * FROM rider")):
        with pytest.raises(TableNotFoundError) as caught:
            ask()
        assert "rides" in caught.value.message
        assert not any(word in caught.value.message for word in ("towns", "users", store.base.uri))


# ── SQL ───────────────────────────────────────────────────────────────────────────────────────────


@TIMEOUTS
def test_a_query_over_one_table_is_one_entry_with_its_rows(
    auth: AuthActor, store: DeltaStore, reader: TableAccess, timeout: float | None
) -> None:
    assert reader.sql("SELECT town FROM rides WHERE id = 1", timeout=timeout).to_pylist() == [
        {"town": "Basel"}
    ]
    (entry,) = entries(auth, store)
    assert (entry["action"], entry["outcome"], entry["resource"], entry["row_count"]) == (
        "sql_query", "done", "rides", 1,
    )  # fmt: skip
    assert entry["details"] is None  # its text may hold anything


def test_a_query_over_several_tables_has_an_entry_for_each_and_is_billed_once(
    auth: AuthActor, store: DeltaStore, tables: TableAccess
) -> None:
    assert tables.sql("SELECT * FROM rides, towns").to_arrow().num_rows == 2
    found = [(entry["outcome"], entry["resource"], entry["details"]) for entry in entries(auth, store)]
    told = "tables rides, towns"
    assert sorted(found[:2]) == [("started", "rides", told), ("started", "towns", told)]
    assert found[2:] == [("done", None, told)]
    assert [row["row_count"] for row in store.scan("user_actions").to_pylist()] == [2]


@TIMEOUTS
@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM towns",
        'SELECT * FROM "towns"',
        "SELECT * FROM public.towns",
        "SELECT * FROM datafusion.public.towns",
        "SELECT * FROM rides JOIN towns USING (town)",
        "SELECT * FROM rides, towns",
        "SELECT (SELECT max(town) FROM towns) FROM rides",
        "SELECT * FROM rides WHERE town IN (SELECT town FROM towns)",
        "SELECT * FROM rides WHERE EXISTS (SELECT 1 FROM towns t WHERE t.town = rides.town)",
        "WITH x AS (SELECT * FROM towns) SELECT * FROM x",
        "WITH rides AS (SELECT * FROM towns) SELECT * FROM rides",
        "WITH RECURSIVE x AS (SELECT town FROM towns UNION ALL SELECT town FROM x) SELECT * FROM x LIMIT 1",
        "SELECT town FROM rides UNION ALL SELECT town FROM towns",
        "SELECT * FROM rides CROSS JOIN LATERAL (SELECT * FROM towns) x",
        "EXPLAIN SELECT * FROM towns",
        "DESCRIBE towns",
        "SELECT * FROM users",
        "SELECT * FROM no_such_table",
        "SELECT * FROM Rides",
        'SELECT * FROM "../lake/rides"',
        "SELECT * FROM 'towns'",
    ],
)
def test_no_query_reaches_a_table_that_its_actor_may_not_read(
    reader: TableAccess, text: str, timeout: float | None
) -> None:
    with pytest.raises(PermissionDeniedError) as caught:
        reader.sql(text, timeout=timeout)
    assert "You may not run SQL over a table on" in caught.value.message


@TIMEOUTS
def test_a_denied_query_is_written_down_with_the_table(
    auth: AuthActor, store: DeltaStore, reader: TableAccess, timeout: float | None
) -> None:
    for text in ("SELECT * FROM rides, towns", 'SELECT * FROM "ada@example.com"'):
        with pytest.raises(PermissionDeniedError):
            reader.sql(text, timeout=timeout)
    assert [(e["action"], e["outcome"], e["resource"], e["details"]) for e in entries(auth, store)] == [
        ("permission_denied", "denied", "towns", "run_sql"),
        # What is no name of a table may be anything that somebody typed.
        ("permission_denied", "denied", None, "run_sql"),
    ]


@TIMEOUTS
def test_names_that_mean_no_table_need_no_right(
    auth: AuthActor, store: DeltaStore, reader: TableAccess, timeout: float | None
) -> None:
    text = "WITH towns AS (SELECT town FROM rides) SELECT value FROM towns, generate_series(1, 2)"
    assert reader.sql(text, timeout=timeout).to_arrow().num_rows == 4
    assert reader.sql("SELECT 1 AS one", timeout=timeout).to_pylist() == [{"one": 1}]
    assert [(entry["outcome"], entry["resource"]) for entry in entries(auth, store)] == [
        ("done", "rides"),
        ("done", None),
    ]


@TIMEOUTS
@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("COPY rides TO '/tmp/x'", SqlNotAllowedError),
        ("CREATE EXTERNAL TABLE x STORED AS CSV LOCATION '/etc/passwd'", SqlNotAllowedError),
        ("SELECT * FROM rides; SELECT * FROM towns", SqlNotAllowedError),
        ("SET datafusion.catalog.information_schema = true", SqlNotAllowedError),
        ("SHOW ALL", SqlNotAllowedError),
        ("SHOW TABLES FROM public", PermissionDeniedError),
        ("INSERT INTO rides SELECT * FROM rides", SqlNotAllowedError),
        ("SELECT * FROM information_schema.tables", InvalidSqlError),
        ("SELECT * FROM other.public.rides", InvalidSqlError),
        ("SELECT * FROM read_csv('/etc/passwd')", PermissionDeniedError),
        ("SELECT * FROM '/etc/passwd'", PermissionDeniedError),
    ],
)
def test_no_query_leaves_the_lakehouse(
    reader: TableAccess, text: str, error: type[LakehouseError], timeout: float | None
) -> None:
    with pytest.raises(error):
        reader.sql(text, timeout=timeout)


def test_what_fails_while_a_query_is_read_is_written_down(
    auth: AuthActor, store: DeltaStore, reader: TableAccess
) -> None:
    with pytest.raises(InvalidSqlError):
        reader.sql("SELECT 1 / (id - 1) FROM rides")
    (entry,) = entries(auth, store)
    assert (entry["outcome"], entry["resource"], entry["details"]) == ("failed", "rides", "invalid_sql")


# ── The platform's own tables ─────────────────────────────────────────────────────────────────────


@TIMEOUTS
@pytest.mark.parametrize(
    "text",
    [
        "SELECT password_hash FROM users",
        "SELECT u.password_hash FROM users u",
        'SELECT "password_hash" FROM "users"',
        "SELECT username FROM users WHERE password_hash LIKE '$argon2%'",
        "SELECT username FROM users ORDER BY password_hash",
        "SELECT max(password_hash) FROM users",
        "SELECT username FROM users GROUP BY username, password_hash",
        "SELECT * FROM sessions s JOIN users u ON s.token_hash = u.username",
        "WITH x AS (SELECT * FROM users) SELECT password_hash FROM x",
        "SELECT x.password_hash FROM (SELECT * FROM users) x",
        "SELECT x.p FROM users AS x(a, b, c, p, d, e, f, g, h, i, j, k, l, m, n, o, p2, q)",
        "SELECT salt FROM audit_log",
        "SELECT key_hash FROM api_keys",
    ],
)
def test_secret_columns_do_not_exist_in_sql(root: TableAccess, text: str, timeout: float | None) -> None:
    with pytest.raises(InvalidSqlError):
        root.sql(text, timeout=timeout)


@TIMEOUTS
@pytest.mark.parametrize(
    "text",
    [
        "EXPLAIN SELECT * FROM users",
        "EXPLAIN VERBOSE SELECT 1 FROM users",
        "EXPLAIN ANALYZE SELECT * FROM users",
    ],
)
def test_how_a_query_runs_is_not_told_where_columns_are_hidden(
    root: TableAccess, text: str, timeout: float | None
) -> None:
    with pytest.raises(SqlNotAllowedError, match=r"hidden|ANALYZE"):
        root.sql(text, timeout=timeout)


@TIMEOUTS
@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM users",
        "SELECT * FROM users WHERE username = 'root' ORDER BY created_at LIMIT 5",
        "SELECT * FROM users WHERE status IS NULL OR username <> NULL OR true",
        "SELECT users.* FROM users, sessions",
        "SELECT * FROM (VALUES (1)) v(x), users",
        "DESCRIBE users",
    ],
)
def test_no_form_of_everything_holds_secret_columns(
    root: TableAccess, text: str, timeout: float | None
) -> None:
    rows = root.sql(text, timeout=timeout).to_arrow()
    assert rows.num_rows
    text_of_all = str(rows.to_pylist())
    assert not any(word in text_of_all for word in ("password_hash", "argon2", "email_key", "username_key"))


def test_the_table_below_a_view_cannot_be_named(root: TableAccess, store: DeltaStore) -> None:
    """Of the name that it once had, a table can be made; the secrets must not be read through that one."""
    admin = root.acting_as(person("admin", Role.ADMIN))
    admin.create("__base_of_users", store.table("users").arrow_schema())
    found = admin.sql('SELECT b.password_hash FROM "__base_of_users" b, users').to_arrow()
    assert found.num_rows == 0
    with pytest.raises(LakehouseError):
        admin.sql('SELECT * FROM "base of users", users')


Ask = Callable[[TableAccess], Any]
ORACLES: dict[str, Ask] = {
    "columns": lambda t: t.scan("users", ["username", "password_hash"]),
    "predicate": lambda t: t.scan("users", None, "password_hash LIKE '$argon2id$%'"),
    "quoted": lambda t: t.query("users", '"password_hash" IS NOT NULL'),
    "case": lambda t: t.query("users", "CASE WHEN email_key > 'a' THEN TRUE ELSE FALSE END"),
    "skipping": lambda t: t.skipping("users", "password_hash > 'a'"),
    "token": lambda t: t.query("sessions", "token_hash = 'x'"),
    "old version": lambda t: t.scan("users", ["password_hash"], version=1),
}


@pytest.mark.parametrize("name", ORACLES)
def test_secret_columns_can_neither_be_read_nor_asked_about(root: TableAccess, name: str) -> None:
    with pytest.raises((SchemaMismatchError, InvalidPredicateError)):
        ORACLES[name](root)


def test_secret_columns_are_in_no_view_of_the_past(root: TableAccess, store: DeltaStore) -> None:
    newest = store.table("users").version()
    for rows in (root.scan("users"), root.read_version("users", 1), root.diff("users", 0, newest)):
        assert rows.schema.names == rows.to_arrow().column_names
        assert not {"password_hash", "email_key", "username_key"} & set(rows.schema.names)
        assert rows.to_arrow().num_rows
    assert "password_hash" not in str(root.describe("users").columns)
    assert {str(one.parameters) for one in root.history("users")} == {"{}"}


def test_the_owner_of_the_files_sees_everything(root: TableAccess, tables: TableAccess) -> None:
    assert tables.scan("users", ["password_hash"]).to_arrow().num_rows == 1
    assert tables.sql("SELECT password_hash FROM users").to_arrow().num_rows == 1


PREDICATES = [
    "id IN (SELECT id FROM towns)",
    "EXISTS (SELECT 1 FROM users)",
    "TRUE; DROP TABLE rides",
    "TRUE UNION SELECT * FROM users",
    "read_csv('/etc/passwd') IS NOT NULL",
    "users.password_hash IS NOT NULL",
]


@pytest.mark.parametrize("text", PREDICATES)
def test_a_predicate_reaches_nothing_but_the_rows_of_its_table(reader: TableAccess, text: str) -> None:
    for ask in (reader.query, reader.skipping):
        with pytest.raises(InvalidPredicateError):
            ask("rides", text)


def test_requests_are_counted_towards_the_limit(
    auth: AuthActor, store: DeltaStore, tables: TableAccess
) -> None:
    free = signed_in(auth, "free", tier=SubscriptionTier.FREE)
    Grants(store).grant(free.id, EVERY_TABLE, Right.READ, by="owner")
    mine = tables.acting_as(free)
    rows = mine.scan("rides")
    for _ in range(10):
        rows.to_arrow()
    with pytest.raises(RateLimitedError):
        rows.to_arrow()
    with pytest.raises(RateLimitedError):
        mine.sql("SELECT 1")
