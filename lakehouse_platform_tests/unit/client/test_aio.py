"""The asynchronous client against a live server; what both clients share is tested with the synchronous one."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import pyarrow as pa
import pytest

from lakehouse_platform.client.aio import AsyncLakehouseClient
from lakehouse_platform.client.records import Tokens
from lakehouse_platform.client.sync import LakehouseClient
from lakehouse_platform.errors import (
    CommitOutcomeUnknownError,
    InvalidCredentialsError,
    ServerUnavailableError,
    UnexpectedAnswerError,
)
from lakehouse_platform.model.actors import Role
from lakehouse_platform_tests.support.cutting_wire import CuttingWire
from lakehouse_platform_tests.support.http_server import LiveHttp
from lakehouse_platform_tests.support.people import PASSWORD
from lakehouse_platform_tests.support.strangers import page, stranger
from lakehouse_platform_tests.unit.client.conftest import QUICK
from lakehouse_platform_tests.unit.client.parity import operations
from lakehouse_platform_tests.unit.client.test_sync import RIDES, done, kept, many, row_ids

T = TypeVar("T")


def with_client(live_url: str, use: Callable[[AsyncLakehouseClient], Awaitable[T]], **more: Any) -> T:
    async def run() -> T:
        async with AsyncLakehouseClient(live_url, retries=QUICK, **more) as client:
            return await use(client)

    return asyncio.run(run())


def test_both_clients_have_the_same_operations() -> None:
    assert set(operations(LakehouseClient)) == set(operations(AsyncLakehouseClient))
    assert inspect.signature(LakehouseClient) == inspect.signature(AsyncLakehouseClient)


def test_a_sign_in_from_login_to_logout(live: LiveHttp) -> None:
    ada = live.person("ada")
    told: list[Tokens | None] = []

    async def use(client: AsyncLakehouseClient) -> None:
        with pytest.raises(InvalidCredentialsError):
            await client.login("ada", "not this one, surely")
        tokens = await client.login("ada", PASSWORD)
        assert (await client.verify()).sub == ada.user_id
        renewed = await client.refresh()
        await client.logout()
        assert told == [tokens, renewed, None]
        assert client.tokens is None

    with_client(live.base_url, use, on_tokens=told.append)


def test_many_tasks_renew_a_sign_in_once(live: LiveHttp) -> None:
    past = datetime.now(UTC) - timedelta(seconds=1)
    told: list[Tokens | None] = []

    async def use(client: AsyncLakehouseClient) -> None:
        users = await asyncio.gather(*(client.user() for _ in range(8)))
        assert {user.username for user in users} == {"ada"}

    with_client(live.base_url, use, tokens=kept(live.person("ada"), past), on_tokens=told.append)
    assert len(told) == 1
    assert done(live, "token_refresh") == ["done"]


def test_a_renewal_goes_on_when_its_caller_is_cancelled(live: LiveHttp) -> None:
    past = datetime.now(UTC) - timedelta(seconds=1)

    async def use(client: AsyncLakehouseClient) -> None:
        asked = asyncio.create_task(client.user())
        # One turn of the loop: the renewal has begun, and its answer cannot have come.
        await asyncio.sleep(0)
        assert client._tasks
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        assert (await client.user()).username == "ada"
        assert client.tokens is not None
        assert client.tokens.refresh_token is not None

    with_client(live.base_url, use, tokens=kept(live.person("ada"), past))
    assert done(live, "token_refresh") == ["done"]


def as_root(live: LiveHttp, url: str, use: Callable[[AsyncLakehouseClient], Coroutine[Any, Any, T]]) -> T:
    return with_client(url, use, token=live.person("root", Role.SUPERADMIN).tokens.access_token)


def test_an_append_whose_answer_is_lost_lands_once(live: LiveHttp, wire: CuttingWire) -> None:
    async def use(client: AsyncLakehouseClient) -> None:
        await client.create("rides", RIDES)
        wire.cut(0)
        assert (await client.append("rides", pa.table({"id": [1]}))).repeated
        wire.cut(0)
        with pytest.raises(CommitOutcomeUnknownError):
            await client.append("rides", pa.table({"id": [2]}).to_reader())

    as_root(live, wire.base_url, use)
    assert row_ids(live) == [1, 2]


def test_a_stream_hands_rows_out_as_they_come(live: LiveHttp) -> None:
    many(live)

    async def use(client: AsyncLakehouseClient) -> int:
        async with await client.stream("rides", ["id"]) as batches:
            assert batches.schema.names == ["id"]
            return sum([batch.num_rows async for batch in batches])

    assert as_root(live, live.base_url, use) == 300_000


def test_a_stream_that_is_given_up_gives_its_connection_back(live: LiveHttp) -> None:
    many(live)

    async def use(client: AsyncLakehouseClient) -> int | None:
        async with await client.stream("rides") as batches:
            async for _ in batches:
                break
        return (await client.describe("rides")).rows

    assert as_root(live, live.base_url, use) == 300_000


@pytest.mark.parametrize("after", [0, 1000, 400_000, 2_000_000])
def test_a_stream_that_breaks_off_raises(live: LiveHttp, wire: CuttingWire, after: int) -> None:
    many(live)

    async def use(client: AsyncLakehouseClient) -> None:
        wire.cut(*[after] * QUICK.attempts)
        with pytest.raises(ServerUnavailableError):
            [batch async for batch in await client.stream("rides")]

    as_root(live, wire.base_url, use)


def test_a_reader_that_fails_leaves_the_table_as_it_was(live: LiveHttp) -> None:
    def batches() -> Any:
        yield pa.record_batch({"id": [1]})
        raise ValueError("the disk is gone")

    async def use(client: AsyncLakehouseClient) -> None:
        await client.create("rides", RIDES)
        reader = pa.RecordBatchReader.from_batches(pa.schema([("id", pa.int64())]), batches())
        with pytest.raises(ValueError, match="the disk is gone"):
            await client.append("rides", reader)

    as_root(live, live.base_url, use)
    assert row_ids(live) == []


def test_a_page_in_place_of_an_answer_is_told_as_such() -> None:
    async def use(client: AsyncLakehouseClient) -> None:
        for ask in (client.names, lambda: client.scan("rides"), lambda: client.stream("rides")):
            with pytest.raises(UnexpectedAnswerError, match="status 502, text/html"):
                await ask()

    with stranger(page(502, b"<html>")) as other:
        with_client(other.base_url, use)


def test_no_text_of_a_client_shows_a_secret() -> None:
    client = AsyncLakehouseClient("http://localhost:1", token="hush")
    assert repr(client) == "AsyncLakehouseClient('http://localhost:1')"
    assert "hush" not in str(vars(client))
