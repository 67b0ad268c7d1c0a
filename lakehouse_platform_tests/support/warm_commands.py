"""The program `lakehouse` without the second that each start of it spends on imports, for tests of what commands say.

A process that has imported everything, and used nothing of it, forks for each command. The program that is found on
the PATH hands over its arguments, environment, directory and open files, and leaves with the command's exit status. A
server is started as ever: who ends it sends a signal to the process that was started.

`python -m lakehouse_platform_tests.support.warm_commands SOCKET` is that process; it ends with its standard input.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import subprocess
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Any

_PROGRAM = """\
#!{python} -SsE
import json, os, socket, sys
if "serve" in sys.argv[1:2]:
    os.execv({python!r}, [{python!r}, "-m", "lakehouse_platform", *sys.argv[1:]])
with socket.socket(socket.AF_UNIX) as server:
    server.connect({address!r})
    socket.send_fds(server, [b"files"], [0, 1, 2])
    wanted = dict(arguments=sys.argv[1:], environment=dict(os.environ), directory=os.getcwd())
    server.sendall(json.dumps(wanted).encode())
    server.shutdown(socket.SHUT_WR)
    sys.exit(server.recv(1)[0])
"""


@contextlib.contextmanager
def warm_commands() -> Generator[Path]:
    """Give out a directory for the PATH in which `lakehouse` is."""
    with tempfile.TemporaryDirectory(prefix="warm-") as directory:
        address = f"{directory}/socket"
        program = Path(directory, "lakehouse")
        program.write_text(_PROGRAM.format(python=sys.executable, address=address))
        program.chmod(0o700)
        command = [sys.executable, "-m", __name__, address]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
            assert server.stdout
            assert server.stdout.readline() == b"ready\n"
            yield Path(directory)


def main() -> None:
    """Import everything, and become a command whenever one is asked for."""
    from lakehouse_platform.cli.main import main as lakehouse
    from lakehouse_platform.services import lakehouse as _services  # what commands import when they run

    del _services
    if _forked_for_a_command(sys.argv[1]):
        lakehouse()


def _forked_for_a_command(address: str) -> bool:
    """Return true in each process that is to run a command, and false in the first one when its input has ended."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen()
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while listener in select.select([listener, sys.stdin], [], [])[0]:
            connection, _ = listener.accept()
            with connection:
                if os.fork() == 0:
                    return _answered(connection)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(-1, os.WNOHANG)
    return False


def _answered(connection: socket.socket) -> bool:
    """Take what is wanted; return in the process that does it, while another one waits and tells how it ended."""
    _, files, _, _ = socket.recv_fds(connection, 16, 3)
    with connection.makefile("rb") as rest:
        wanted = json.load(rest)
    if (child := os.fork()) == 0:
        _become(files, wanted)
        return True
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    connection.sendall(bytes([status % 256]))
    os._exit(0)


def _become(files: list[int], wanted: dict[str, Any]) -> None:
    for target, file in enumerate(files):
        os.dup2(file, target)
        os.close(file)
    os.chdir(wanted["directory"])
    os.environ.clear()
    os.environ.update(wanted["environment"])
    sys.argv = ["lakehouse", *wanted["arguments"]]


if __name__ == "__main__":
    main()
