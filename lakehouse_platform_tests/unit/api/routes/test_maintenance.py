from collections.abc import Iterator

import pytest

from lakehouse_platform.model.actors import Role
from lakehouse_platform.model.schema import Schema
from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform_tests.support.http_server import LiveHttp, Person, http_server

PATH = "/v1/tables/goods"


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveHttp]:
    place = tmp_path_factory.mktemp("maintenance")
    config = LakehouseConfig(base_path=str(place / "lake"), state_path=str(place / "state"), durability="os")
    with http_server(config) as server:
        server.lakehouse.store.create("goods", Schema.parse("id:Int64,name:String"))
        yield server


@pytest.fixture(scope="module")
def admin(live: LiveHttp) -> Person:
    return live.person("ada", Role.ADMIN)


@pytest.fixture
def files(live: LiveHttp) -> None:
    for number in range(3):
        live.lakehouse.store.append("goods", [{"id": number, "name": "x"}])


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("more", [{}, {"json": {}}, {"json": {"target_file_mb": 5}}])
def test_small_files_are_merged(live: LiveHttp, admin: Person, more: dict[str, object]) -> None:
    told = live.post(f"{PATH}/compact", admin, **more).json()
    assert told["files_added"] == 1
    assert told["files_removed"] >= 3
    assert told["version"] == live.lakehouse.store.table("goods").version()


@pytest.mark.usefixtures("files")
def test_rows_are_clustered(live: LiveHttp, admin: Person) -> None:
    assert live.post(f"{PATH}/z-order", admin, json={"columns": ["id"]}).json()["files_added"] == 1


def test_a_vacuum_names_files_and_deletes_them(live: LiveHttp, admin: Person) -> None:
    dry = live.post(f"{PATH}/vacuum", admin, json={"dry_run": True}).json()
    assert dry == {"files": [], "files_deleted": 0, "bytes_deleted": 0, "dry_run": True}
    assert live.post(f"{PATH}/vacuum", admin, json={"dry_run": False}).json()["dry_run"] is False


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("compact", {"target_file_mb": 0}),
        ("compact", {"target_file_mb": "5"}),
        ("compact", {"everything": True}),
        ("z-order", {}),
        ("z-order", {"columns": []}),
        ("z-order", {"columns": ["nothing"]}),
        ("vacuum", {}),
        ("vacuum", {"dry_run": "yes"}),
        ("vacuum", {"retention_hours": -1, "dry_run": True}),
        ("vacuum", {"retention_hours": 10**12, "dry_run": True}),
    ],
)
def test_what_cannot_be_done_is_refused(
    live: LiveHttp, admin: Person, path: str, body: dict[str, object]
) -> None:
    before = live.lakehouse.store.table("goods").version()
    assert live.post(f"{PATH}/{path}", admin, json=body).status_code == 422
    assert live.lakehouse.store.table("goods").version() == before


def test_maintenance_needs_the_right(live: LiveHttp) -> None:
    user = live.person("uma")
    bodies = {"compact": {}, "z-order": {"columns": ["id"]}, "vacuum": {"dry_run": True}}
    for path, body in bodies.items():
        assert live.post(f"{PATH}/{path}", user, json=body).status_code == 403
        assert live.post(f"{PATH}/{path}", json=body).status_code == 401
