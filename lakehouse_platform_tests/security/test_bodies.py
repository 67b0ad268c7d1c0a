"""Bodies that are larger, slower or emptier than they say, and rows that are made to break their reader."""

from __future__ import annotations

import gzip
import io
import resource
import struct
import zlib
from collections.abc import Iterator

import pyarrow as pa
import pytest

from lakehouse_platform.model.actors import Role
from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform_tests.security.conftest import Fort, furnished
from lakehouse_platform_tests.support.http_server import LiveHttp, http_server
from lakehouse_platform_tests.support.raw_http import head, raw_connection

_MB = 2**20
ROWS = "/v1/tables/target/rows"


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fort]:
    """A server that takes little: 2 MB of rows, 1 MB of them as one JSON array, and has 2 s for each request."""
    place = tmp_path_factory.mktemp("narrow")
    config = LakehouseConfig(base_path=str(place / "lake"), state_path=str(place / "state"), durability="os")
    changes = {"api_max_body_mb": 2, "api_max_json_mb": 1, "api_request_timeout_seconds": 2}
    with http_server(config, changes) as live:
        yield furnished(live)


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _bomb(megabytes: int, *, layers: int = 1) -> bytes:
    packed = gzip.compress(b"0" * _MB * megabytes, 9)
    for _ in range(layers - 1):
        packed = gzip.compress(packed, 9)
    return packed


@pytest.mark.parametrize(
    "kind", ["application/json", "application/x-ndjson", "text/csv", "application/vnd.apache.arrow.stream"]
)
@pytest.mark.parametrize("layers", [1, 2])
def test_a_gzip_bomb_is_refused_and_takes_no_memory(narrow: Fort, kind: str, layers: int) -> None:
    boss, before, bomb = narrow.people[Role.SUPERADMIN], narrow.state(), _bomb(300, layers=layers)
    peak = _peak_mb()
    headers = {"content-type": kind, "content-encoding": "gzip"}
    answer = narrow.live.post(ROWS, boss, content=bomb, headers=headers)
    assert answer.status_code in {400, 413, 422}, answer.text
    assert _peak_mb() - peak < 64
    assert narrow.state() == before


@pytest.mark.parametrize("coding", ["gzip, gzip", "br", "deflate", "zstd", "gzip\t,identity", "compress"])
def test_codings_that_could_hide_a_bomb_are_not_taken(narrow: Fort, coding: str) -> None:
    boss = narrow.people[Role.SUPERADMIN]
    headers = {"content-type": "application/json", "content-encoding": coding}
    answer = narrow.live.post(ROWS, boss, content=zlib.compress(b"[]"), headers=headers)
    assert answer.status_code == 415


@pytest.mark.parametrize(
    "path", ["/v1/auth/login", "/v1/auth/register", "/v1/auth/refresh", "/v1/sql", "/v1/tables", ROWS]
)
def test_an_oversized_body_is_refused_on_every_kind_of_route(narrow: Fort, path: str) -> None:
    boss = narrow.people[Role.SUPERADMIN]
    body = b'{"login": "' + b"a" * 4 * _MB + b'"}'
    answer = narrow.live.post(path, boss, content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 413
    assert answer.json()["code"] == "body_too_large"


@pytest.mark.parametrize("path", ["/v1/auth/login", ROWS])
def test_a_body_that_drips_is_given_up(narrow: Fort, path: str) -> None:
    token = narrow.people[Role.SUPERADMIN].headers["Authorization"]
    with raw_connection(narrow.live.base_url) as wire:
        sent = head("POST", path, Authorization=token, Content_Type="application/json", Content_Length="1000")
        wire.send(sent, b"[")
        assert wire.answer("POST").status == 408


def test_slow_bodies_of_many_do_not_keep_others_out(narrow: Fort) -> None:
    from contextlib import ExitStack

    with ExitStack() as opened:
        for _ in range(100):
            wire = opened.enter_context(raw_connection(narrow.live.base_url))
            wire.send(
                head("POST", "/v1/auth/login", Content_Type="application/json", Content_Length="50"), b"{"
            )
        assert narrow.live.get("/v1/me", narrow.people[Role.USER]).status_code == 200


@pytest.mark.parametrize(
    "lengths",
    [
        b"Content-Length: 5\r\nContent-Length: 50\r\n",
        b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: chunked\r\nContent-Length: 50\r\n",
        b"Content-Length: -5\r\n",
        b"Content-Length: +5\r\n",
        b"Content-Length: 5, 50\r\n",
        b"Content-Length: 0x5\r\n",
        b"Content-Length: 99999999999999999999999\r\n",
        b"Transfer-Encoding: xchunked\r\n",
        b"Transfer-Encoding: identity, chunked\r\n",
        b"Transfer-Encoding : chunked\r\n",
        b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
    ],
)
def test_a_body_of_two_lengths_hides_no_second_request(narrow: Fort, lengths: bytes) -> None:
    first = b"POST /v1/auth/refresh HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\n"
    hidden = b"GET /healthz HTTP/1.1\r\nHost: test\r\n\r\n"
    with raw_connection(narrow.live.base_url) as wire:
        wire.send(first + lengths + b"\r\n0\r\n\r\n" + hidden)
        answer = wire.answer("POST")
        assert 400 <= answer.status < 500
        # Whatever follows was never taken for a request of its own.
        assert wire.is_closed()


def _stream(batch: pa.RecordBatch, **options: object) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, batch.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


def _arrow_attacks() -> dict[str, bytes]:
    names = pa.array(["a", "bb", "ccc"] * 100)
    batch = pa.record_batch({"id": pa.array(range(300), pa.int64()), "name": names})
    sound = _stream(batch)
    offsets = struct.pack("<4i", 0, 1, 3, 6)
    place = sound.index(offsets)

    def changed(at: int, by: bytes) -> bytes:
        return sound[:at] + by + sound[at + len(by) :]

    starts = pa.py_buffer(struct.pack("<301i", *range(301)))
    broken = pa.Array.from_buffers(pa.string(), 300, [None, starts, pa.py_buffer(b"\xff" * 300)])
    nothing = pa.record_batch({"id": pa.nulls(300)})
    return {
        "offsets beyond the buffer": changed(place + 4, struct.pack("<i", 2**31 - 1)),
        "offsets that fall": changed(place + 4, struct.pack("<2i", 6, 1)),
        "negative offsets": changed(place, struct.pack("<i", -(2**31))),
        "cut off": sound[: len(sound) // 2],
        "a message of a gigabyte": sound[:4] + struct.pack("<i", 2**30) + sound[8:],
        "compressed": _stream(batch, compression="zstd"),
        "two streams": sound + sound,
        "not UTF-8": _stream(pa.record_batch({"id": batch["id"], "name": broken})),
        "rows without a byte": _stream(nothing),
    }  # fmt: skip


@pytest.mark.parametrize("attack", list(_arrow_attacks()))
def test_arrow_that_was_tampered_with_is_refused_and_breaks_nothing(narrow: Fort, attack: str) -> None:
    boss, store = narrow.people[Role.SUPERADMIN], narrow.live.lakehouse.store
    version = store.table("target").version()
    headers = {"content-type": "application/vnd.apache.arrow.stream"}
    answer = narrow.live.post(ROWS, boss, content=_arrow_attacks()[attack], headers=headers)
    assert 400 <= answer.status_code < 500, answer.text
    assert store.table("target").version() == version


def test_arrow_with_any_byte_changed_is_taken_whole_or_refused(narrow: Fort) -> None:
    import random

    boss = narrow.people[Role.SUPERADMIN]
    sound, chance = _stream(pa.record_batch({"id": pa.array([7, 7], pa.int64())})), random.Random(1)
    headers = {"content-type": "application/vnd.apache.arrow.stream"}
    for _ in range(150):
        at = chance.randrange(len(sound))
        changed = sound[:at] + bytes([chance.randrange(256)]) + sound[at + 1 :]
        # Merging on a key that stands there twice is refused, so that nothing is ever written.
        answer = narrow.live.post("/v1/tables/untouched/merge?on=id", boss, content=changed, headers=headers)
        assert answer.status_code < 500, (at, answer.text)


def test_the_rows_that_these_attacks_start_from_are_taken(live_rows: LiveHttp) -> None:
    boss = live_rows.person("the-writer", Role.SUPERADMIN)
    live_rows.lakehouse.store.create("target", pa.schema([("id", pa.int64()), ("name", pa.string())]))
    batch = pa.record_batch({"id": pa.array([1], pa.int64()), "name": pa.array(["a"])})
    headers = {"content-type": "application/vnd.apache.arrow.stream"}
    assert live_rows.post(ROWS, boss, content=_stream(batch), headers=headers).status_code == 201


@pytest.fixture
def live_rows(config: LakehouseConfig) -> Iterator[LiveHttp]:
    with http_server(config) as live:
        yield live
