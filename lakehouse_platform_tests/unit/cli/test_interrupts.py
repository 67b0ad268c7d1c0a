"""Ctrl-C ends a command at once, but for one that ends in its own order."""

from __future__ import annotations

import signal
import subprocess
import sys

_SCRIPT = """
import os, signal, threading
from lakehouse_platform.cli.interrupts import patient_interrupts, prompt_interrupts

asked = threading.Event()
signal.signal(signal.SIGINT, lambda *_: asked.set())
with prompt_interrupts(){patient}:
    print("ready", flush=True)
    asked.wait()
    # Longer than a command has that does not end by itself.
    threading.Event().wait(1.5)
print("ended in order")
"""


def interrupted(script: str) -> tuple[int, str]:
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert process.stdout
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    shown = process.communicate(timeout=60)[0]
    return process.returncode, shown


def test_what_takes_too_long_to_end_is_ended() -> None:
    assert interrupted(_SCRIPT.format(patient="")) == (130, "")


def test_what_ends_in_its_own_order_may_take_its_time() -> None:
    assert interrupted(_SCRIPT.format(patient=", patient_interrupts()")) == (0, "ended in order\n")
