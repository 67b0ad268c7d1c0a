"""A QEMU guest, without KVM, whose real Linux kernel mounts exports that are served on this machine's loopback.

The guest reaches the host's 127.0.0.1 as 10.0.2.2 through QEMU's user-mode network; nothing leaves the machine.
"""

from __future__ import annotations

import base64
import fcntl
import hashlib
import os
import shlex
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Self

from lakehouse_platform.nfs.mounting import Platform, Profile, Target, mount_options

_BUILD = Path(__file__).with_name("build_kernel_guest.sh")
_AGENT = Path(__file__).with_name("guest_agent.py")
_NEEDED = ("qemu-system-x86_64", "busybox", "cpio", "vim", "nano", "ed", "gawk", "perl", "rsync", "apt-get")


def _profile(profile: Profile) -> str:
    """Return what `lakehouse mount` gives to mount(8), without what says where the server is."""
    target = Target(host="", port=0, export="", profile=profile)
    options = mount_options(target, Platform.LINUX)
    return ",".join(
        option for option in options if not option.startswith(("vers=", "port=", "mountport=", "nolock"))
    )


PROFILES = {profile.value: _profile(profile) for profile in Profile}


def missing_programs() -> list[str]:
    """Return what this machine lacks to build and run a guest."""
    return [name for name in _NEEDED if shutil.which(name) is None]


def guest_image() -> Path:
    """Return the directory with the guest's kernel and file system, built once per user and recipe."""
    recipe = hashlib.sha256(_BUILD.read_bytes() + _AGENT.read_bytes()).hexdigest()[:12]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lakehouse-tests"
    image = cache / f"kernel-guest-{recipe}"
    image.mkdir(parents=True, exist_ok=True)
    with (image / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # several test workers start at once
        if not (image / "initrd").exists():
            subprocess.run(["bash", str(_BUILD), str(image)], check=True, capture_output=True, text=True)
    return image


class KernelGuest:
    """One running guest; commands run one after the other."""

    def __init__(self, image: Path, memory_mib: int = 1024, boot_timeout_s: float = 120.0) -> None:
        self._scratch = tempfile.TemporaryDirectory(prefix="guest-")
        control = Path(self._scratch.name) / "control.sock"
        self.console = Path(self._scratch.name) / "console.log"
        self._process = subprocess.Popen(
            [
                *("qemu-system-x86_64", "-accel", "tcg,thread=multi"),
                *("-cpu", "max,la57=off", "-m", str(memory_mib)),
                *("-smp", "2", "-nographic", "-no-reboot", "-nodefaults"),
                *("-kernel", str(image / "vmlinuz"), "-initrd", str(image / "initrd")),
                *("-append", "console=ttyS0 quiet panic=-1 mitigations=off"),
                *("-netdev", "user,id=net0", "-device", "virtio-net-pci,netdev=net0"),
                *("-serial", f"file:{self.console}"),
                *("-chardev", f"socket,id=control,path={control},server=on,wait=off"),
                *("-serial", "chardev:control"),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.STDOUT,
        )
        self._socket = socket.socket(socket.AF_UNIX)
        self._connect(control, time.monotonic() + boot_timeout_s)
        self._socket.settimeout(boot_timeout_s)
        self._lines = self._socket.makefile("rb")
        while b"GUEST-READY" not in (line := self._lines.readline()):
            if not line:
                raise RuntimeError(
                    f"the guest stopped while booting: {self.console.read_text(errors='replace')}"
                )

    def _connect(self, control: Path, deadline: float) -> None:
        while True:
            try:
                self._socket.connect(str(control))
            except OSError:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError("the guest did not start") from None
                time.sleep(0.02)
            else:
                return

    def run(self, command: str, timeout_s: float = 120.0) -> tuple[int, str]:
        """Run a bash command line; return its exit status and its stdout and stderr together."""
        self._socket.settimeout(timeout_s + 30)
        self._socket.sendall(f"{timeout_s:g} ".encode() + base64.b64encode(command.encode()) + b"\n")
        answer = self._lines.readline()
        text = base64.b64decode(answer).decode("utf-8", "replace")
        output, _, status = text.rpartition("rc=")
        return int(status), output

    def mount(self, port: int, export: str, at: str, options: str) -> None:
        """Mount an export of a server on this machine's loopback."""
        fixed = f"addr=10.0.2.2,mountaddr=10.0.2.2,vers=3,port={port},mountport={port},nolock"
        # -i: mount.nfs needs more of a system than the guest has; the kernel itself takes addr=.
        status, output = self.run(
            f"mkdir -p {at} && mount -i -t nfs -o {fixed},{options} 10.0.2.2:{shlex.quote(export)} {at}"
        )
        if status:
            raise RuntimeError(f"mount failed ({status}): {output}")

    def close(self) -> None:
        """Switch it off."""
        self._lines.close()
        self._socket.close()
        self._process.kill()
        self._process.wait()
        self._scratch.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
