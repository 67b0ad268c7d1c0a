"""Runs a module of `guest_checks` inside the guest and tells what came of each of its checks."""

from __future__ import annotations

import base64
from pathlib import Path
from types import ModuleType

from lakehouse_platform_tests.kernel.guest_checks import framework
from lakehouse_platform_tests.support.kernel_guest import KernelGuest

_HOME = "/tmp/checks"


def failed_checks(guest: KernelGuest, checks: ModuleType, *directories: str) -> list[str]:
    """Run all checks and return name and reason of those that failed, or never ran."""
    for module in (framework, checks):
        _send(guest, module)
    command = f"cd {_HOME} && python3 -B -m {checks.__name__} {' '.join(directories)}"
    status, output = guest.run(command, 240)
    lines = [line.split("\t") for line in output.splitlines() if line.startswith(("ok\t", "FAILED\t"))]
    missing = checks.CHECKS.keys() - {name for _, _, name, _ in lines}
    assert (status, missing) == (0, set()), output
    return [f"{name}: {why}" for result, _, name, why in lines if result == "FAILED"]


def _send(guest: KernelGuest, module: ModuleType) -> None:
    assert module.__file__
    target = Path(_HOME, *module.__name__.split(".")).with_suffix(".py")
    text = base64.b64encode(Path(module.__file__).read_bytes()).decode()
    status, output = guest.run(f"mkdir -p {target.parent} && echo {text} | busybox base64 -d > {target}")
    assert status == 0, output
