"""Turns: nobody has more than their share, and everybody gets one."""

from __future__ import annotations

import asyncio
from collections import Counter

from lakehouse_platform.nfs.turns import Turns


def test_no_user_has_more_turns_than_a_few_and_all_together_no_more_than_there_are() -> None:
    turns, now, most = Turns(4, 2), Counter[str](), Counter[str]()

    async def act(user: str) -> None:
        async with turns.turn(user):
            now[user] += 1
            most[user] = max(most[user], now[user])
            most["all"] = max(most["all"], now.total())
            for _ in range(3):
                await asyncio.sleep(0)
            now[user] -= 1

    async def whole() -> None:
        await asyncio.gather(*(act(user) for user in ["a"] * 9 + ["b"] * 9 + ["c"] * 9))

    asyncio.run(whole())
    assert most == {"a": 2, "b": 2, "c": 2, "all": 4}


def test_who_has_many_waiting_keeps_nobody_else_waiting() -> None:
    turns = Turns(3, 2)

    async def whole() -> None:
        end = asyncio.Event()

        async def long() -> None:
            async with turns.turn("a"):
                await end.wait()

        many = [asyncio.ensure_future(long()) for _ in range(20)]
        await asyncio.sleep(0)
        async with turns.turn("b"):
            end.set()
        await asyncio.gather(*many)

    asyncio.run(whole())


def test_a_turn_ends_with_an_error_too() -> None:
    turns = Turns(1, 1)

    async def fail() -> None:
        async with turns.turn("a"):
            raise ValueError

    async def whole() -> None:
        errors = await asyncio.gather(*(fail() for _ in range(5)), return_exceptions=True)
        assert {type(error) for error in errors} == {ValueError}

    asyncio.run(whole())
