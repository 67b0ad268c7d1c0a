"""A process that renders a table's images into a cache too small for them, again and again, until it is killed.

`python -m lakehouse_platform_tests.support.render_on LAKE TABLE STATE`
"""

from __future__ import annotations

import sys
from pathlib import Path

from lakehouse_platform.nfs.tree.image import Form
from lakehouse_platform.nfs.tree.images import Images
from lakehouse_platform.nfs.tree.segments import SegmentCache
from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform.store.delta_store import DeltaStore

_BUDGET = 200_000


def main() -> None:
    lake, name, state = sys.argv[1:]
    table = DeltaStore(LakehouseConfig(base_path=lake)).table(name)
    images = Images(table, SegmentCache(Path(state), _BUDGET))
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while True:
        for form in Form:
            images.prepare(images.refresh(form))


if __name__ == "__main__":
    main()
