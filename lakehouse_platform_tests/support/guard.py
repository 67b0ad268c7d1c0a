"""Runs a command until its own standard input closes, then kills it with everything it started.

`python -m lakehouse_platform_tests.support.guard COMMAND ...`, started as the leader of a process group by
someone who holds the other end of that pipe: however that someone dies, the kernel closes the pipe and the
command goes too.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading


def main() -> None:
    child = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL)
    threading.Thread(target=lambda: os._exit(child.wait()), daemon=True).start()
    sys.stdin.buffer.read()
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main()
