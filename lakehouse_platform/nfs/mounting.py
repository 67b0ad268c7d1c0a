"""The commands that mount an export on each system, and running them here."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from lakehouse_platform.errors import MissingDependencyError, MountFailedError

# 16 MiB: Linux reads 128 KiB ahead on NFS since 5.4, which starves a loopback mount.
_READ_AHEAD_KB = 16 * 1024
_TRANSFER = 1 << 20  # bytes of one READ or WRITE; Linux takes no more (nfs(5), rsize)
_UNMOUNT_SECONDS = 30
_OCTAL = re.compile(rb"\\([0-7]{3})")


class Profile(StrEnum):
    """How a client is told to write.

    SYNC makes every write(2) wait for the server's answer, so that even a shell's `echo` sees an error; BULK lets the
    client gather writes, which is faster for big files.
    """

    SYNC = "sync"
    BULK = "bulk"


class Platform(StrEnum):
    """Systems whose mount command we know."""

    LINUX = "linux"
    MACOS = "macos"
    WINDOWS = "windows"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What is to be mounted.

    Attributes:
        host: Address of the server.
        port: TCP port of NFS and MOUNT alike.
        export: Export path with its ticket.
        profile: How the client writes.
        read_only: Whether the client refuses changes itself.
    """

    host: str
    port: int
    export: str
    profile: Profile = Profile.SYNC
    read_only: bool = False


def mount_command(target: Target, mountpoint: str, platform: Platform) -> list[str]:
    """Return the command that mounts a target on a platform, word by word; the user runs it as root there."""
    if platform is Platform.WINDOWS:
        share = rf"\\{target.host}{target.export.replace('/', chr(92))}"
        options = "anon,nolock,mtype=hard,casesensitive,lang=ansi,rsize=128,wsize=128,timeout=60"
        return ["mount", "-o", options, share, mountpoint]
    return [
        *("mount", "-t", "nfs", "-o", ",".join(mount_options(target, platform))),
        f"{target.host}:{target.export}",
        mountpoint,
    ]


def command_line(target: Target, mountpoint: str, platform: Platform) -> str:
    """Return the command as text to paste into a shell."""
    words = mount_command(target, mountpoint, platform)
    if platform is Platform.WINDOWS:
        return " ".join(words)
    return shlex.join(["sudo", *words])


def mount(target: Target, mountpoint: Path) -> None:
    """Mount a target on this machine and let Linux read far ahead.

    Raises:
        MissingDependencyError: This system has no NFS client.
        MountFailedError: The mount command failed; its message and the command to run by hand are in the text.
    """
    platform = this_platform()
    if platform is Platform.LINUX and not shutil.which("mount.nfs", path=_search_path()):
        raise MissingDependencyError(
            "This system has no NFS client: install nfs-common (Debian, Ubuntu) or nfs-utils (Fedora, Arch)."
        )
    words = [*_as_root(), *mount_command(target, str(mountpoint), platform)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=_environment())  # noqa: S603 - our own words, no shell
    if done.returncode:
        raise MountFailedError(
            f"Mounting failed ({_last_line(done.stderr)}). Run this by hand as a user who may mount:\n"
            f"  {command_line(target, str(mountpoint), platform)}",
            exit_code=done.returncode,
        )
    if platform is Platform.LINUX:
        raise_read_ahead(mountpoint)


def unmount(mountpoint: Path, *, force: bool = False) -> None:
    """Unmount on this machine.

    Raises:
        MountFailedError: Something still uses the files, or nothing is mounted there.
    """
    words = [*_as_root(), "umount", *(["-f"] if force else []), str(mountpoint)]
    try:
        done = subprocess.run(  # noqa: S603 - our own words, no shell
            words, capture_output=True, text=True, check=False, timeout=_UNMOUNT_SECONDS, env=_environment()
        )
    except subprocess.TimeoutExpired:
        raise MountFailedError(
            f"{mountpoint} could not be unmounted within {_UNMOUNT_SECONDS} s: close what uses it and try again.",
            mountpoint=str(mountpoint),
        ) from None
    if done.returncode:
        raise MountFailedError(
            f"{mountpoint} could not be unmounted ({_last_line(done.stderr)}): close what uses it and try again.",
            mountpoint=str(mountpoint),
        )


def is_mounted(mountpoint: Path) -> bool:
    """Tell whether an NFS file system is mounted there, without asking its server."""
    if this_platform() is not Platform.LINUX:
        listed = subprocess.run(["mount"], capture_output=True, text=True, check=False)  # noqa: S607 - the system's own
        return f" on {mountpoint} (" in listed.stdout
    return str(mountpoint) in nfs_mountpoints(Path("/proc/self/mounts").read_bytes())


def nfs_mountpoints(mounts: bytes) -> set[str]:
    """Return where NFS file systems are mounted, by the text of /proc/self/mounts (proc_pid_mounts(5))."""
    # Names can hold any byte; Linux escapes those that would be taken for an end of a field or a line.
    fields = [line.split(b" ") for line in mounts.split(b"\n") if line]
    return {os.fsdecode(_decoded(place)) for _, place, kind, *_ in fields if kind.startswith(b"nfs")}


def raise_read_ahead(mountpoint: Path) -> bool:
    """Let Linux read 16 MiB ahead on a mount; returns whether it was allowed to set that."""
    device = mountpoint.stat().st_dev
    setting = Path(f"/sys/class/bdi/{os.major(device)}:{os.minor(device)}/read_ahead_kb")
    try:
        setting.write_text(str(_READ_AHEAD_KB))
    except OSError:  # not root, or a container with a read-only /sys: slower, nothing else
        return False
    return True


def this_platform() -> Platform:
    """Return the system that this program runs on."""
    if sys.platform == "darwin":
        return Platform.MACOS
    return Platform.WINDOWS if sys.platform == "win32" else Platform.LINUX


def mount_options(target: Target, platform: Platform) -> Sequence[str]:
    """Return the options of the mount command on Linux or macOS."""
    shared = ("vers=3", f"port={target.port}", f"mountport={target.port}")
    sizes = (f"rsize={_TRANSFER}", f"wsize={_TRANSFER}")
    # Negative entries are not kept and attributes only for a second: others' changes show quickly.
    if platform is Platform.MACOS:
        own = ("tcp", "locallocks", "nonegnamecache", "hard", "actimeo=1")
    else:
        own = ("proto=tcp", "mountproto=tcp", "nolock", "noacl", "hard", "actimeo=1", "lookupcache=positive")
    sync = ("sync",) if target.profile is Profile.SYNC else ()
    return (*shared, *own, *sizes, *sync, *(("ro",) if target.read_only else ()))


def _as_root() -> list[str]:
    return [] if os.geteuid() == 0 else ["sudo", "-n"]


def _search_path() -> str:
    # mount.nfs stands in sbin, which is not on every user's path.
    return os.pathsep.join([os.environ.get("PATH", ""), "/sbin", "/usr/sbin"])


def _environment() -> dict[str, str]:
    return {**os.environ, "PATH": _search_path(), "LC_ALL": "C"}


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1].strip() if lines else "no message"


def _decoded(field: bytes) -> bytes:
    return _OCTAL.sub(lambda match: bytes([int(match[1], 8)]), field)
