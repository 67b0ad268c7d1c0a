"""Runs in the guest and does what the host asks for: one line in for each command, one line out with what came of it.

In: seconds, and a bash command line in base64. Out: its stdout and stderr, and `rc=` with its exit status, in base64.
It is one process that stays, because each program that an emulated machine starts costs a twentieth of a second.
"""

from __future__ import annotations

import base64
import os
import signal
import subprocess
import sys


def run(command: bytes, seconds: float) -> bytes:
    """Run a command line in a session of its own; one that hangs is killed, or all that follow would wait behind it."""
    tool = subprocess.Popen(
        ["bash", "-c", command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        told, _ = tool.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(tool.pid, signal.SIGKILL)
        told, _ = tool.communicate()
    status = tool.returncode if tool.returncode >= 0 else 128 - tool.returncode
    return told + b"rc=%d" % status


def main() -> None:
    """Say that the guest is ready, and answer."""
    sys.stdout.buffer.write(b"GUEST-READY\n")
    sys.stdout.buffer.flush()
    for line in sys.stdin.buffer:
        seconds, command = line.split()
        sys.stdout.buffer.write(base64.b64encode(run(base64.b64decode(command), float(seconds))) + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
