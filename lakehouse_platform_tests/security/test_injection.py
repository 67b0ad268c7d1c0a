"""Text that means something to SQL, shells, paths, templates, logs and terminals, in every place that takes text."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from urllib.parse import quote

import httpx
import pytest

from lakehouse_platform.errors import InvalidCredentialsError, InvalidNameError, UserExistsError
from lakehouse_platform.model.actors import Role
from lakehouse_platform_tests.security.conftest import HIDDEN, Fort
from lakehouse_platform_tests.support.api_walk import Operation, Place
from lakehouse_platform_tests.support.http_server import Person
from lakehouse_platform_tests.support.people import PASSWORD

# Each stands for several: what one reader of it overlooks may mean something to the next.
PAYLOADS = {
    "quotes": "x' OR '1'='1' UNION ALL SELECT password_hash FROM users; DROP TABLE users; --",
    "double quotes": '"; DELETE FROM users; /*',
    "NUL": "a\0b",
    "lone surrogate": "a\ud800b",
    "new lines and terminals": "a\r\nX-Injected: yes\r\n\r\n\x1b[2J\x1b]0;owned\x07",
    "path": "..%2f../../../etc/passwd",
    "other alphabets": "\u202e\uff55\uff53\uff45\uff52\uff53",
    "template": "{{7*7}}${7*7}$(id)%(asctime)s{0}`id`",
    "very long": "A" * 3000,
    "number": "1e400",
}
NO_NAMES = {
    kind: text for kind, text in PAYLOADS.items() if kind != "number"
}  # 1e400 is as good a name as any
_MANY = "a" * 1_000
_NESTED = f"replace(replace(replace(replace(name, 'a', '{_MANY}'), 'a', '{_MANY}'), 'a', '{_MANY}'), 'a', '{_MANY}')"
# The same as a condition: what it could reach beyond its table.
CONDITIONS = [
    "id IN (SELECT 1 FROM users)",
    "EXISTS (SELECT * FROM untouched)",
    "id = 1; DELETE FROM untouched",
    "(SELECT password_hash FROM users LIMIT 1) IS NOT NULL",
    "untouched.name = 'x'",
    "users.password_hash LIKE '$%'",
    "name = current_user",
    "1 = (SELECT count(*) FROM information_schema.tables)",
    "read_parquet('/etc/passwd') IS NULL",
    "getenv('LAKEHOUSE_JWT_SECRET') IS NOT NULL",
    "(" * 20_000 + "1" + ")" * 20_000,
    " OR ".join(["id = 1"] * 9_000),
    "-" * 30_000 + "1 = id",
    "NOT " * 15_000 + "TRUE",
    "length(repeat(name, 2000000000)) > 0",
    f"length({_NESTED}) > 0",
    "name LIKE '" + "%a" * 20_000 + "'",
]
QUERIES = [
    "SELECT password_hash FROM users",
    "SELECT * FROM users",
    "SELECT u.* FROM target t JOIN users u ON true",
    "SELECT (SELECT max(token_hash) FROM sessions)",
    "WITH x AS (SELECT * FROM untouched) SELECT * FROM x",
    "SELECT * FROM target UNION ALL SELECT * FROM untouched",
    "SELECT * FROM target WHERE name IN (SELECT name FROM untouched)",
    'SELECT * FROM "untouched"',
    "SELECT * FROM UNTOUCHED",
    "SELECT * FROM datafusion.public.untouched",
    "SELECT * FROM information_schema.tables",
    "SELECT * FROM information_schema.df_settings",
    "SHOW TABLES",
    "SHOW ALL",
    "EXPLAIN ANALYZE SELECT * FROM untouched",
    "DESCRIBE untouched",
    "COPY (SELECT 1) TO '/tmp/owned.csv'",
    "COPY target TO '/tmp/owned.parquet'",
    "CREATE EXTERNAL TABLE p STORED AS CSV LOCATION '/etc/passwd'",
    "SELECT * FROM '/etc/passwd'",
    "SELECT * FROM read_csv('/etc/passwd')",
    "INSERT INTO target VALUES (9, 'x')",
    "DELETE FROM untouched",
    "DROP TABLE untouched",
    "CREATE VIEW v AS SELECT * FROM untouched",
    "SET datafusion.execution.target_partitions = 1000000",
    "SELECT 1; DROP TABLE untouched",
    "SELECT 1 -- \n; SELECT * FROM untouched",
    "PREPARE p AS SELECT * FROM untouched",
    "SELECT " + "(" * 5_000 + "1" + ")" * 5_000,
    "SELECT " + "+".join(["1"] * 100_000),
    "SELECT arrow_cast(1, 'Nonsense')",
]
# They take all the time that they are given.
LONG_QUERIES = [
    "SELECT repeat('x', 2000000000)",
    "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r) SELECT count(*) FROM r",
]


def _quoted(text: str) -> str:
    return quote(text, safe="")


# Each would end the sign-in of the one who walks.
_ENDS_THE_WALK = {"/v1/auth/logout", "/v1/auth/logout-everywhere"}
# Each answer is read from the whole audit log, which takes ten times as long as others.
_READS_THE_LOG = ("GET /v1/audit", "GET /v1/billing")
_SHARE_OF_THEM = 3


def _places(fort: Fort, turn: int) -> Iterator[tuple[Operation, Place]]:
    """Every place that takes text; of those that ask the audit log each has its turn with every third payload."""
    # What may stand in a header is tried byte by byte in `test_headers.py`.
    places = [(one, place) for one in fort.operations for place in one.places if place.kind != "header"]
    for number, (operation, place) in enumerate(places):
        is_its_turn = number % _SHARE_OF_THEM == turn % _SHARE_OF_THEM
        if operation.path not in _ENDS_THE_WALK and (is_its_turn or not _reads_the_log(operation)):
            yield operation, place


def _reads_the_log(operation: Operation) -> bool:
    return str(operation).startswith(_READS_THE_LOG)


@pytest.mark.parametrize("turn", range(len(PAYLOADS)), ids=PAYLOADS.keys())
def test_no_text_in_any_place_of_any_route_breaks_or_reaches_anything(fort: Fort, turn: int) -> None:
    boss, before, secrets = fort.people[Role.SUPERADMIN], fort.state(), fort.secrets()
    wrong: list[str] = []
    for operation, place in _places(fort, turn):
        answer = operation.send(fort.live, boss, {place: list(PAYLOADS.values())[turn]})
        is_refusal = answer.status_code >= 400
        problems = {
            "failed": answer.status_code >= 500,
            "no problem": is_refusal and answer.headers["content-type"] != "application/problem+json",
            "no id": "x-request-id" not in answer.headers,
            "injected": "x-injected" in answer.headers,
            "secret": "$argon2" in answer.text or any(secret in answer.text for secret in secrets),
        }
        wrong += [
            f"{operation} {place}: {what} {answer.text[:200]}" for what, is_so in problems.items() if is_so
        ]
    assert wrong == []
    assert fort.state() == before


def test_each_place_that_asks_the_audit_log_has_three_payloads_and_each_payload_each_kind_of_place(
    fort: Fort,
) -> None:
    turns = [list(_places(fort, turn)) for turn in range(len(PAYLOADS))]
    asked = Counter(at for places in turns for at in places if _reads_the_log(at[0]))
    assert asked
    assert min(asked.values()) >= len(PAYLOADS) // _SHARE_OF_THEM
    assert all({place.kind for _, place in places} == {"path", "query", "body"} for places in turns)


@pytest.mark.parametrize("payload", NO_NAMES.values(), ids=NO_NAMES.keys())
def test_no_name_signs_in_or_registers_by_what_it_means_to_a_query(fort: Fort, payload: str) -> None:
    accounts, before = fort.live.lakehouse.accounts, fort.state()
    with pytest.raises(InvalidCredentialsError):
        accounts.login(payload, payload)
    with pytest.raises(InvalidCredentialsError):
        accounts.login(f"the-user{payload}", PASSWORD)
    with pytest.raises((InvalidNameError, UserExistsError)):
        accounts.register(payload, "someone@example.com", PASSWORD)
    with pytest.raises((InvalidNameError, UserExistsError)):
        accounts.register("someone-else", payload, PASSWORD)
    assert fort.state() == before


@pytest.mark.parametrize("name", ["ｔｈｅ-user", "THE-USER", "the-user\u200b", "thе-user", "the-user "])
def test_no_second_account_looks_like_a_first_one(fort: Fort, name: str) -> None:
    with pytest.raises((InvalidNameError, UserExistsError)):
        fort.live.lakehouse.accounts.register(name, "look-alike@example.com", PASSWORD)


@pytest.mark.parametrize("payload", ["x' OR '1'='1", "' OR user_id <> '", "%", "*", "\\", "x\0y"])
def test_a_filter_of_the_audit_log_is_a_value_and_never_a_condition(fort: Fort, payload: str) -> None:
    boss = fort.people[Role.SUPERADMIN]
    for field in ("user_id", "resource"):
        found = fort.live.get("/v1/audit", boss, params={field: payload})
        # Other tests ask for things of such names, and that is in the log.
        assert {entry[field] for entry in found.json()["entries"]} <= {payload}
    bill = fort.live.get(
        f"/v1/billing/{_quoted(payload)}", boss, params={"start": "2020-01-01", "end": "2040-01-01"}
    )
    assert bill.json()["total_actions"] == 0
    assert fort.live.get(f"/v1/audit/activity/{_quoted(payload)}", boss).json()["entries"] == []


def _patch(fort: Fort, person: Person, changes: object) -> httpx.Response:
    return fort.live.request("PATCH", "/v1/tables/target/rows", person, json=changes)


@pytest.mark.parametrize("condition", CONDITIONS, ids=lambda text: text[:30])
@pytest.mark.parametrize("role", [Role.USER, Role.SUPERADMIN])
def test_a_condition_reaches_nothing_but_its_table(fort: Fort, role: Role, condition: str) -> None:
    before, person = fort.state(), fort.people[role]
    answers = [
        fort.live.get("/v1/tables/target/rows", person, params={"where": condition[:20_000]}),
        _patch(fort, person, {"set": {"name": condition}, "where": "id = -1"}),
        _patch(fort, person, {"set": {"name": "'x'"}, "where": condition}),
    ]
    assert [
        answer.status_code for answer in answers if answer.status_code not in {200, 400, 403, 422, 431}
    ] == []
    assert not any(HIDDEN in answer.text or "$argon2" in answer.text for answer in answers)
    assert fort.state() == before
    assert fort.live.get("/healthz").status_code == 200


@pytest.mark.parametrize(
    ("query", "seconds"),
    [*((query, 5) for query in QUERIES), *((query, 1) for query in LONG_QUERIES)],
    ids=lambda value: str(value)[:40],
)
def test_a_query_reaches_only_what_its_user_may_read(fort: Fort, query: str, seconds: int) -> None:
    before = fort.state()
    for role in (Role.USER, Role.ADMIN):
        # Who may read more gets as little of what is secret.
        if role is Role.ADMIN and not any(
            name in query for name in ("users", "sessions", "information_schema")
        ):
            continue
        answer = fort.live.post("/v1/sql", fort.people[role], json={"query": query, "timeout": seconds})
        assert answer.status_code in {200, 403, 422}, answer.text
        assert fort.holds_no_secret(answer)
        if role is Role.USER:
            assert HIDDEN not in answer.text
            assert "root:" not in answer.text
    assert fort.state() == before


@pytest.mark.parametrize(
    "body",
    [
        "[" * 100_000,
        "[" * 5_000 + "]" * 5_000,
        '{"a":' * 5_000 + "1" + "}" * 5_000,
        '[{"id": 1, "name": ' + "[" * 5_000 + "]" * 5_000 + "}]",
        '[{"id": ' + "9" * 10_000 + "}]",
        '[{"id": 1e999999}]',
        '[{"id": NaN}]',
        '[{"id": 1, "id": 2}]',
        '[{"id": 1, "__proto__": {"x": 1}}]',
        '[{"id": 1, "name": "\\ud800"}]',
        '[{"id": 1, "name": {"$ne": null}}]',
        "\ufeff[]",
        "null",
        "",
    ],
    ids=lambda text: text[:20],
)
def test_no_json_breaks_the_reading_of_rows_or_of_requests(fort: Fort, body: str) -> None:
    boss, before = fort.people[Role.SUPERADMIN], fort.state()
    for path in ("/v1/tables/untouched/merge?on=nothing", "/v1/auth/register", "/v1/sql", "/v1/tables"):
        for kind in ("application/json", "application/x-ndjson"):
            answer = fort.live.post(path, boss, content=body.encode(), headers={"content-type": kind})
            assert 400 <= answer.status_code < 500, (path, kind, answer.text)
            assert json.loads(answer.text)["code"]
    assert fort.state() == before


@pytest.mark.parametrize(
    "schema",
    [
        "a:" + "List<" * 2_000 + "Int64" + ">" * 2_000,
        "a:" + "Struct<a:" * 2_000 + "Int64" + ">" * 2_000,
        "a:Decimal(99999999999999999999,1)",
        ",".join(f"c{number}:Int64" for number in range(20_000)),
        "a:Int64,A:Int64",
        "a:" + "(" * 100_000,
    ],
    ids=lambda text: text[:20],
)
def test_no_schema_text_breaks_the_making_of_a_table(fort: Fort, schema: str) -> None:
    boss = fort.people[Role.SUPERADMIN]
    answer = fort.live.post("/v1/tables", boss, json={"name": "never_made", "schema": schema})
    assert answer.status_code in {400, 413, 422}, answer.text[:300]
    assert "never_made" not in fort.live.get("/v1/tables", boss).json()["tables"]
