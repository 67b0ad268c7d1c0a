import gzip
import io
import json
import socket
from collections.abc import Iterator
from typing import Any

import httpx
import pyarrow as pa
import pytest

from lakehouse_platform.api.formats import RowForm
from lakehouse_platform.audit.reports import AuditRecord
from lakehouse_platform.model.actors import Role
from lakehouse_platform.model.schema import Schema
from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform_tests.support.http_server import LiveHttp, Person, http_server

SCHEMA = pa.schema(
    [pa.field("id", pa.int64(), nullable=False), ("name", pa.string()), ("price", pa.float64())]
)
ROWS = [{"id": 1, "name": "ä", "price": 0.5}, {"id": 2, "name": None, "price": None}]
PATH = "/v1/tables/goods/rows"


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveHttp]:
    place = tmp_path_factory.mktemp("rows")
    config = LakehouseConfig(base_path=str(place / "lake"), state_path=str(place / "state"), durability="os")
    with http_server(config) as server:
        yield server


@pytest.fixture(scope="module")
def administrator(live: LiveHttp) -> Person:
    return live.person("ada", Role.ADMIN)


@pytest.fixture
def admin(live: LiveHttp, administrator: Person) -> Person:
    """An administrator, and a table `goods` without rows."""
    if "goods" in live.lakehouse.store.tables():
        live.lakehouse.store.drop("goods")
    schema = Schema.parse("id:Int64 not null,name:String,price:Float64")
    live.lakehouse.store.create("goods", schema, primary_key=["id"])
    return administrator


def arrow(rows: list[dict[str, Any]], schema: pa.Schema = SCHEMA) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_table(pa.Table.from_pylist(rows, schema))
    return sink.getvalue().to_pybytes()


BODIES = {
    RowForm.JSON: json.dumps(ROWS).encode(),
    RowForm.NDJSON: b"".join(json.dumps(row).encode() + b"\n" for row in ROWS),
    RowForm.CSV: "name,id,price\nä,1,0.5\n,2,\n".encode(),
    RowForm.ARROW: arrow(ROWS),
}


def send(
    live: LiveHttp, person: Person | None, content: bytes, form: RowForm = RowForm.JSON, method: str = "POST",
    path: str = PATH, **headers: str,
) -> httpx.Response:  # fmt: skip
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return live.request(method, path, person, content=content, headers={"content-type": form.value, **named})


def stored(live: LiveHttp) -> list[dict[str, Any]]:
    return sorted(live.lakehouse.store.scan("goods").to_pylist(), key=lambda row: row["id"])


def problem(answer: httpx.Response, status: int, code: str) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    told: dict[str, Any] = answer.json()
    assert told["code"] == code, told
    return told


def entries(live: LiveHttp, request: str) -> list[AuditRecord]:
    found = live.lakehouse.audit.search(resource="goods", limit=10_000)
    return [one for one in found if one.request_id == request]


# ── Writing ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("form", RowForm)
def test_rows_are_added_in_every_form_and_packed(
    live: LiveHttp, admin: Person, form: RowForm, packed: bool
) -> None:
    content, coding = (gzip.compress(BODIES[form]), "gzip") if packed else (BODIES[form], "identity")
    answer = send(live, admin, content, form, content_encoding=coding)
    assert (answer.status_code, answer.json()) == (201, {"version": 1, "rows": 2, "repeated": False})
    assert stored(live) == ROWS


def test_a_body_in_chunks_is_one_commit(live: LiveHttp, admin: Person) -> None:
    parts = (json.dumps({"id": number, "name": "x" * 1000}).encode() + b"\n" for number in range(8_000))
    answer = live.request("POST", PATH, admin, content=parts, headers={"content-type": RowForm.NDJSON})
    assert answer.json() == {"version": 1, "rows": 8000, "repeated": False}
    assert live.lakehouse.store.scan("goods").to_arrow().num_rows == 8000


@pytest.mark.parametrize(
    ("form", "content", "named"),
    [
        (RowForm.JSON, b'[{"id": 3}, {"id": "x"}]', {"row": 2, "column": "id"}),
        (RowForm.JSON, b'[{"id": 3, "price": 1}, {"id": 4, "prize": 1}]', {"row": 2, "column": "prize"}),
        (RowForm.NDJSON, b'{"id": 3}\n{"id": 4.5}\n', {"line": 2, "column": "id"}),
        (RowForm.CSV, b"id,price\n3,1\n4,dear\n", {"line": 3, "column": "price"}),
        (RowForm.CSV, b"id,price\n3,1\n4\n", {"line": 3}),
        (RowForm.ARROW, arrow([{"id": "x"}], pa.schema([("id", pa.string())])), {"column": "id"}),
        (RowForm.ARROW, b"rubbish", {}),
    ],
)
def test_a_body_that_does_not_fit_changes_nothing_and_names_the_place(
    live: LiveHttp, admin: Person, form: RowForm, content: bytes, named: dict[str, object]
) -> None:
    answer = send(live, admin, content, form)
    assert answer.status_code == 422
    assert named.items() <= answer.json().items()
    assert live.lakehouse.store.table("goods").version() == 0


def test_a_late_line_of_a_long_body_is_named_and_nothing_is_written(live: LiveHttp, admin: Person) -> None:
    lines = [json.dumps({"id": number, "name": "x" * 500}) for number in range(60_000)]
    lines[50_000] = '{"id": null}'
    told = problem(send(live, admin, "\n".join(lines).encode(), RowForm.NDJSON), 422, "source_format")
    assert (told["line"], told["column"]) == (50_001, "id")
    assert live.lakehouse.store.table("goods").version() == 0


def test_a_key_that_is_taken_is_a_conflict(live: LiveHttp, admin: Person) -> None:
    assert send(live, admin, BODIES[RowForm.JSON]).status_code == 201
    problem(send(live, admin, BODIES[RowForm.CSV], RowForm.CSV), 409, "duplicate_key")
    assert stored(live) == ROWS


def test_columns_are_added_only_if_that_is_asked_for(live: LiveHttp, admin: Person) -> None:
    more = b"id,extra\n1,5\n"
    problem(send(live, admin, more, RowForm.CSV), 422, "source_format")
    assert send(live, admin, more, RowForm.CSV, path=PATH + "?evolve=true").status_code == 201
    assert stored(live) == [{"id": 1, "name": None, "price": None, "extra": 5}]


def test_rows_are_replaced_all_or_where_a_condition_holds(live: LiveHttp, admin: Person) -> None:
    send(live, admin, BODIES[RowForm.JSON])
    answer = send(live, admin, b'{"id": 2, "name": "new"}', method="PUT", path=PATH + "?where=id%20%3D%202")
    assert answer.json() == {"version": 2, "rows": 1, "repeated": False}
    assert [row["name"] for row in stored(live)] == ["ä", "new"]
    answer = send(live, admin, b"id\n9\n", RowForm.CSV, method="PUT")
    assert answer.json() == {"version": 3, "rows": 1, "repeated": False}
    assert [row["id"] for row in stored(live)] == [9]
    told = problem(
        send(live, admin, b"[]", method="PUT", path=PATH + "?where=TRUE&evolve=1"), 422, "invalid_argument"
    )
    assert "leave out" in told["detail"]


def test_rows_are_deleted_and_updated_where_a_condition_holds(live: LiveHttp, admin: Person) -> None:
    send(live, admin, BODIES[RowForm.JSON])
    answer = live.request(
        "PATCH", PATH, admin, json={"set": {"price": "2.0 + 2.0"}, "where": "price IS NULL"}
    )
    assert answer.json() == {"version": 2, "rows_updated": 1}
    answer = live.request("DELETE", PATH, admin, params={"where": "price < 1"})
    assert answer.json() == {"version": 3, "rows_deleted": 1}
    assert stored(live) == [{"id": 2, "name": None, "price": 4.0}]
    problem(live.request("DELETE", PATH, admin), 422, "invalid_request")
    problem(live.request("PATCH", PATH, admin, json={"set": {}}), 422, "invalid_request")


@pytest.mark.parametrize(
    ("form", "content"),
    [
        (RowForm.JSON, b'[{"id": 1, "_op": "DELETE"}, {"id": 2, "name": "b"}, {"id": 3, "price": 3}]'),
        (RowForm.NDJSON, b'{"id": 1, "_op": "DELETE"}\n{"id": 2, "name": "b"}\n{"id": 3, "price": 3}\n'),
        (RowForm.CSV, b"id,_op,name,price\n1,DELETE,,\n2,,b,\n3,,,3\n"),
        (
            RowForm.ARROW,
            arrow(
                [{"id": 1, "_op": "DELETE"}, {"id": 2, "name": "b"}, {"id": 3, "price": 3.0}],
                pa.schema([*SCHEMA, ("_op", pa.string())]),
            ),
        ),
    ],
)
def test_rows_are_merged_in_every_form(live: LiveHttp, admin: Person, form: RowForm, content: bytes) -> None:
    send(live, admin, BODIES[RowForm.JSON])
    answer = send(live, admin, content, form, path="/v1/tables/goods/merge?on=id")
    assert answer.json() == {"version": 2, "rows_inserted": 1, "rows_updated": 1, "rows_deleted": 1}
    assert stored(live) == [{"id": 2, "name": "b", "price": None}, {"id": 3, "name": None, "price": 3.0}]


def test_a_request_with_the_same_key_is_done_once(live: LiveHttp, admin: Person) -> None:
    first = send(live, admin, BODIES[RowForm.JSON], idempotency_key="k-1")
    again = send(live, admin, BODIES[RowForm.JSON], idempotency_key="k-1")
    assert first.json() == {"version": 1, "rows": 2, "repeated": False}
    assert again.json() == {"version": 1, "rows": 2, "repeated": True}
    assert stored(live) == ROWS
    problem(send(live, admin, b'[{"id": 7}]', idempotency_key="k-1"), 422, "idempotency_key_reused")
    for key in ("", "a b", "x" * 256):
        problem(send(live, admin, b'[{"id": 7}]', idempotency_key=key), 422, "invalid_argument")


def test_a_body_over_the_limit_is_refused_packed_or_not(config: LakehouseConfig) -> None:
    with http_server(config, {"api_max_body_mb": 1, "api_max_json_mb": 1}) as live:
        live.lakehouse.store.create("goods", SCHEMA)
        admin = live.person("ada", Role.ADMIN)
        large = b'{"id": 1}\n' * 200_000
        problem(send(live, admin, large, RowForm.NDJSON), 413, "body_too_large")
        problem(
            send(live, admin, gzip.compress(large), RowForm.NDJSON, content_encoding="gzip"),
            413,
            "body_too_large",
        )
        assert live.lakehouse.store.table("goods").version() == 0


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ({"content-type": "text/plain"}, 415, "unsupported_media_type"),
        ({"content-type": "application/json", "content-encoding": "br"}, 415, "unsupported_media_type"),
        ({"content-type": "application/json", "content-encoding": "gzip"}, 400, "bad_request"),
    ],
)
def test_what_is_no_body_of_rows_is_refused(
    live: LiveHttp, admin: Person, headers: dict[str, str], status: int, code: str
) -> None:
    problem(live.request("POST", PATH, admin, content=b"[]", headers=headers), status, code)


# ── Reading ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("form", RowForm)
def test_rows_are_read_in_the_form_that_is_asked_for(live: LiveHttp, admin: Person, form: RowForm) -> None:
    send(live, admin, BODIES[RowForm.JSON])
    answer = live.get(PATH, admin, headers={"accept": f"text/html, {form.value}"})
    assert answer.status_code == 200
    assert answer.headers["content-type"] == form.content_type
    assert answer.headers["x-lakehouse-version"] == "1"
    assert answer.headers["x-request-id"]
    if form is RowForm.ARROW:
        table = pa.ipc.open_stream(io.BytesIO(answer.content)).read_all()
        assert sorted(table.to_pylist(), key=lambda row: row["id"]) == ROWS
        assert table.schema == SCHEMA
    elif form is RowForm.JSON:
        assert sorted(answer.json(), key=lambda row: row["id"]) == ROWS
    elif form is RowForm.NDJSON:
        assert sorted(map(json.loads, answer.content.splitlines()), key=lambda row: row["id"]) == ROWS
    else:
        assert answer.text == "id,name,price\n1,ä,0.5\n2,,\n"


def test_json_is_the_default_and_other_forms_are_not_acceptable(live: LiveHttp, admin: Person) -> None:
    assert live.get(PATH, admin).json() == []
    problem(live.get(PATH, admin, headers={"accept": "text/html"}), 406, "not_acceptable")


def test_columns_conditions_limits_and_versions_are_heeded(live: LiveHttp, admin: Person) -> None:
    send(live, admin, BODIES[RowForm.JSON])
    send(live, admin, b'{"id": 3, "name": "c", "price": 3}')
    params = {"columns": "price,id", "where": "id >= 2 AND price IS NOT NULL", "limit": "5"}
    answer = live.get(PATH, admin, params=params)
    assert answer.text == '[\n{"price":3.0,"id":3}\n]\n'
    old = live.get(PATH, admin, params={"version": "1"})
    assert (len(old.json()), old.headers["x-lakehouse-version"]) == (2, "1")
    moment = live.lakehouse.store.history("goods")[0].to_dict()["timestamp"]
    then = live.get(PATH, admin, params={"timestamp": moment})
    assert (len(then.json()), then.headers["x-lakehouse-version"]) == (3, "2")
    assert live.get(PATH, admin, params={"limit": "0"}).json() == []


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ("colums=id", 422, "invalid_request"),
        ("limit=1&limit=2", 422, "invalid_request"),
        ("limit=-1", 422, "invalid_argument"),
        ("limit=many", 422, "invalid_request"),
        ("limit=99999999999999999999", 422, "invalid_argument"),
        ("columns=", 422, "invalid_request"),
        ("columns=id,,name", 422, "invalid_request"),
        ('columns="id', 422, "invalid_request"),
        ("columns=nothing", 422, "schema_mismatch"),
        ("columns=id,id", 422, "schema_mismatch"),
        ("where=id =", 422, "invalid_predicate"),
        ("where=1=1; DROP TABLE goods", 422, "invalid_predicate"),
        ("where=id = 1) OR (TRUE", 422, "invalid_predicate"),
        ("version=7", 404, "version_not_found"),
        ("timestamp=yesterday", 422, "invalid_timestamp"),
        ("timestamp=2001-01-01T00:00:00Z", 404, "timestamp_out_of_range"),
        ("version=0&timestamp=2001-01-01T00:00:00Z", 422, "invalid_argument"),
    ],
)
def test_questions_that_cannot_be_answered_are_explained(
    live: LiveHttp, admin: Person, query: str, status: int, code: str
) -> None:
    problem(live.get(f"{PATH}?{query}", admin), status, code)


def test_a_head_is_the_head_of_the_answer(live: LiveHttp, admin: Person) -> None:
    send(live, admin, BODIES[RowForm.JSON])
    answer = live.request("HEAD", PATH, admin, headers={"accept": "text/csv"})
    assert (answer.status_code, answer.content) == (200, b"")
    assert answer.headers["content-type"] == RowForm.CSV.content_type
    assert answer.headers["x-lakehouse-version"] == "1"
    assert live.request("HEAD", "/v1/tables/nothing/rows", admin).status_code == 404


def test_more_rows_than_the_server_answers_with_are_refused(config: LakehouseConfig) -> None:
    with http_server(config, {"api_max_rows": 1}) as live:
        live.lakehouse.store.create("goods", SCHEMA)
        live.lakehouse.store.append("goods", ROWS)
        admin = live.person("ada", Role.ADMIN)
        told = problem(live.get(PATH, admin), 422, "query_limit")
        assert told["max_rows"] == 1
        assert len(live.get(PATH, admin, params={"limit": "1"}).json()) == 1


def test_nobody_and_those_without_a_right_learn_nothing(live: LiveHttp, admin: Person) -> None:
    user = live.person("uma")
    for path in (PATH, "/v1/tables/nothing/rows"):
        problem(live.get(path), 401, "permission_denied")
        assert problem(live.get(path, user), 403, "permission_denied")["detail"].count("nothing") <= 1
        problem(send(live, user, b"[]", path=path), 403, "permission_denied")
    problem(live.get("/v1/tables/nothing/rows", admin), 404, "table_not_found")


def test_not_a_byte_is_taken_from_those_who_may_not_write(live: LiveHttp, admin: Person) -> None:
    user = live.person("ulla")
    taken = 0
    outcomes = set[object]()

    def endless() -> Iterator[bytes]:
        nonlocal taken
        while True:
            taken += 1
            yield b'{"id": 1}\n' * 10_000

    for method, path in (("POST", PATH), ("PUT", PATH), ("POST", "/v1/tables/goods/merge")):
        for person in (user, None):
            headers = {"content-type": RowForm.NDJSON.value}
            try:
                answer = live.request(method, path, person, content=endless(), headers=headers)
                outcomes.add((person is None, answer.status_code))
            except httpx.WriteError as error:
                outcomes.add(type(error))
    # A connection may be closed before the client has read the answer.
    assert outcomes <= {(True, 401), (False, 403), httpx.WriteError}
    assert taken * 100_000 < 6 * 20_000_000


def test_secret_columns_do_not_exist_over_http(live: LiveHttp, admin: Person) -> None:
    answer = live.get("/v1/tables/users/rows", admin)
    assert answer.status_code == 200
    assert answer.json()
    assert not {"password_hash", "email_key", "username_key"} & set(answer.json()[0])
    problem(live.get("/v1/tables/users/rows?columns=password_hash", admin), 422, "schema_mismatch")
    problem(live.get("/v1/tables/users/rows?where=password_hash>'a'", admin), 422, "invalid_predicate")
    problem(send(live, admin, b"[]", path="/v1/tables/users/rows"), 403, "permission_denied")


def test_reading_and_writing_are_in_the_audit_log_with_their_rows(live: LiveHttp, admin: Person) -> None:
    send(live, admin, BODIES[RowForm.JSON], x_request_id="write-1")
    live.get(PATH, admin, headers={"x-request-id": "read-1"})
    for request, action in (("write-1", "data_write"), ("read-1", "data_read")):
        (entry,) = entries(live, request)
        assert (entry.action, entry.user_id, entry.row_count) == (action, admin.user_id, 2)
        assert (entry.door, entry.outcome) == ("http", "done")


def test_a_client_that_goes_away_is_audited_with_the_rows_that_it_was_handed(
    live: LiveHttp, admin: Person
) -> None:
    wide = pa.table({"id": pa.array(range(500_000)), "name": pa.array(["x" * 200] * 500_000)})
    live.lakehouse.store.append("goods", wide)
    host, port = httpx.URL(live.base_url).host, httpx.URL(live.base_url).port
    with socket.create_connection((host, port or 0)) as client:
        headers = "".join(f"{name}: {value}\r\n" for name, value in admin.headers.items())
        headers += f"Accept: {RowForm.ARROW}\r\nX-Request-Id: gone-1\r\n"
        client.sendall(f"GET {PATH} HTTP/1.1\r\nHost: {host}\r\n{headers}\r\n".encode())
        client.recv(100_000)
    found = entries(live, "gone-1")
    while len(found) < 2:
        found = entries(live, "gone-1")
    begun, ended = found
    assert (begun.outcome, ended.outcome) == ("started", "done")
    assert 0 < (ended.row_count or 0) < 500_000


def test_an_answer_over_http_1_0_is_refused_because_its_end_would_not_show(
    live: LiveHttp, admin: Person
) -> None:
    host, port = httpx.URL(live.base_url).host, httpx.URL(live.base_url).port
    with socket.create_connection((host, port or 0)) as client:
        headers = "".join(f"{name}: {value}\r\n" for name, value in admin.headers.items())
        client.sendall(f"GET {PATH} HTTP/1.0\r\n{headers}\r\n".encode())
        assert b" 505 " in client.recv(100)
