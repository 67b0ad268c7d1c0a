"""A process that is killed while it renders leaves a cache from which every byte is served right."""

from __future__ import annotations

import random
import threading
from pathlib import Path

import pytest

from lakehouse_platform.nfs.tree.image import Form
from lakehouse_platform.nfs.tree.images import Images
from lakehouse_platform.nfs.tree.segments import SegmentCache
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.store.table import Table
from lakehouse_platform_tests.support.processes import python_module
from lakehouse_platform_tests.support.tables import PEOPLE, people

_LONGEST_LIFE_S = 0.3  # several rounds through all forms


@pytest.fixture
def table(store: DeltaStore) -> Table:
    """Small and large segments."""
    table = store.create("t", PEOPLE)
    for start in range(4):
        table.append(people(*range(start * 20_000, (start + 1) * 20_000)))
        table.append(people(start))
    return table


def shown(table: Table, state: Path) -> dict[Form, tuple[int, bytes]]:
    cache = SegmentCache(state, 1 << 30)
    images = Images(table, cache)
    made = [(form, images.refresh(form)) for form in Form]
    seen = {form: (image.changed_ns, b"".join(image.read(0, image.size))) for form, image in made}
    cache.close()
    return seen


@pytest.mark.slow
def test_nothing_half_is_left_by_a_kill(table: Table, tmp_path: Path) -> None:
    expected = shown(table, tmp_path / "other")
    state, chance = tmp_path / "state", random.Random(5)
    for _ in range(6):
        arguments = [str(tmp_path / "lake"), "t", str(state)]
        with python_module("lakehouse_platform_tests.support.render_on", *arguments) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            killer = threading.Timer(chance.uniform(0, _LONGEST_LIFE_S), process.kill)
            killer.start()
            process.communicate()
            killer.join()
        assert shown(table, state) == expected
    assert len(list((state / "segments").glob("*.tmp"))) == 0
