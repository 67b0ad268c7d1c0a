from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from urllib.parse import urlsplit

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from lakehouse_platform_tests.support.ports import reserved_ports
from lakehouse_platform_tests.support.s3_server import ROOT, S3Server

pytestmark = pytest.mark.object_store

_SERVE_AND_WAIT = """
import sys, pathlib
from lakehouse_platform_tests.support.s3_server import s3_server
with s3_server(pathlib.Path(sys.argv[1])) as server:
    print(server.endpoint, flush=True)
    sys.stdin.read()
"""


def test_a_raw_delta_table_can_be_written_and_read(s3: S3Server) -> None:
    uri = s3.fresh_uri()
    write_deltalake(uri, pa.table({"id": [1, 2]}), storage_options=dict(s3.options))
    assert DeltaTable(uri, storage_options=dict(s3.options)).version() == 0


def test_the_server_dies_with_the_process_that_started_it(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _SERVE_AND_WAIT, str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        endpoint = urlsplit(owner.stdout.readline().decode().strip())
        address = (endpoint.hostname, endpoint.port)
        socket.create_connection(address).close()
        os.kill(owner.pid, signal.SIGKILL)
    assert _closes_within(address, seconds=10)


def test_blocks_of_ports_are_never_shared() -> None:
    with reserved_ports(10) as first, reserved_ports(10) as second:
        assert not set(first) & set(second)


def _closes_within(address: tuple[str | None, int | None], seconds: float) -> bool:
    pause = threading.Event()
    for _ in range(int(seconds * 100)):
        with socket.socket() as probe:
            if probe.connect_ex(address) != 0:
                return True
        pause.wait(0.01)
    return False
