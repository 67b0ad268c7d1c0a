"""The services and both clients against a live server do the same, return the same and refuse the same."""

from __future__ import annotations

import asyncio
import datetime as dt
import itertools
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from decimal import Decimal
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from lakehouse_platform import errors
from lakehouse_platform.client.aio import AsyncLakehouseClient
from lakehouse_platform.client.sync import LakehouseClient
from lakehouse_platform.errors import LakehouseError
from lakehouse_platform.model.actions import ActionType, Outcome
from lakehouse_platform.model.actors import AccountStatus, Role, SubscriptionTier
from lakehouse_platform.model.rights import Right
from lakehouse_platform.model.schema import Schema
from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform_tests.behaviour.faces import Face, InProcess, OverHttp, OverHttpAsync, told
from lakehouse_platform_tests.support.http_server import LiveHttp, Person, http_server
from lakehouse_platform_tests.support.people import OTHER_PASSWORD, PASSWORD

RIDES = Schema.parse("id:Int64 not null,name:String,price:Decimal(10,2),at:Timestamp", ["id"])
NOON = dt.datetime(2026, 2, 1, 12, tzinfo=dt.UTC)
_number = itertools.count()
_PLACE = re.compile(r"/\S*/lake/")
_FACES = ["in process", "over http", "over http, asynchronous"]


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveHttp]:
    """One server for all tests here: each has a table and people of its own."""
    place = tmp_path_factory.mktemp("faces")
    config = LakehouseConfig(base_path=str(place / "lake"), state_path=str(place / "state"), durability="os")
    with http_server(config) as server:
        yield server


@pytest.fixture(scope="module")
def root(live: LiveHttp) -> Person:
    return live.person("root", Role.SUPERADMIN)


@pytest.fixture(scope="module")
def nobody_much(live: LiveHttp) -> Person:
    """A user who has been granted nothing."""
    return live.person("nobody-much")


class Faces:
    """The same person on every face."""

    def __init__(self, live: LiveHttp, runner: asyncio.Runner, opened: ExitStack) -> None:
        self._live = live
        self._runner = runner
        self._opened = opened
        self._made: dict[str, list[Face]] = {}

    def of(self, person: Person) -> list[Face]:
        if person.user_id not in self._made:
            self._made[person.user_id] = self.with_token(person.tokens.access_token)
        return self._made[person.user_id]

    def with_token(self, token: str) -> list[Face]:
        client = LakehouseClient(self._live.base_url, token=token)
        asynchronous = AsyncLakehouseClient(self._live.base_url, token=token)
        self._opened.callback(client.close)
        self._opened.callback(lambda: self._runner.run(asynchronous.close()))
        actor = self._live.lakehouse.accounts.authenticate(token)
        return [
            InProcess(self._live.lakehouse, actor),
            OverHttp(client),
            OverHttpAsync(asynchronous, self._runner),
        ]


@pytest.fixture(scope="module")
def faces(live: LiveHttp) -> Iterator[Faces]:
    with asyncio.Runner() as runner, ExitStack() as opened:
        yield Faces(live, runner, opened)


@pytest.fixture(params=range(3), ids=_FACES)
def face(request: pytest.FixtureRequest, faces: Faces, root: Person) -> Face:
    """A superadmin on one face."""
    return faces.of(root)[request.param]


@pytest.fixture
def name() -> str:
    """A name that nothing has yet."""
    return f"table{next(_number)}"


@pytest.fixture
def rides(live: LiveHttp, name: str) -> str:
    """A table with three rows in two versions, key `id`, its changes recorded."""
    table = live.lakehouse.store.create(name, RIDES, properties={"delta.enableChangeDataFeed": "true"})
    table.append([{"id": 1, "name": "a", "price": Decimal("1.50"), "at": NOON}, {"id": 2}])
    table.append([{"id": 3, "name": "c"}])
    return name


def ids(rows: list[dict[str, Any]]) -> list[int]:
    return sorted(row["id"] for row in rows)


# ── Tables ──────────────────────────────────────────────────────────────────────────────────────────


def test_a_table_from_its_creation_to_its_end(face: Face, name: str) -> None:
    assert face.do("create", name, RIDES, partition_by=["name"], description="Trips.") == 0
    assert name in face.do("names")
    info = face.do("describe", name)
    assert (info["primary_key"], info["partition_columns"], info["description"]) == (
        ["id"],
        ["name"],
        "Trips.",
    )
    assert [column["type"] for column in info["columns"]] == ["Int64", "String", "Decimal(10,2)", "Timestamp"]
    assert face.do("add_columns", name, Schema.parse("note:String")) == 1
    assert face.do("set_properties", name, {"delta.logRetentionDuration": "interval 30 days"}) == 2
    assert face.do("add_constraint", name, "positive", "id > 0") == 3
    assert face.do("describe", name)["constraints"] == {"positive": "id > 0"}
    assert face.do("drop_constraint", name, "positive") == 4
    assert face.do("set_primary_key", name, ["id", "name"]) == 5
    face.do("drop", name)
    assert name not in face.do("names")


def test_an_arrow_schema_makes_a_table_too(face: Face, name: str) -> None:
    schema = pa.schema(
        [("a,b", pa.int32()), ("l", pa.list_(pa.string())), ("m", pa.map_(pa.string(), pa.int64()))]
    )
    assert face.do("create", name, schema) == 0
    assert face.do("append", name, [{"a,b": 1, "l": ["x", None], "m": {"k": 5}}])["rows"] == 1
    assert face.do("scan", name) == [{"a,b": 1, "l": ["x", None], "m": [("k", 5)]}]
    assert face.do("scan", name, ["a,b"]) == [{"a,b": 1}]


def test_rows_are_read_by_columns_condition_limit_version_and_time(
    face: Face, live: LiveHttp, rides: str
) -> None:
    assert ids(face.do("scan", rides)) == [1, 2, 3]
    assert face.do("scan", rides, ["name", "id"], "id = 3") == [{"name": "c", "id": 3}]
    assert len(face.do("scan", rides, limit=2)) == 2
    assert face.do("scan", rides, limit=0) == []
    assert ids(face.do("scan", rides, version=1)) == [1, 2]
    assert ids(face.do("read_version", rides, 1)) == [1, 2]
    assert ids(face.do("query", rides, "name IS NULL")) == [2]
    first = live.lakehouse.store.history(rides)[1].timestamp
    for moment in (first, first.isoformat()):
        assert ids(face.do("read_timestamp", rides, moment)) == [1, 2]
    assert ids(face.do("scan", rides, timestamp=first.isoformat())) == [1, 2]


def test_values_come_as_they_are(face: Face, rides: str) -> None:
    (row,) = face.do("query", rides, "id = 1")
    assert row == {"id": 1, "name": "a", "price": Decimal("1.50"), "at": NOON}


def test_sql_reads_all_tables(face: Face, rides: str) -> None:
    text = f"SELECT count(*) AS n, sum(price) AS s FROM {rides}"
    assert face.do("sql", text, max_rows=5, timeout=30) == [{"n": 3, "s": Decimal("1.50")}]


def test_versions_and_what_changed_between_them(face: Face, rides: str) -> None:
    newest = face.do("history", rides, limit=1)
    assert [(entry["version"], entry["operation"]) for entry in newest] == [(2, "WRITE")]
    assert [entry["version"] for entry in face.do("history", rides)] == [2, 1, 0]
    assert ids(face.do("diff", rides, 1, 2)) == [3]
    assert {row["_change_type"] for row in face.do("change_feed", rides, 1)} == {"insert"}
    assert ids(face.do("change_feed", rides, 2, 2)) == [3]
    assert face.do("restore", rides, 1) == 3
    assert ids(face.do("scan", rides)) == [1, 2]


_TABLE = pa.table({"id": [7, 8], "name": ["x", None]})


@pytest.mark.parametrize(
    "data",
    [
        lambda: _TABLE, lambda: _TABLE.to_batches()[0], _TABLE.to_reader, lambda: pl.DataFrame(_TABLE),
        lambda: pd.DataFrame({"id": [7, 8], "name": ["x", None]}), _TABLE.to_pylist,
        lambda: iter(_TABLE.to_pylist()),
    ],
    ids=["table", "batch", "reader", "polars", "pandas", "dictionaries", "iterator"],
)  # fmt: skip
def test_rows_are_taken_in_every_form(face: Face, rides: str, data: Callable[[], Any]) -> None:
    written = face.do("append", rides, data())
    assert written == {"version": 3, "rows": 2, "repeated": False}
    assert face.do("query", rides, "id >= 7") == [
        {"id": 7, "name": "x", "price": None, "at": None}, {"id": 8, "name": None, "price": None, "at": None},
    ]  # fmt: skip


def test_python_values_are_stored_as_they_are(face: Face, name: str) -> None:
    face.do(
        "create", name, Schema.parse("d:Date32,t:Timestamp,n:TimestampNtz,b:Binary,x:Decimal(20,4),f:Float64")
    )
    row = {
        "d": dt.date(2026, 2, 1), "t": NOON, "n": NOON.replace(tzinfo=None), "b": b"\x00\xff",
        "x": Decimal("1234567890.1234"), "f": 0.1,
    }  # fmt: skip
    assert face.do("append", name, [row])["rows"] == 1
    assert face.do("scan", name) == [row]
    texts = {"d": "2026-02-02", "t": "2026-02-01T12:00:00Z", "f": float("inf"), "x": 5}
    face.do("append", name, [texts])
    (found,) = face.do("query", name, "d = '2026-02-02'")
    assert (found["d"], found["t"], found["f"], found["x"]) == (
        dt.date(2026, 2, 2),
        NOON,
        float("inf"),
        Decimal(5),
    )


def test_no_rows_are_a_write_too(face: Face, rides: str) -> None:
    before = face.do("describe", rides)["version"]
    assert face.do("append", rides, [])["version"] - before in (0, 1)
    assert ids(face.do("scan", rides)) == [1, 2, 3]


@pytest.mark.parametrize(
    "data", [[{"id": 9, "new": "n"}], pa.table({"id": [9], "new": ["n"]})], ids=["rows", "arrow"]
)
def test_columns_are_added_where_that_is_wanted(face: Face, rides: str, data: Any) -> None:
    face.do("append", rides, data, evolve=True)
    assert face.do("query", rides, "new = 'n'")[0]["id"] == 9


def test_rows_are_replaced_changed_merged_and_deleted(face: Face, rides: str) -> None:
    assert face.do("update", rides, {"name": "'z'"}, "id = 2") == {"version": 3, "rows_updated": 1}
    assert face.do("update", rides, {"price": "2"})["rows_updated"] == 3
    merged = face.do("merge", rides, [{"id": 3, "name": "c2"}, {"id": 4, "name": "d"}])
    assert merged == {"version": 5, "rows_inserted": 1, "rows_updated": 1, "rows_deleted": 0}
    merged = face.do("merge", rides, [{"id": 4, "_op": "DELETE"}], ["id"])
    assert (merged["rows_deleted"], merged["rows_updated"]) == (1, 0)
    assert face.do("delete", rides, "id = 1")["rows_deleted"] == 1
    assert face.do("overwrite_where", rides, "id = 2", [{"id": 2, "name": "new"}])["version"] == 8
    assert [row["name"] for row in face.do("scan", rides)] == ["new", "c2"]
    assert face.do("overwrite", rides, [{"id": 10}])["rows"] == 1
    assert ids(face.do("scan", rides)) == [10]


def test_a_write_with_the_same_key_is_made_once(face: Face, rides: str) -> None:
    first = face.do("append", rides, [{"id": 5}], idempotency_key="k-1")
    again = face.do("append", rides, [{"id": 5}], idempotency_key="k-1")
    assert (first["repeated"], again["repeated"]) == (False, True)
    assert first["version"] == again["version"]
    assert ids(face.do("scan", rides)) == [1, 2, 3, 5]


def test_a_table_is_kept_up(face: Face, rides: str) -> None:
    assert face.do("compact", rides)["files_removed"] == 2
    assert face.do("z_order", rides, ["name"])["version"] >= 3
    assert face.do("vacuum", rides, dry_run=True)["dry_run"] is True
    assert face.do("vacuum", rides, 168) == {
        "files": [],
        "files_deleted": 0,
        "bytes_deleted": 0,
        "dry_run": False,
    }
    assert face.do("skipping", rides, "id = 1")["total_files"] == 1


# ── Accounts and the audit log ──────────────────────────────────────────────────────────────────────


def test_an_account_from_registration_to_its_end(face: Face, live: LiveHttp, name: str) -> None:
    made = face.do("register", name, f"{name}@example.com", PASSWORD, SubscriptionTier.PRO)
    assert (made["username"], made["tier"], made["status"]) == (name, "pro", "pending")
    user_id = made["user_id"]
    assert user_id in [user["user_id"] for user in face.do("pending")]
    assert face.do("approve", user_id)["status"] == "active"
    assert face.do("change_role", user_id, Role.ADMIN)["role"] == "admin"
    assert face.do("change_tier", user_id, SubscriptionTier.FREE)["tier"] == "free"
    face.do("override_limits", user_id, None, 7)
    assert face.do("usage", user_id)["quota"] == {"per_minute": None, "per_day": 7}
    face.do("reset_usage", user_id)
    face.do("follow_tier", user_id)
    assert face.do("usage", user_id)["quota"] == {"per_minute": 10, "per_day": 100}
    face.do("grant", user_id, "*", Right.WRITE)
    assert [(grant["table"], grant["right"]) for grant in face.do("grants", user_id)] == [("*", "write")]
    face.do("revoke_grant", user_id, "*")
    assert face.do("grants", user_id) == []
    live.lakehouse.accounts.login(name, PASSWORD)
    assert len(face.do("sessions", user_id)) == 1
    assert face.do("logout_everywhere", user_id) == 1
    face.do("set_password", user_id, OTHER_PASSWORD)
    assert face.do("disable", user_id)["status"] == "disabled"
    assert face.do("enable", user_id)["status"] == "active"
    assert face.do("user", user_id)["username"] == name


def test_a_ticket_for_mounts_is_the_same_on_every_face(faces: Faces, live: LiveHttp, name: str) -> None:
    person = live.person(name)
    tickets = {face.do("mount_ticket") for face in faces.of(person)}
    assert len(tickets) == 1
    assert live.lakehouse.accounts.admit_ticket(tickets.pop()).id == person.user_id


@pytest.mark.parametrize("number", range(3), ids=_FACES)
def test_a_program_gets_no_ticket_on_any_face(faces: Faces, live: LiveHttp, name: str, number: int) -> None:
    program = live.lakehouse.accounts.create_service_account(name, role=Role.SUPERADMIN)
    key = live.lakehouse.accounts.create_api_key(program.user_id, "all", "maintain:* admin").key
    with pytest.raises(errors.PermissionDeniedError):
        faces.with_token(key)[number].do("mount_ticket")


def test_who_registers_can_be_rejected(face: Face, name: str) -> None:
    made = face.do("register", name, f"{name}@example.com", PASSWORD)
    assert face.do("reject", made["user_id"])["status"] == "rejected"


def test_accounts_are_listed_page_by_page(face: Face, live: LiveHttp) -> None:
    for _ in range(2):
        live.lakehouse.accounts.register(f"user{next(_number)}", f"user{next(_number)}@example.com", PASSWORD)
    page = face.do("users", limit=1, status=AccountStatus.PENDING)
    assert len(page["users"]) == 1
    after = face.do("users", limit=1, status=AccountStatus.PENDING, after=page["next_after"])
    assert after["users"][0]["user_id"] > page["users"][0]["user_id"]


def test_a_program_has_keys(face: Face, live: LiveHttp, name: str) -> None:
    user_id = face.do("create_service_account", name, tier=SubscriptionTier.ENTERPRISE)["user_id"]
    assert user_id in [account["user_id"] for account in face.do("service_accounts")]
    made = face.do("create_api_key", user_id, "nightly", ["read:*"], dt.timedelta(days=3))
    with LakehouseClient(live.base_url, token=made["key"]) as program:
        assert program.user().user_id == user_id
        (key,) = face.do("list_api_keys", user_id)
        face.do("revoke_api_key", user_id, key["key_id"])
        with pytest.raises(errors.AuthenticationFailedError):
            program.user()


def test_the_audit_log_is_written_searched_billed_and_verified(face: Face, rides: str, root: Person) -> None:
    audit_id = face.do("log", ActionType.DATA_EXPORT, details="Exported", row_count=1_000_000, resource=rides)
    face.do("scan", rides)
    found = face.do("search", resource=rides, action=ActionType.DATA_EXPORT, outcome=Outcome.DONE)
    assert [(entry["audit_id"], entry["row_count"]) for entry in found] == [(audit_id, 1_000_000)]
    (read,) = face.do("search", resource=rides, action=ActionType.DATA_READ)
    assert (read["user_id"], read["row_count"]) == (root.user_id, 3)
    today = dt.datetime.now(dt.UTC).date()
    page = face.do("activity", root.user_id, today - dt.timedelta(days=1), limit=2)
    assert len(page["entries"]) == 2
    assert face.do("activity", root.user_id, limit=2, page=page["next_page"])["entries"] != page["entries"]
    bill = face.do("billing_summary", root.user_id, str(today - dt.timedelta(days=1)), str(today))
    assert bill["total_actions"] == sum(bill["actions_by_type"].values()) > 0
    assert bill["total_rows"] >= 1_000_003
    assert face.do("verify_audit")["problems"] == []


# ── The same errors ─────────────────────────────────────────────────────────────────────────────────

Case = tuple[type[LakehouseError], str, tuple[Any, ...], dict[str, Any]]
T = "<the table>"
PLAIN = Schema.parse("id:Int64")


def case(cls: type[LakehouseError], operation: str, *arguments: Any, **more: Any) -> Case:
    return cls, operation, arguments, more


_REFUSED: list[Case] = [
    case(errors.TableNotFoundError, "scan", "nothing"),
    case(errors.TableNotFoundError, "describe", "nothing"),
    case(errors.TableNotFoundError, "append", "nothing", [{"id": 1}]),
    case(errors.TableNotFoundError, "drop", "nothing"),
    case(errors.InvalidNameError, "scan", "../users"),
    case(errors.InvalidNameError, "create", "a b", PLAIN),
    case(errors.TableExistsError, "create", T, PLAIN),
    case(errors.VersionNotFoundError, "read_version", T, 999),
    case(errors.VersionNotFoundError, "restore", T, 999),
    case(errors.TimestampOutOfRangeError, "read_timestamp", T, "1999-01-01T00:00:00Z"),
    case(errors.InvalidTimestampError, "read_timestamp", T, "yesterday"),
    case(errors.InvalidTimestampError, "read_timestamp", T, "2026-02-01T12:00:00"),
    case(errors.SchemaMismatchError, "scan", T, ["nothing"]),
    case(errors.InvalidPredicateError, "query", T, "id = 1; DROP TABLE users"),
    case(errors.InvalidPredicateError, "delete", T, "nothing = 1"),
    case(errors.InvalidPredicateError, "overwrite_where", T, "id =", [{"id": 1}]),
    case(errors.InvalidSqlError, "sql", "SELEC 1"),
    case(errors.SqlNotAllowedError, "sql", "CREATE TABLE x AS SELECT 1"),
    case(errors.QueryLimitError, "sql", f"SELECT * FROM {T}", max_rows=1),
    case(errors.DuplicateKeyError, "append", T, [{"id": 1}]),
    case(errors.ConstraintViolationError, "append", T, pa.table({"id": pa.array([None], pa.int64())})),
    case(errors.SchemaMismatchError, "append", T, pa.table({"id": ["x"]})),
    case(errors.SchemaMismatchError, "append", T, pa.table({"id": [9], "more": [1]})),
    case(errors.LossyCastError, "append", T, pa.table({"id": [1.5]})),
    case(errors.InvalidRowsError, "append", T, [{"id": "x"}]),
    case(errors.InvalidRowsError, "append", T, [{"id": 8}, {"id": 9, "nmae": "x"}]),
    case(errors.InvalidRowsError, "append", T, [{"id": 8, "name": 5}]),
    case(errors.InvalidRowsError, "append", T, [{"name": "no id"}]),
    case(errors.InvalidRowsError, "append", T, "id,name"),
    case(errors.InvalidArgumentError, "append", T, [{"id": 8}], idempotency_key="a b"),
    case(errors.InvalidPropertyError, "set_properties", T, {"delta.nothing": "1"}),
    case(errors.ConstraintViolationError, "add_constraint", T, "small", "id < 2"),
    case(errors.UserNotFoundError, "user", "nobody"),
    case(errors.UserNotFoundError, "approve", "nobody"),
    case(errors.UserNotFoundError, "grant", "nobody", T, Right.READ),
    case(errors.InvalidNameError, "register", "a b", "x@example.com", PASSWORD),
    case(errors.PasswordTooWeakError, "register", "somebody", "somebody@example.com", "password"),
    case(errors.UserExistsError, "register", "root", "other@example.com", PASSWORD),
    case(errors.InvalidCredentialsError, "change_password", OTHER_PASSWORD, PASSWORD),
    case(errors.InvalidTimestampError, "activity", "u", "yesterday"),
]  # fmt: skip


@pytest.mark.parametrize("refused", _REFUSED, ids=lambda one: f"{one[0].__name__} {one[1]}")
def test_every_face_refuses_with_the_same_error(
    live: LiveHttp, root: Person, faces: Faces, rides: str, refused: Case
) -> None:
    found = _refusals(faces.of(root), refused, rides)
    assert found[0]["class"] is refused[0]
    assert found == [found[0]] * 3
    assert live.lakehouse.store.table(rides).version() == 2


@pytest.mark.parametrize(
    "refused",
    [
        case(errors.PermissionDeniedError, operation, *arguments)
        for operation, *arguments in [
            ("scan", T), ("scan", "nothing"), ("scan", "users"), ("describe", T), ("history", T),
            ("append", T, [{"id": 9}]), ("create", "mine", PLAIN), ("drop", T), ("compact", T), ("restore", T, 0),
            ("sql", f"SELECT * FROM {T}"),
            ("users",), ("approve", "somebody"), ("user", "somebody"), ("search",), ("verify_audit",),
            ("change_role", "somebody", Role.ADMIN), ("create_service_account", "robot"),
        ]
    ],
    ids=lambda one: f"{one[1]} {one[2][:1]}",
)  # fmt: skip
def test_who_may_not_is_refused_the_same_way_on_every_face(
    live: LiveHttp, nobody_much: Person, faces: Faces, rides: str, refused: Case
) -> None:
    found = _refusals(faces.of(nobody_much), refused, rides)
    assert found[0]["class"] is errors.PermissionDeniedError
    assert found == [found[0]] * 3


def test_a_key_that_was_used_for_other_rows_is_refused_on_every_face(
    live: LiveHttp, root: Person, faces: Faces, rides: str
) -> None:
    everyone = faces.of(root)
    everyone[0].do("append", rides, [{"id": 5}], idempotency_key="k-2")
    again = case(errors.IdempotencyKeyReusedError, "append", T, [{"id": 6}], idempotency_key="k-2")
    found = _refusals(everyone, again, rides)
    assert found[0]["class"] is errors.IdempotencyKeyReusedError
    assert found == [found[0]] * 3


def test_a_limit_is_told_on_every_face_with_how_long_to_wait(live: LiveHttp, faces: Faces) -> None:
    free = live.person("sparing", tier=SubscriptionTier.FREE)
    live.lakehouse.accounts.override_limits(free.user_id, None, 0)
    found = _refusals(faces.of(free), case(errors.RateLimitedError, "names"), "")
    assert {one["class"] for one in found} == {errors.RateLimitedError}
    assert all(one["details"]["retry_after"] > 0 for one in found)


def _refusals(everyone: list[Face], refused: Case, table: str) -> list[dict[str, Any]]:
    _, operation, arguments, more = refused
    given = [one.replace(T, table) if type(one) is str else one for one in arguments]
    found: list[dict[str, Any]] = []
    for face in everyone:
        with pytest.raises(LakehouseError) as caught:
            face.do(operation, *given, **more)
        one = told(caught.value)
        # Where a table stands is shown to the owner of the files alone.
        found.append(one | {"message": _PLACE.sub("…/", one["message"])})
    return found
