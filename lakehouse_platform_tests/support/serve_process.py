"""Serves a lakehouse over HTTP in a process of its own, which a test stops by signal; started by `serving_process`.

Its settings are the first argument, as JSON. Once it is ready it prints where it answers.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform_tests.support.processes import python_module

_MODULE = "lakehouse_platform_tests.support.serve_process"


@dataclass(frozen=True, slots=True)
class ServingProcess:
    """A process that serves.

    Attributes:
        base_url: Where it answers.
        process: The process.
    """

    base_url: str
    process: subprocess.Popen[bytes]

    def ended(self) -> tuple[int, str]:
        """Wait for the end, and return the exit status and what was complained about."""
        _, complaints = self.process.communicate(timeout=60)
        return self.process.returncode, complaints.decode()


@contextmanager
def serving_process(config: LakehouseConfig, **changes: Any) -> Generator[ServingProcess]:
    """Serve a lakehouse until the block ends, or until the test ends the process."""
    settings = {
        "base_path": config.base_path, "state_path": config.state_path, "durability": config.durability, "api_port": 0,
        **changes,
    }  # fmt: skip
    with python_module(_MODULE, json.dumps(settings)) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            raise AssertionError(process.communicate()[1].decode()[-4000:])
        yield ServingProcess(json.loads(line)["url"], process)


def main() -> None:
    from lakehouse_platform.api.serving import Ready, serve

    def say(ready: Ready) -> None:
        sys.stdout.write(json.dumps({"url": ready.url}) + "\n")
        sys.stdout.flush()

    serve(LakehouseConfig(**json.loads(sys.argv[1])), on_ready=say)


if __name__ == "__main__":
    main()
