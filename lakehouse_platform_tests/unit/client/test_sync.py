"""The synchronous client against a live server, and against what may stand in its place."""

from __future__ import annotations

import gc
import socket
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler
from typing import Any

import pyarrow as pa
import pytest

from lakehouse_platform.client.records import Tokens
from lakehouse_platform.client.retrying import RetryPolicy
from lakehouse_platform.client.sync import LakehouseClient
from lakehouse_platform.client.wire import Timeouts
from lakehouse_platform.errors import (
    AuthenticationFailedError,
    CommitOutcomeUnknownError,
    IdempotencyKeyReusedError,
    InvalidArgumentError,
    InvalidCredentialsError,
    InvalidRowsError,
    LakehouseError,
    PermissionDeniedError,
    ServerUnavailableError,
    TokenReuseError,
    UnexpectedAnswerError,
)
from lakehouse_platform.model.schema import Schema
from lakehouse_platform_tests.support.cutting_wire import CuttingWire
from lakehouse_platform_tests.support.http_server import LiveHttp, Person
from lakehouse_platform_tests.support.people import PASSWORD, entries
from lakehouse_platform_tests.support.strangers import page, stranger
from lakehouse_platform_tests.unit.client.conftest import QUICK

RIDES = Schema.parse("id:Int64 not null,name:String")
ONCE = RetryPolicy(attempts=1)


def kept(person: Person, expires_at: datetime | None = None) -> Tokens:
    """Return a sign-in as a program would have kept it."""
    made = person.tokens
    return Tokens(
        access_token=made.access_token,
        refresh_token=made.refresh_token,
        expires_at=expires_at or made.expires_at,
        user_id=made.user_id,
        session_id=made.session_id,
    )


def done(live: LiveHttp, action: str) -> list[str]:
    """Return how each action of a kind ended."""
    accounts = live.lakehouse.accounts
    return [row["outcome"] for row in entries(accounts, live.lakehouse.store) if row["action"] == action]


def row_ids(live: LiveHttp, name: str = "rides") -> list[int]:
    return sorted(row["id"] for row in live.lakehouse.store.scan(name).to_pylist())


# ── Lost answers ────────────────────────────────────────────────────────────────────────────────────


def test_an_append_whose_answer_is_lost_lands_once(
    live: LiveHttp, wire: CuttingWire, root: LakehouseClient
) -> None:
    root.create("rides", RIDES)
    wire.cut(0, 0)
    written = root.append("rides", pa.table({"id": [1, 2]}))
    assert wire.cuts_left() == 0
    assert (written.version, written.repeated) == (1, True)
    assert row_ids(live) == [1, 2]
    assert live.lakehouse.store.table("rides").version() == 1


@pytest.mark.parametrize(
    "rows", [[{"id": 1, "name": "a"}], [{"id": 1, "name": "a", "at": datetime(2026, 2, 1, tzinfo=UTC)}]]
)
def test_rows_of_python_values_land_once_too(
    live: LiveHttp, wire: CuttingWire, root: LakehouseClient, rows: list[dict[str, object]]
) -> None:
    root.create("rides", Schema.parse("id:Int64,name:String,at:Timestamp"))
    wire.cut(0)
    assert root.append("rides", rows).repeated
    assert row_ids(live) == [1]


def test_merge_overwrite_update_and_delete_happen_once_too(
    live: LiveHttp, wire: CuttingWire, root: LakehouseClient
) -> None:
    root.create("rides", RIDES, primary_key=["id"])
    wire.cut(0)
    assert root.merge("rides", [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]).rows_inserted == 2
    wire.cut(0)
    assert root.update("rides", {"name": "upper(name)"}).rows_updated == 2
    wire.cut(0)
    assert root.delete("rides", "id = 1").rows_deleted == 1
    wire.cut(0)
    assert root.overwrite("rides", [{"id": 7, "name": "c"}]).repeated
    wire.cut(0)
    assert root.overwrite_where("rides", "id = 7", [{"id": 7, "name": "d"}]).repeated
    assert wire.cuts_left() == 0
    assert live.lakehouse.store.table("rides").version() == 5
    assert row_ids(live) == [7]


def test_a_reader_whose_answer_is_lost_is_told_to_be_open_and_can_be_repeated_with_its_key(
    live: LiveHttp, wire: CuttingWire, root: LakehouseClient
) -> None:
    root.create("rides", RIDES)
    rows = pa.table({"id": [1]})
    wire.cut(0)
    with pytest.raises(CommitOutcomeUnknownError) as caught:
        root.append("rides", rows.to_reader())
    key = caught.value.details["idempotency_key"]
    assert isinstance(key, str)
    assert root.append("rides", rows.to_reader(), idempotency_key=key).repeated
    assert row_ids(live) == [1]
    with pytest.raises(IdempotencyKeyReusedError):
        root.append("rides", pa.table({"id": [2]}), idempotency_key=key)


def test_rows_that_break_off_are_read_again(live: LiveHttp, wire: CuttingWire, root: LakehouseClient) -> None:
    many(live)
    wire.cut(2_000_000)
    assert root.scan("rides", ["id"]).num_rows == 300_000
    assert wire.cuts_left() == 0


@pytest.mark.parametrize("after", [0, 1000, 400_000, 2_000_000])
def test_a_stream_that_breaks_off_raises_and_is_never_taken_for_shorter(
    live: LiveHttp, wire: CuttingWire, root: LakehouseClient, after: int
) -> None:
    many(live)
    wire.cut(*[after] * QUICK.attempts)
    with pytest.raises(ServerUnavailableError):
        root.stream("rides").read_all()


def test_a_stream_hands_rows_out_as_they_come(live: LiveHttp, root: LakehouseClient) -> None:
    many(live)
    reader = root.stream("rides", ["id"], "id >= 100", limit=250_000)
    assert reader.schema.names == ["id"]
    first = reader.read_next_batch()
    assert 0 < first.num_rows < 250_000
    assert first.num_rows + sum(batch.num_rows for batch in reader) == 250_000


def test_a_stream_that_is_given_up_gives_its_connection_back(live: LiveHttp, root: LakehouseClient) -> None:
    many(live)
    for read in (False, True):
        reader = root.stream("rides")
        if read:
            reader.read_next_batch()
        del reader
        gc.collect()
    assert root.describe("rides").rows == 300_000


def many(live: LiveHttp) -> None:
    table = live.lakehouse.store.create("rides", RIDES)
    table.append(pa.table({"id": range(300_000), "name": ["x" * 20] * 300_000}))


# ── Signing in and renewing ─────────────────────────────────────────────────────────────────────────


def test_a_login_whose_answer_is_lost_is_not_repeated(live: LiveHttp, wire: CuttingWire) -> None:
    ada = live.person("ada")
    with LakehouseClient(wire.base_url, retries=QUICK) as client:
        wire.cut(0)
        with pytest.raises(ServerUnavailableError):
            client.login("ada", PASSWORD)
        assert client.tokens is None
    assert len(live.lakehouse.accounts.sessions(ada.user_id)) == 2


def test_a_renewal_whose_answer_is_lost_is_not_repeated_and_looks_like_no_theft(
    live: LiveHttp, wire: CuttingWire
) -> None:
    ada = live.person("ada")
    told: list[Tokens | None] = []
    with LakehouseClient(wire.base_url, tokens=kept(ada), on_tokens=told.append, retries=QUICK) as client:
        wire.cut(0)
        with pytest.raises(ServerUnavailableError):
            client.refresh()
        with pytest.raises(AuthenticationFailedError):
            client.user()
    assert [tokens and tokens.refresh_token for tokens in told] == [None]
    assert done(live, "token_refresh") == ["done"]


def test_a_sign_in_from_login_to_logout(live: LiveHttp) -> None:
    ada = live.person("ada")
    told: list[Tokens | None] = []
    with LakehouseClient(live.base_url, on_tokens=told.append) as client:
        with pytest.raises(InvalidCredentialsError):
            client.login("ada", "not this one, surely")
        tokens = client.login("ada@example.com", PASSWORD)
        assert client.verify().sub == client.user().user_id == ada.user_id
        renewed = client.refresh()
        assert renewed.access_token != tokens.access_token
        assert client.verify().sid == tokens.session_id
        client.logout()
        assert told == [tokens, renewed, None]
        with pytest.raises((PermissionDeniedError, AuthenticationFailedError)):
            client.user()


def test_many_threads_renew_a_sign_in_once(live: LiveHttp) -> None:
    past = datetime.now(UTC) - timedelta(seconds=1)
    told: list[Tokens | None] = []
    with LakehouseClient(
        live.base_url, tokens=kept(live.person("ada"), past), on_tokens=told.append
    ) as client:
        start = threading.Barrier(8)

        def ask(_: int) -> str:
            start.wait()
            return client.user().username

        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(ask, range(8))) == ["ada"] * 8
    assert len(told) == 1
    assert done(live, "token_refresh") == ["done"]


def test_requests_under_way_survive_a_renewal(live: LiveHttp) -> None:
    with LakehouseClient(live.base_url, tokens=kept(live.person("ada"))) as client:
        ended = threading.Event()

        def ask(_: int) -> int:
            asked = 0
            while not ended.is_set() or asked < 5:
                client.user()
                asked += 1
            return asked

        with ThreadPoolExecutor(4) as pool:
            running = [pool.submit(ask, number) for number in range(4)]
            for _ in range(5):
                client.refresh()
            ended.set()
            assert all(future.result() >= 5 for future in running)


def test_a_refresh_token_that_was_used_elsewhere_ends_the_sign_in(live: LiveHttp) -> None:
    ada = live.person("ada")
    with LakehouseClient(live.base_url, tokens=kept(ada)) as client:
        live.lakehouse.accounts.refresh(ada.tokens.refresh_token or "")
        with pytest.raises(TokenReuseError) as caught:
            client.refresh()
        assert "user_id" not in caught.value.details
        assert client.tokens is not None
        assert client.tokens.refresh_token is None


def test_a_callback_may_use_the_client(live: LiveHttp) -> None:
    live.person("ada")
    seen: list[str] = []
    client = LakehouseClient(live.base_url, on_tokens=lambda tokens: seen.append(client.user().username))
    with client:
        client.login("ada", PASSWORD)
    assert seen == ["ada"]


# ── Strangers ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("status", [200, 404, 500, 502, 503])
def test_a_page_in_place_of_an_answer_is_told_as_such(status: int) -> None:
    with (
        stranger(page(status, b"<html>hello</html>")) as other,
        LakehouseClient(other.base_url, retries=QUICK) as client,
    ):
        for ask in (client.names, lambda: client.scan("rides"), lambda: client.stream("rides")):
            with pytest.raises(UnexpectedAnswerError, match=f"status {status}, text/html"):
                ask()


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_gets_neither_token_nor_rows(status: int) -> None:
    with stranger(page(200, b"[]", "application/json")) as thief:
        elsewhere = f"{thief.base_url}/v1/tables"
        with (
            stranger(page(status, b"", location=elsewhere)) as other,
            LakehouseClient(other.base_url, token="hush", retries=QUICK) as client,
        ):
            for ask in (
                client.names,
                lambda: client.append("rides", [{"id": 1}]),
                lambda: client.login("a", "hush"),
            ):
                with pytest.raises(UnexpectedAnswerError, match="redirects are not followed"):
                    ask()
        assert thief.asked == []


def test_a_server_that_never_ends_its_answer_does_not_fill_the_memory() -> None:
    def endless(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(500)
        handler.send_header("content-type", "application/problem+json")
        handler.end_headers()
        for _ in range(10_000):
            handler.wfile.write(b" " * 65_536)

    with (
        stranger(quiet(endless)) as other,
        LakehouseClient(other.base_url, retries=ONCE) as client,
        pytest.raises(UnexpectedAnswerError, match="larger than"),
    ):
        client.names()


def test_a_stream_without_chunks_that_ends_at_a_batch_is_not_taken_for_whole() -> None:
    """Without chunks or a length, HTTP itself cannot tell a cut from the end."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, pa.schema([("id", pa.int64())])) as writer:
        writer.write_table(pa.table({"id": [1, 2, 3]}))
    cut = sink.getvalue().to_pybytes()[:-8]

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("content-type", "application/vnd.apache.arrow.stream")
        handler.end_headers()
        handler.wfile.write(cut)

    with stranger(answer) as other, LakehouseClient(other.base_url, retries=QUICK) as client:
        with pytest.raises(UnexpectedAnswerError, match="cut off"):
            client.scan("rides")
        with pytest.raises(UnexpectedAnswerError, match="cut off"):
            client.stream("rides").read_all()


def test_a_table_larger_than_memory_is_read_in_little(wide_stream: str) -> None:
    with LakehouseClient(wide_stream) as client:
        tracemalloc.start()
        before = pa.total_allocated_bytes()
        rows = peak = 0
        for batch in client.stream("rides"):
            rows += batch.num_rows
            peak = max(peak, pa.total_allocated_bytes() - before)
        _, python_peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert rows == 200 * 1000
    assert python_peak + peak < 40 * 2**20


@pytest.fixture
def wide_stream() -> Iterator[str]:
    """A server that sends 200 MB of rows."""
    batch = pa.record_batch({"text": ["x" * 1000] * 1000})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    data = sink.getvalue().to_pybytes()
    head, end = len(batch.schema.serialize()), len(data) - 8

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("content-type", "application/vnd.apache.arrow.stream")
        handler.end_headers()
        handler.wfile.write(data[:head])
        for _ in range(200):
            handler.wfile.write(data[head:end])
        handler.wfile.write(data[end:])

    with stranger(answer) as other:
        yield other.base_url


def test_nobody_there_is_told_with_what_to_do() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with (
        LakehouseClient(f"http://127.0.0.1:{port}", retries=QUICK) as client,
        pytest.raises(ServerUnavailableError, match="Nothing was done: check base_url"),
    ):
        client.names()


def test_a_server_that_says_nothing_is_waited_for_no_longer_than_wanted() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with (
            LakehouseClient(url, timeouts=Timeouts(answer=0.1), retries=ONCE) as client,
            pytest.raises(ServerUnavailableError, match="no answer in time"),
        ):
            client.names()


def test_what_the_server_is_told_of_the_program() -> None:
    with stranger(page(200, b'{"tables": []}', "application/json")) as other:
        with LakehouseClient(other.base_url, token="lhk_a_b", user_agent="report/1.0") as client:
            client.names()
        with LakehouseClient(other.base_url) as client:
            client.names()
    named, unnamed = (headers for _, _, headers in other.asked)
    assert named["user-agent"] == "report/1.0"
    assert named["authorization"] == "Bearer lhk_a_b"
    assert unnamed["user-agent"].startswith("lakehouse-client/")
    assert "authorization" not in unnamed


def test_proxies_of_the_environment_get_nothing_in_clear(monkeypatch: pytest.MonkeyPatch) -> None:
    tables = page(200, b'{"tables": []}', "application/json")
    with stranger(tables) as proxy, stranger(tables) as other:
        for variable in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(variable, proxy.base_url)
        with LakehouseClient(other.base_url, token="hush") as client:
            client.names()
        assert proxy.asked == []
        assert len(other.asked) == 1


def test_no_text_of_a_client_shows_a_secret() -> None:
    client = LakehouseClient("http://localhost:1", token="hush")
    assert repr(client) == "LakehouseClient('http://localhost:1')"
    assert "hush" not in str(vars(client))


def quiet(answer: Callable[[BaseHTTPRequestHandler], None]) -> Callable[[BaseHTTPRequestHandler], None]:
    """Return an answer whose client may go away before its end."""

    def write(handler: BaseHTTPRequestHandler) -> None:
        try:
            answer(handler)
        except OSError:
            handler.close_connection = True

    return write


def test_what_cannot_be_sent_is_an_error_of_ours() -> None:
    client = LakehouseClient("http://localhost:1", token="abc")
    attempts: list[Callable[[], object]] = [
        lambda: client.sql("SELECT '\ud800'"),
        lambda: client.scan("rides", None, "name = '\ud800'"),
        lambda: client.scan("rides", None, "id = 1 OR " * 10_000),
        lambda: client.sql("SELECT 1", timeout=float("nan")),
    ]
    for attempt in attempts:
        with pytest.raises(InvalidArgumentError):
            attempt()
    deep: object = 1
    for _ in range(5_000):
        deep = [deep]
    for value in (10**5_000, deep):
        with pytest.raises(InvalidRowsError, match=r"Row 2 cannot be sent|nested too deeply"):
            client.append("rides", [{"id": 1}, {"id": value}])
    client.close()
    with pytest.raises(InvalidArgumentError, match="closed"):
        client.names()


def test_arguments_that_are_not_allowed_are_the_errors_of_the_store(
    live: LiveHttp, root: LakehouseClient
) -> None:
    root.create("rides", Schema.parse("id:Int64,`a\nb`:String"))
    root.append("rides", pa.table({"id": [1], "a\nb": ["x"]}))
    assert root.scan("rides", ["a\nb"], rows=True) == [{"a\nb": "x"}]
    store = live.lakehouse.store
    attempts: list[Callable[[Any], object]] = [
        lambda lake: lake.read_version("rides", -1),
        lambda lake: lake.read_version("rides", 2**70),
        lambda lake: lake.diff("rides", -1, 0),
        lambda lake: lake.restore("rides", -1),
        lambda lake: lake.scan("rides", limit=-1),
        lambda lake: lake.scan("rides", ["c\r"]),
        lambda lake: lake.create("_delta_log", Schema.parse("id:Int64")),
        lambda lake: lake.create("nul", pa.schema([("a\0b", pa.int64())])),
    ]
    for attempt in attempts:
        with pytest.raises(LakehouseError) as theirs:
            attempt(store)
        with pytest.raises(type(theirs.value)) as ours:
            attempt(root)
        assert ours.value.message == theirs.value.message


def test_an_argument_that_the_server_does_not_take_is_told_with_its_reason(root: LakehouseClient) -> None:
    with pytest.raises(
        InvalidArgumentError, match=r"query.limit: Input should be greater than or equal to 1"
    ):
        root.history("rides", 0)
