import gc
import io
import json
import socket
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import httpx
import pyarrow as pa
import pytest
import uvicorn
from starlette.types import Receive, Scope, Send

from lakehouse_platform.api.answers import HeadOfRows, Pieces, RowsAnswer
from lakehouse_platform.api.formats import RowForm
from lakehouse_platform.api.lanes import Lane
from lakehouse_platform.errors import QueryLimitError, StorageIoError

SCHEMA = pa.schema([("id", pa.int64()), ("text", pa.string())])
BATCH_ROWS = 10_000


def batch(number: int = 0, rows: int = BATCH_ROWS) -> pa.RecordBatch:
    ids = pa.array(range(number * rows, (number + 1) * rows), pa.int64())
    return pa.record_batch([ids, pa.array(["x" * 100] * rows)], schema=SCHEMA)


@dataclass
class Source:
    """Rows that tell how far they were read, and whether they were closed."""

    batches: Callable[[], Iterator[pa.RecordBatch]]
    schema: pa.Schema = SCHEMA
    taken: int = 0
    closed: threading.Event = field(default_factory=threading.Event)

    def reader(self) -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(self.schema, self._counted())

    def _counted(self) -> Iterator[pa.RecordBatch]:
        try:
            for one in self.batches():
                self.taken += 1
                yield one
        finally:
            self.closed.set()


def many(count: int) -> Source:
    return Source(lambda: (batch(number) for number in range(count)))


def failing(after: int) -> Source:
    def batches() -> Iterator[pa.RecordBatch]:
        for number in range(after):
            yield batch(number)
        raise StorageIoError("The disk is gone.")

    return Source(batches)


@contextmanager
def served(source: Source, form: RowForm, **more: object) -> Generator[tuple[str, int]]:
    """Answer every request with the rows; yield where."""
    lane = Lane(4, 100)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        scope.setdefault("state", {})["request_id"] = "r"
        pieces = await lane.run(lambda: Pieces(source, form))
        await RowsAnswer(pieces, form, lane, **more)(scope, receive, send)  # type: ignore[arg-type]

    config = uvicorn.Config(app, http="h11", lifespan="off", log_config=None, port=0)
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield listener.getsockname()
        finally:
            server.should_exit = True
            thread.join(30)
            assert not thread.is_alive()


def raw_get(address: tuple[str, int], receive_buffer: int | None = None) -> socket.socket:
    """Ask without reading the answer."""
    client = socket.socket()
    if receive_buffer is not None:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    client.connect(address)
    client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    return client


def settled(read: Callable[[], int]) -> int:
    """Return a number once it has not changed for a while."""
    last, since = read(), time.monotonic()
    while time.monotonic() - since < 0.5:
        threading.Event().wait(0.02)
        if (now := read()) != last:
            last, since = now, time.monotonic()
    return last


@pytest.mark.parametrize("form", RowForm)
def test_all_rows_arrive_with_the_headers_of_their_form(form: RowForm) -> None:
    with served(many(7), form, headers={"X-More": "1"}) as (host, port):
        answer = httpx.get(f"http://{host}:{port}/")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == form.content_type
    assert answer.headers["vary"] == "accept"
    assert answer.headers["x-more"] == "1"
    assert answer.headers["transfer-encoding"] == "chunked"
    rows = 7 * BATCH_ROWS
    if form is RowForm.ARROW:
        assert pa.ipc.open_stream(io.BytesIO(answer.content)).read_all().num_rows == rows
    elif form is RowForm.JSON:
        assert [row["id"] for row in json.loads(answer.content)] == list(range(rows))
    else:
        assert answer.content.count(b"\n") == rows + (form is RowForm.CSV)


@pytest.mark.parametrize("form", RowForm)
def test_a_failure_in_the_middle_breaks_the_body_off(form: RowForm) -> None:
    source = failing(after=20)
    with (
        served(source, form) as (host, port),
        pytest.raises(httpx.RemoteProtocolError, match="incomplete chunked read"),
    ):
        httpx.get(f"http://{host}:{port}/")
    assert source.closed.wait(10)


def test_a_failure_before_the_first_piece_is_raised_before_anything_is_answered() -> None:
    with pytest.raises(StorageIoError, match="The disk is gone"):
        Pieces(failing(after=0), RowForm.JSON)


def test_a_client_that_does_not_read_holds_little_and_gets_everything_later() -> None:
    source = many(400)
    with served(source, RowForm.ARROW) as address, raw_get(address, 65_536) as client:
        taken = settled(lambda: source.taken)
        # The socket's buffers take some MB, and two pieces of one MB wait; there are 400.
        assert 2 <= taken <= 30
        received = 0
        while not (part := client.recv(2**20)).endswith(b"0\r\n\r\n"):
            received += len(part)
        assert source.taken == 400
        assert received > 400 * BATCH_ROWS * 100


def test_a_client_that_is_gone_ends_the_reading_at_once() -> None:
    source = many(10_000)
    with served(source, RowForm.ARROW) as address:
        with raw_get(address, 65_536) as client:
            client.recv(1000)
        assert source.closed.wait(10)
        assert source.taken < 100


def test_a_client_that_is_gone_ends_a_reading_that_finds_no_rows() -> None:
    begun = threading.Event()

    def batches() -> Iterator[pa.RecordBatch]:
        yield batch()
        yield batch(1)
        while True:
            begun.set()
            yield batch(rows=0)

    source = Source(batches)
    with served(source, RowForm.ARROW) as address:
        with raw_get(address):
            assert begun.wait(10)
        assert source.closed.wait(10)


def test_closing_pieces_closes_the_source_without_a_garbage_collection() -> None:
    gc.disable()
    try:
        source = many(100)
        pieces = Pieces(source, RowForm.CSV)
        pieces.close()
        assert source.closed.is_set()
        assert pieces.next() is None
    finally:
        gc.enable()


def test_more_rows_than_an_answer_may_hold_are_a_failure() -> None:
    pieces = Pieces(many(10), RowForm.ARROW, most_rows=2 * BATCH_ROWS)
    with pytest.raises(QueryLimitError, match="may hold 20000 rows") as refusal:
        list(iter(pieces.next, None))
    assert refusal.value.details == {"max_rows": 20_000}
    Pieces(many(2), RowForm.ARROW, most_rows=2 * BATCH_ROWS).close()


def test_the_head_of_rows_has_their_headers_and_no_length() -> None:
    head = HeadOfRows(RowForm.CSV, headers={"X-Lakehouse-Version": "3"})
    assert head.headers["content-type"] == RowForm.CSV.content_type
    assert head.headers["x-lakehouse-version"] == "3"
    assert "content-length" not in head.headers
