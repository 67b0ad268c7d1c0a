"""Features that the engine lacks: a typed error that names the feature, never a wrong answer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from lakehouse_platform.errors import UnsupportedFeatureError
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.store.table import Table
from lakehouse_platform_tests.support.handmade import HandmadeTable, Protocol, column

_ROW = pa.table({"id": pa.array([1], pa.int64()), "v": ["v1"]})
_FIELDS = [column("id", pa.int64()), column("v", pa.string())]

_READS: dict[str, Callable[[Table], object]] = {
    "scan": lambda table: table.scan().to_pylist(),
    "query": lambda table: table.query("id = 1").to_pylist(),
    "sql": lambda table: table.sql("SELECT * FROM data").to_pylist(),
    "version": lambda table: table.scan(version=1).to_pylist(),
}
_WRITES: dict[str, Callable[[Table], object]] = {
    "append": lambda table: table.append([{"id": 2, "v": "v2"}]),
    "overwrite": lambda table: table.overwrite([{"id": 2, "v": "v2"}]),
    "overwrite_where": lambda table: table.overwrite_where("id = 1", [{"id": 1, "v": "new"}]),
    "delete": lambda table: table.delete("id = 1"),
    "update": lambda table: table.update({"v": "'new'"}, "id = 1"),
    "merge": lambda table: table.merge([{"id": 1, "v": "new"}], on=["id"]),
    "compact": lambda table: table.compact(),
    "z_order": lambda table: table.z_order(["id"]),
    "restore": lambda table: table.restore(0),
    "properties": lambda table: table.set_properties({"delta.checkpointInterval": "5"}),
    "constraint": lambda table: table.add_constraint("c", "id > 0"),
    "column": lambda table: table.append([{"id": 2, "n": 1}], evolve=True),
}


def _table(directory: Path, store: DeltaStore, protocol: Protocol) -> Table:
    foreign = HandmadeTable(directory / "lake" / "t")
    foreign.create(_FIELDS, protocol=protocol).commit(1, foreign.add(_ROW), foreign.add(_ROW))
    return store.table("t")


@pytest.mark.parametrize("operation", [*_READS, *_WRITES])
def test_an_unknown_reader_feature_is_refused_by_name(
    tmp_path: Path, store: DeltaStore, operation: str
) -> None:
    table = _table(tmp_path, store, Protocol.with_features("timeMachine"))
    with pytest.raises(UnsupportedFeatureError, match="timeMachine"):
        (_READS | _WRITES)[operation](table)


@pytest.mark.parametrize("operation", [*_READS, *_WRITES])
@pytest.mark.parametrize(
    ("feature", "named"),
    [
        ("typeWidening", "TypeWidening"),
        ("vacuumProtocolCheck", "VacuumProtocolCheck"),
        ("catalogManaged", "catalog-managed"),
    ],
)
def test_a_known_reader_feature_that_the_engine_lacks_is_refused_by_name(
    tmp_path: Path, store: DeltaStore, feature: str, named: str, operation: str
) -> None:
    table = _table(tmp_path, store, Protocol.with_features(feature))
    with pytest.raises(UnsupportedFeatureError, match=named):
        (_READS | _WRITES)[operation](table)


_WRITER_FEATURES = ["timeMachine", "identityColumns", "rowTracking", "clustering", "icebergCompatV2",
                    "allowColumnDefaults", "inCommitTimestamp", "domainMetadata"]  # fmt: skip


@pytest.mark.parametrize("feature", _WRITER_FEATURES)
def test_a_table_with_a_writer_feature_that_we_lack_is_read(
    tmp_path: Path, store: DeltaStore, feature: str
) -> None:
    table = _table(tmp_path, store, Protocol.with_features(writer_only=[feature]))
    for read in _READS.values():
        assert read(table) == [{"id": 1, "v": "v1"}] * 2
    assert feature in table.info().writer_features


@pytest.mark.parametrize("operation", _WRITES)
@pytest.mark.parametrize("feature", ["timeMachine", "rowTracking"])
def test_a_writer_feature_that_we_lack_refuses_every_write_by_name(
    tmp_path: Path, store: DeltaStore, feature: str, operation: str
) -> None:
    table = _table(tmp_path, store, Protocol.with_features(writer_only=[feature]))
    with pytest.raises(UnsupportedFeatureError, match=f"(?i){feature}"):
        _WRITES[operation](table)
    assert (table.version(), table.scan().to_pylist()) == (1, [{"id": 1, "v": "v1"}] * 2)


def test_vacuum_of_a_table_with_a_feature_that_we_lack_deletes_no_live_file(
    tmp_path: Path, store: DeltaStore
) -> None:
    table = _table(tmp_path, store, Protocol.with_features(writer_only=["rowTracking"]))
    stray = tmp_path / "lake" / "t" / "somebody-else.bin"
    stray.write_bytes(b"x")
    assert table.vacuum(retention_hours=0).files_deleted == 0
    assert stray.exists()
    assert len(table.scan().to_pylist()) == 2


@pytest.mark.parametrize("protocol", [Protocol(9, 7), Protocol(1, 99)], ids=["reader", "writer"])
def test_a_protocol_version_of_the_future_is_refused(
    tmp_path: Path, store: DeltaStore, protocol: Protocol
) -> None:
    table = _table(tmp_path, store, protocol)
    with pytest.raises(UnsupportedFeatureError):
        table.append([{"id": 2, "v": "v2"}])
