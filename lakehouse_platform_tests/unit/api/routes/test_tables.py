from collections.abc import Iterator

import pytest

from lakehouse_platform.model.actors import Role
from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform_tests.support.http_server import LiveHttp, Person, http_server


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveHttp]:
    place = tmp_path_factory.mktemp("tables")
    config = LakehouseConfig(base_path=str(place / "lake"), state_path=str(place / "state"), durability="os")
    with http_server(config) as server:
        yield server


@pytest.fixture(scope="module")
def admin(live: LiveHttp) -> Person:
    return live.person("ada", Role.ADMIN)


def create(live: LiveHttp, admin: Person, name: str, **more: object) -> str:
    body = {"name": name, "schema": "id:Int64 not null,name:String,price:Float64", **more}
    answer = live.post("/v1/tables", admin, json=body)
    assert (answer.status_code, answer.json()) == (201, {"version": 0}), answer.text
    assert answer.headers["location"] == f"/v1/tables/{name}"
    return f"/v1/tables/{name}"


def test_a_table_is_created_listed_described_and_deleted(live: LiveHttp, admin: Person) -> None:
    path = create(
        live, admin, "goods", primary_key=["id"], partition_by=["name"], description="What we sell."
    )
    assert "goods" in live.get("/v1/tables", admin).json()["tables"]
    told = live.get(path, admin).json()
    assert told["columns"][0] == {"name": "id", "type": "Int64", "nullable": False}
    assert (told["primary_key"], told["partition_columns"]) == (["id"], ["name"])
    assert (told["description"], told["version"], told["rows"]) == ("What we sell.", 0, 0)
    assert told["modified"].endswith("Z")
    answer = live.request("DELETE", path, admin)
    assert (answer.status_code, answer.content) == (204, b"")
    assert live.get(path, admin).json()["code"] == "table_not_found"


def test_a_description_tells_everything_that_the_table_says_of_itself(live: LiveHttp, admin: Person) -> None:
    path = create(live, admin, "told")
    assert set(live.get(path, admin).json()) == set(live.lakehouse.store.describe("told").to_dict())


def test_a_table_changes_what_it_is(live: LiveHttp, admin: Person) -> None:
    path = create(live, admin, "changing")
    live.lakehouse.store.append("changing", [{"id": 1, "name": "a", "price": 2.0}])
    answers = [
        live.request("PUT", f"{path}/primary-key", admin, json={"columns": ["id"]}),
        live.request("PUT", f"{path}/properties", admin, json={"delta.enableChangeDataFeed": "true"}),
        live.request("PUT", f"{path}/constraints/dear", admin, json={"predicate": "price > 1"}),
        live.request("DELETE", f"{path}/constraints/dear", admin),
        live.request("POST", f"{path}/columns", admin, json={"schema": "extra:Int32"}),
    ]
    assert [answer.json()["version"] for answer in answers] == [2, 3, 4, 5, 6]
    info = live.lakehouse.store.describe("changing")
    assert (info.primary_key, dict(info.constraints)) == (("id",), {})
    assert info.properties["delta.enableChangeDataFeed"] == "true"
    assert info.columns[-1].name == "extra"


def test_skipping_is_told(live: LiveHttp, admin: Person) -> None:
    path = create(live, admin, "skipped")
    for number in (1, 2):
        live.lakehouse.store.append("skipped", [{"id": number}])
    told = live.get(f"{path}/skipping", admin, params={"where": "id = 1"}).json()
    assert (told["total_files"], told["files_read"], told["files_skipped"]) == (2, 1, 1)


@pytest.mark.parametrize("path", ["/v1/tables", "/v1/tables/users", "/v1/tables/users/skipping"])
def test_what_answers_get_answers_head(live: LiveHttp, admin: Person, path: str) -> None:
    answer = live.request("HEAD", path, admin)
    assert (answer.status_code, answer.content) == (200, b"")
    assert answer.headers["content-type"] == "application/json"


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"name": "../etc", "schema": "id:Int64"}, 422, "invalid_name"),
        ({"name": "a/b", "schema": "id:Int64"}, 422, "invalid_name"),
        ({"name": "ok", "schema": "id:Nonsense"}, 422, "invalid_schema"),
        ({"name": "ok", "schema": "id:Int64", "primary_key": ["no"]}, 422, "invalid_schema"),
        ({"name": "ok", "schema": "id:Int64", "owner": "me"}, 422, "invalid_request"),
        ({"name": "ok"}, 422, "invalid_request"),
        ({"name": "ok", "columns": "id:Int64"}, 422, "invalid_request"),
        ({"name": "users", "schema": "id:Int64"}, 403, "permission_denied"),
    ],
)
def test_a_table_that_cannot_be_is_refused(
    live: LiveHttp, admin: Person, body: dict[str, object], status: int, code: str
) -> None:
    answer = live.post("/v1/tables", admin, json=body)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert "ok" not in live.lakehouse.store.tables()


def test_names_that_would_lead_elsewhere_are_refused(live: LiveHttp, admin: Person) -> None:
    for name in ("..%2Fusers", "%2e%2e", "a%00b", "x" * 300, "users%2F_delta_log", "goods%0a"):
        assert live.get(f"/v1/tables/{name}", admin).status_code in {404, 422}


def test_users_make_and_delete_no_tables_and_see_only_theirs(live: LiveHttp, admin: Person) -> None:
    path = create(live, admin, "hidden")
    user = live.person("uma")
    assert live.get("/v1/tables", user).json() == {"tables": []}
    assert live.post("/v1/tables", user, json={"name": "mine", "schema": "id:Int64"}).status_code == 403
    assert live.request("DELETE", path, user).status_code == 403
    assert live.request("DELETE", path).status_code == 401
    assert live.get("/v1/tables").status_code == 401
    assert "hidden" in live.lakehouse.store.tables()


def test_unknown_parameters_are_refused_on_every_route(live: LiveHttp, admin: Person) -> None:
    answer = live.request("DELETE", "/v1/tables/hidden?force=true", admin)
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "query.force")
