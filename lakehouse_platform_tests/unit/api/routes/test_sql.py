import io
from collections.abc import Iterator

import pyarrow as pa
import pytest

from lakehouse_platform.api.formats import RowForm
from lakehouse_platform.model.actors import Role
from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform_tests.support.http_server import LiveHttp, Person, http_server


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveHttp]:
    place = tmp_path_factory.mktemp("sql")
    config = LakehouseConfig(base_path=str(place / "lake"), state_path=str(place / "state"), durability="os")
    with http_server(config) as server:
        rows = pa.table({"id": [1, 2, 3], "city": ["Ulm", "Ulm", "Köln"]})
        server.lakehouse.store.create("people", rows.schema)
        server.lakehouse.store.append("people", rows)
        yield server


@pytest.fixture(scope="module")
def admin(live: LiveHttp) -> Person:
    return live.person("ada", Role.ADMIN)


@pytest.mark.parametrize("form", RowForm)
def test_a_query_answers_with_rows_in_every_form(live: LiveHttp, admin: Person, form: RowForm) -> None:
    query = "SELECT city, count(*) AS n FROM people GROUP BY city ORDER BY city"
    answer = live.post("/v1/sql", admin, json={"query": query}, headers={"accept": form.value})
    assert answer.headers["content-type"] == form.content_type
    if form is RowForm.ARROW:
        assert pa.ipc.open_stream(io.BytesIO(answer.content)).read_all().column("n").to_pylist() == [1, 2]
    else:
        assert {
            RowForm.JSON: '[\n{"city":"Köln","n":1},\n{"city":"Ulm","n":2}\n]\n',
            RowForm.NDJSON: '{"city":"Köln","n":1}\n{"city":"Ulm","n":2}\n',
            RowForm.CSV: "city,n\nKöln,1\nUlm,2\n",
        }[form] == answer.text


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"query": "SELECT"}, 422, "invalid_sql"),
        ({"query": ""}, 422, "invalid_request"),
        ({"query": "DROP TABLE people"}, 403, "sql_not_allowed"),
        ({"query": "SELECT 1; SELECT 2"}, 403, "sql_not_allowed"),
        ({"query": "COPY people TO '/x.csv'"}, 403, "sql_not_allowed"),
        ({"query": "SELECT * FROM nothing"}, 404, "table_not_found"),
        ({"query": "SELECT * FROM people", "max_rows": 2}, 422, "query_limit"),
        ({"query": "SELECT * FROM people", "max_rows": 0}, 422, "invalid_request"),
        ({"query": "SELECT 1", "timeout": -1}, 422, "invalid_request"),
        ({"query": "SELECT 1", "limit": 1}, 422, "invalid_request"),
        ({"query": "SELECT password_hash FROM users"}, 422, "invalid_sql"),
    ],
)
def test_a_query_that_may_not_run_is_explained(
    live: LiveHttp, admin: Person, body: dict[str, object], status: int, code: str
) -> None:
    answer = live.post("/v1/sql", admin, json=body)
    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text


def test_a_query_needs_the_right_on_every_table_that_it_reads(live: LiveHttp, admin: Person) -> None:
    user = live.person("uma")
    query = {"query": "SELECT * FROM people"}
    assert live.post("/v1/sql", user, json=query).status_code == 403
    assert live.post("/v1/sql", user, json={"query": "SELECT * FROM nothing"}).status_code == 403
    assert live.post("/v1/sql", json=query).status_code == 401
    assert live.post("/v1/sql", user, json={"query": "SELECT 1 AS one"}).json() == [{"one": 1}]


def test_queries_are_only_posted(live: LiveHttp, admin: Person) -> None:
    answer = live.get("/v1/sql", admin)
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


@pytest.mark.parametrize("form", RowForm)
@pytest.mark.parametrize(
    "value",
    [
        "now()",
        "now() - TIMESTAMP '2020-01-01'",
        "INTERVAL '1 day'",
        "arrow_cast(1, 'Time64(Nanosecond)')",
        "arrow_cast(1, 'Duration(Second)')",
        "arrow_cast(1, 'Decimal256(76, 3)')",
        "arrow_cast(1, 'Date64')",
        "arrow_cast(9223372036854775807, 'Timestamp(Second, None)')",
    ],
)
def test_whatever_a_query_computes_can_be_sent(
    live: LiveHttp, admin: Person, value: str, form: RowForm
) -> None:
    answer = live.post(
        "/v1/sql", admin, json={"query": f"SELECT {value} AS v"}, headers={"accept": form.value}
    )
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize("form", RowForm)
@pytest.mark.parametrize("where", ["a.id = 1", "a.id < 0"])
def test_columns_of_one_name_come_in_the_forms_that_hold_both(
    live: LiveHttp, admin: Person, form: RowForm, where: str
) -> None:
    query = f"SELECT a.id, b.id FROM people a JOIN people b ON a.id + 1 = b.id WHERE {where}"
    answer = live.post("/v1/sql", admin, json={"query": query}, headers={"accept": form.value})
    if form in {RowForm.JSON, RowForm.NDJSON}:
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid_sql")
        assert "AS" in answer.json()["detail"]
        assert answer.json()["columns"] == ["id"]
    elif form is RowForm.CSV:
        assert answer.text == ("id,id\n1,2\n" if where == "a.id = 1" else "id,id\n")
    else:
        assert pa.ipc.open_stream(io.BytesIO(answer.content)).read_all().schema.names == ["id", "id"]
