"""Blocks of remote files: right bytes, few fetches, bounded memory."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse_platform.errors import StorageUnavailableError
from lakehouse_platform.nfs.tree.blocks import BLOCK_BYTES, Blocks

DATA = bytes(range(251)) * (5 * BLOCK_BYTES // 251)
SIZE = len(DATA)


class Store:
    """Hands out ranges and notes which."""

    def __init__(self) -> None:
        self.fetched: list[tuple[int, int]] = []

    def fetch(self, offset: int, count: int) -> bytes:
        self.fetched.append((offset, count))
        return DATA[offset : offset + count]


@given(st.lists(st.tuples(st.integers(0, SIZE), st.integers(0, 3 * BLOCK_BYTES)), max_size=12))
def test_any_ranges_in_any_order_are_the_files_bytes(ranges: list[tuple[int, int]]) -> None:
    blocks, store = Blocks(2 * BLOCK_BYTES), Store()
    for start, count in ranges:
        stop = min(SIZE, start + count)
        assert b"".join(blocks.read("f", SIZE, start, stop, store.fetch)) == DATA[start:stop]
        assert blocks.used_bytes <= 2 * BLOCK_BYTES


def test_small_reads_share_a_fetch() -> None:
    blocks, store = Blocks(1 << 30), Store()
    for start in range(0, SIZE, 65_536):
        blocks.read("f", SIZE, start, min(SIZE, start + 65_536), store.fetch)
    assert len(store.fetched) == -(-SIZE // BLOCK_BYTES)
    assert sum(count for _, count in store.fetched) == SIZE


def test_the_blocks_used_last_are_kept() -> None:
    blocks, store = Blocks(2 * BLOCK_BYTES), Store()
    for number in (0, 1, 0, 2, 0):
        blocks.read("f", SIZE, number * BLOCK_BYTES, (number + 1) * BLOCK_BYTES, store.fetch)
    assert [offset // BLOCK_BYTES for offset, _ in store.fetched] == [0, 1, 2]


def test_two_files_do_not_share_blocks() -> None:
    blocks = Blocks(1 << 30)
    assert b"".join(blocks.read("a", 3, 0, 3, lambda _, count: b"a" * count)) == b"aaa"
    assert b"".join(blocks.read("b", 3, 0, 3, lambda _, count: b"b" * count)) == b"bbb"


def test_readers_of_one_block_at_once_cause_one_fetch() -> None:
    blocks, store, entered, go = Blocks(1 << 30), Store(), threading.Event(), threading.Event()

    def slow(offset: int, count: int) -> bytes:
        entered.set()
        assert go.wait(30)
        return store.fetch(offset, count)

    with ThreadPoolExecutor(8) as pool:
        first = pool.submit(blocks.read, "f", SIZE, 0, 10, slow)
        assert entered.wait(30)
        others = [pool.submit(blocks.read, "f", SIZE, at, at + 10, slow) for at in range(0, 70, 10)]
        go.set()
        assert b"".join(first.result(30)) == DATA[:10]
        assert b"".join(part for other in others for part in other.result(30)) == DATA[:70]
    assert len(store.fetched) == 1


def test_a_failed_fetch_is_told_and_tried_again() -> None:
    blocks, store = Blocks(1 << 30), Store()

    def failing(offset: int, count: int) -> bytes:
        raise StorageUnavailableError(f"away at {offset}+{count}")

    with pytest.raises(StorageUnavailableError):
        blocks.read("f", SIZE, 0, 10, failing)
    assert b"".join(blocks.read("f", SIZE, 0, 10, store.fetch)) == DATA[:10]
