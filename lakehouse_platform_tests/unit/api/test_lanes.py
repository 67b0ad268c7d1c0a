"""Work of one kind waits for its own kind alone."""

from __future__ import annotations

import asyncio
import threading

import pytest
from fastapi import HTTPException

from lakehouse_platform.api.lanes import Lane


def test_a_full_lane_holds_up_no_other_one() -> None:
    go_on = threading.Event()

    async def main() -> str:
        slow, quick = Lane(1, 10), Lane(1, 10)
        waiting = [asyncio.ensure_future(slow.run(go_on.wait, 30)) for _ in range(3)]
        done = await asyncio.wait_for(quick.run(lambda: "done"), 10)
        go_on.set()
        assert await asyncio.gather(*waiting) == [True] * 3
        return done

    assert asyncio.run(main()) == "done"


def test_who_would_only_wait_is_refused_at_once() -> None:
    go_on = threading.Event()

    async def main() -> None:
        lane = Lane(1, 1)
        running = [asyncio.ensure_future(lane.run(go_on.wait, 30)) for _ in range(2)]
        # One step of the loop for each until the one runs and the other waits.
        for _ in range(5):
            await asyncio.sleep(0)
        with pytest.raises(HTTPException) as refused:
            await lane.run(lambda: None)
        assert refused.value.status_code == 503
        go_on.set()
        await asyncio.gather(*running)

    asyncio.run(main())


def test_arguments_and_errors_pass_through() -> None:
    async def main() -> None:
        lane = Lane(1, 1)
        assert await lane.run(divmod, 7, 2) == (3, 1)
        with pytest.raises(ZeroDivisionError):
            await lane.run(divmod, 7, 0)

    asyncio.run(main())
