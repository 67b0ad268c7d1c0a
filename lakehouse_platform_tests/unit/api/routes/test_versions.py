from collections.abc import Iterator

import pytest

from lakehouse_platform.model.actors import Role
from lakehouse_platform.model.schema import Schema
from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform_tests.support.http_server import LiveHttp, Person, http_server

PATH = "/v1/tables/goods"


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveHttp]:
    place = tmp_path_factory.mktemp("versions")
    config = LakehouseConfig(base_path=str(place / "lake"), state_path=str(place / "state"), durability="os")
    with http_server(config) as server:
        store = server.lakehouse.store
        table = store.create("goods", Schema.parse("id:Int64 not null,name:String"), primary_key=["id"])
        table.set_properties({"delta.enableChangeDataFeed": "true"})
        store.append("goods", [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}])
        store.update("goods", {"name": "'c'"}, "id = 2")
        yield server


@pytest.fixture(scope="module")
def admin(live: LiveHttp) -> Person:
    return live.person("ada", Role.ADMIN)


def test_the_history_is_that_of_the_store(live: LiveHttp, admin: Person) -> None:
    told = live.get(f"{PATH}/history", admin).json()["history"]
    assert told == [commit.to_dict() for commit in live.lakehouse.store.history("goods")]
    assert [entry["version"] for entry in live.get(f"{PATH}/history?limit=2", admin).json()["history"]] == [
        told[0]["version"],
        told[1]["version"],
    ]
    assert live.get(f"{PATH}/history?limit=0", admin).status_code == 422


def test_a_diff_is_rows(live: LiveHttp, admin: Person) -> None:
    answer = live.get(f"{PATH}/diff?before=2&after=3", admin, headers={"accept": "text/csv"})
    assert answer.text == "_change_type,id,name\nupdate_preimage,2,b\nupdate_postimage,2,c\n"
    assert "x-lakehouse-version" not in answer.headers
    assert live.get(f"{PATH}/diff?before=2", admin).json()["code"] == "invalid_request"
    assert live.get(f"{PATH}/diff?before=2&after=99", admin).json()["code"] == "version_not_found"


def test_recorded_changes_are_rows(live: LiveHttp, admin: Person) -> None:
    rows = live.get(f"{PATH}/changes?start=3", admin).json()
    assert sorted((row["_change_type"], row["name"]) for row in rows) == [
        ("update_postimage", "c"),
        ("update_preimage", "b"),
    ]
    assert len(live.get(f"{PATH}/changes?start=2&end=2", admin).json()) == 2
    assert live.request("HEAD", f"{PATH}/changes?start=3", admin).status_code == 200


@pytest.mark.parametrize("wanted", [{"version": 2}, {"timestamp": None}])
def test_a_table_goes_back(live: LiveHttp, admin: Person, wanted: dict[str, object]) -> None:
    commits = {commit.version: commit.to_dict() for commit in live.lakehouse.store.history("goods")}
    if "timestamp" in wanted:
        wanted = {"timestamp": commits[3]["timestamp"]}
    answer = live.post(f"{PATH}/restore", admin, json=wanted)
    assert answer.json() == {"version": max(commits) + 1}
    names = {row["name"] for row in live.get(f"{PATH}/rows", admin).json()}
    assert names == ({"a", "b"} if "version" in wanted else {"a", "c"})


@pytest.mark.parametrize("wanted", [{}, {"version": 1, "timestamp": "2026-01-01T00:00:00Z"}])
def test_going_back_needs_one_goal(live: LiveHttp, admin: Person, wanted: dict[str, object]) -> None:
    assert live.post(f"{PATH}/restore", admin, json=wanted).json()["code"] == "invalid_argument"


@pytest.mark.parametrize("version", [True, "1", 1.5])
def test_a_version_is_a_whole_number(live: LiveHttp, admin: Person, version: object) -> None:
    assert live.post(f"{PATH}/restore", admin, json={"version": version}).status_code == 422


@pytest.mark.parametrize("version", [-1, 2**70])
def test_a_version_that_there_never_is_is_not_found(live: LiveHttp, admin: Person, version: int) -> None:
    refused = live.post(f"{PATH}/restore", admin, json={"version": version})
    assert (refused.status_code, refused.json()["code"]) == (404, "version_not_found")


def test_nobody_else_sees_or_changes_the_past(live: LiveHttp, admin: Person) -> None:
    user = live.person("uma")
    for path in ("history", "diff?before=1&after=2", "changes?start=1"):
        assert live.get(f"{PATH}/{path}", user).status_code == 403
        assert live.get(f"{PATH}/{path}").status_code == 401
    assert live.post(f"{PATH}/restore", user, json={"version": 1}).status_code == 403
