import asyncio
import gzip
import os
import random
import tempfile
import time
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest
from fastapi import Request
from starlette.exceptions import HTTPException
from starlette.types import Message

from lakehouse_platform.api.bodies import Limits, sent_rows
from lakehouse_platform.api.lanes import Lane
from lakehouse_platform.services.sent_rows import SentForm, SentRows

MB = 2**20
LIMITS = Limits(most_bytes=32 * MB, most_json_bytes=MB)
NDJSON = {"content-type": "application/x-ndjson"}
GZIP = {**NDJSON, "content-encoding": "gzip"}
LINE = b'{"id": 1}\n'


@pytest.fixture(autouse=True)
def own_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let files of bodies be made where the test can count them."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def request(parts: Iterable[bytes], headers: Mapping[str, str], *, is_whole: bool = True) -> Request:
    """Return a request whose body comes in parts; one that is not whole ends with the client's going away."""
    messages: list[Message] = [{"type": "http.request", "body": part, "more_body": True} for part in parts]
    end: Message = (
        {"type": "http.request", "body": b"", "more_body": False} if is_whole else {"type": "http.disconnect"}
    )
    waiting = iter([*messages, end])

    async def receive() -> Message:
        return next(waiting)

    pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
    return Request({"type": "http", "method": "POST", "headers": pairs}, receive)


def receive(
    parts: Iterable[bytes], headers: Mapping[str, str], limits: Limits = LIMITS, *, is_whole: bool = True
) -> tuple[SentRows, bytes]:
    """Return what was received, and its bytes."""

    async def run() -> tuple[SentRows, bytes]:
        async with sent_rows(request(parts, headers, is_whole=is_whole), limits, Lane(2, 10)) as rows:
            content = rows.held if isinstance(rows.held, bytes) else rows.held.read_bytes()
            return rows, content

    return asyncio.run(run())


def refusal(parts: Iterable[bytes], headers: Mapping[str, str], *, is_whole: bool = True) -> tuple[int, str]:
    with pytest.raises(HTTPException) as refused:
        receive(parts, headers, is_whole=is_whole)
    detail: object = refused.value.detail
    assert isinstance(detail, dict)
    return refused.value.status_code, detail["detail"]


def test_a_small_body_stays_in_memory() -> None:
    rows, content = receive([LINE, LINE], NDJSON)
    assert content == LINE * 2
    assert rows == SentRows(SentForm.NDJSON, LINE * 2, 20, 32 * MB, MB)


def test_a_large_body_goes_to_a_private_file_that_is_gone_afterwards(own_directory: Path) -> None:
    parts = [random.Random(number).randbytes(65_536) for number in range(100)]

    async def run() -> None:
        async with sent_rows(request(parts, NDJSON), LIMITS, Lane(2, 10)) as rows:
            assert isinstance(rows.held, Path)
            assert rows.held.stat().st_mode & 0o777 == 0o600
            assert rows.held.parent == own_directory
            assert rows.held.read_bytes() == b"".join(parts)
            assert rows.size == 100 * 65_536

    asyncio.run(run())
    assert list(own_directory.iterdir()) == []


@pytest.mark.parametrize("packing", ["gzip", "x-gzip", "GZIP"])
def test_a_packed_body_is_unpacked(packing: str) -> None:
    content = LINE * 500_000
    packed = gzip.compress(content)
    parts = [packed[start : start + 1000] for start in range(0, len(packed), 1000)]
    rows, found = receive(parts, {**NDJSON, "content-encoding": packing})
    assert found == content
    assert rows.size == len(content)


def test_members_of_gzip_may_follow_each_other() -> None:
    members = [gzip.compress(LINE * number) for number in range(50)]
    assert receive([b"".join(members)], GZIP)[1] == LINE * sum(range(50))
    assert receive(members, GZIP)[1] == LINE * sum(range(50))


def test_a_bomb_is_refused_before_it_takes_place(own_directory: Path) -> None:
    bomb = zlib.compressobj(9, wbits=31)
    parts = [bomb.compress(bytes(40 * MB)) + bomb.flush()]
    assert sum(map(len, parts)) < MB
    status, detail = refusal(parts, GZIP)
    assert status == 413
    assert "when it is unpacked" in detail
    assert list(own_directory.iterdir()) == []


def test_very_many_empty_members_are_refused_in_little_time() -> None:
    began = time.process_time()
    status, detail = refusal([gzip.compress(b"", mtime=0) * 150_000], GZIP)
    assert (status, "too many members" in detail) == (400, True)
    assert time.process_time() - began < 10


def test_a_body_that_says_that_it_is_too_large_is_refused_before_it_is_read() -> None:
    status, _ = refusal([], {**NDJSON, "content-length": str(32 * MB + 1)})
    assert status == 413


def test_a_body_that_is_too_large_without_saying_so_is_refused(own_directory: Path) -> None:
    status, _ = refusal([bytes(MB)] * 33, NDJSON)
    assert status == 413
    assert list(own_directory.iterdir()) == []


@pytest.mark.parametrize(
    "content",
    [b"", b"no gzip", gzip.compress(LINE)[:-1], gzip.compress(LINE) + b"x"],
    ids=["nothing", "text", "cut", "longer"],
)
def test_gzip_that_is_not_sound_or_not_whole_is_refused(content: bytes) -> None:
    assert refusal([content], GZIP)[0] == 400


def test_a_changed_checksum_is_noticed() -> None:
    packed = bytearray(gzip.compress(LINE))
    packed[-6] ^= 1
    assert refusal([bytes(packed)], GZIP)[0] == 400


@pytest.mark.parametrize("coding", ["br", "zstd", "deflate", "gzip, gzip", "identity, gzip", ""])
def test_other_codings_are_refused(coding: str) -> None:
    if coding:
        assert refusal([LINE], {**NDJSON, "content-encoding": coding})[0] == 415
    else:
        assert receive([LINE], {**NDJSON, "content-encoding": coding})[1] == LINE


@pytest.mark.parametrize("headers", [{}, {"content-type": "text/plain"}])
def test_a_body_of_another_form_is_refused(headers: Mapping[str, str]) -> None:
    assert refusal([LINE], headers)[0] == 415


def test_a_body_whose_client_goes_away_is_no_body(own_directory: Path) -> None:
    status, detail = refusal([os.urandom(MB)] * 6, NDJSON, is_whole=False)
    assert (status, detail) == (400, "The body ended before it was whole.")
    assert list(own_directory.iterdir()) == []


def test_a_header_that_stands_there_twice_is_refused() -> None:
    twice = request([LINE], NDJSON)
    twice.scope["headers"].append((b"content-type", b"text/csv"))

    async def run() -> None:
        async with sent_rows(twice, LIMITS, Lane(2, 10)):
            raise AssertionError("was taken")

    with pytest.raises(HTTPException, match="400"):
        asyncio.run(run())
