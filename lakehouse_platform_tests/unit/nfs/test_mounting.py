"""The mount commands, and finding mounts by names of any kind."""

from __future__ import annotations

import os
import re
import shlex

from hypothesis import given
from hypothesis import strategies as st

from lakehouse_platform.nfs.mounting import (
    Platform,
    Profile,
    Target,
    command_line,
    mount_command,
    nfs_mountpoints,
)

TARGET = Target(host="127.0.0.1", port=2049, export="/ticket/lake")
names = st.binary(min_size=1).map(lambda name: b"/" + name.replace(b"\0", b""))


def _escaped(name: bytes) -> bytes:
    """Escape a name as Linux does in /proc/self/mounts (`seq_path` with " \\t\\n\\\\#")."""
    return re.sub(rb"[ \t\n\\#]", lambda match: b"\\%03o" % match[0][0], name)


def _line(name: bytes, kind: bytes) -> bytes:
    return b"127.0.0.1:/x %s %s rw,vers=3 0 0\n" % (_escaped(name), kind)


@given(st.sets(names, max_size=4), st.sets(names, max_size=4))
def test_mounts_are_found_whatever_they_are_called(ours: set[bytes], others: set[bytes]) -> None:
    table = b"".join(_line(name, b"nfs") for name in ours) + b"".join(_line(name, b"ext4") for name in others)
    assert nfs_mountpoints(table) == {os.fsdecode(name) for name in ours}


def test_names_that_look_like_ends_of_lines_are_names() -> None:
    for name in (b"/a\rb", b"/a\r\rb", b"/a\x0cb", "/a\u2028b".encode(), b"/a\x85b", b"/\xff", b"/a\\040b"):
        assert nfs_mountpoints(_line(name, b"nfs4")) == {os.fsdecode(name)}


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1))
def test_a_mount_point_stays_one_word_of_the_command(name: str) -> None:
    place = f"/{name}"
    words = mount_command(TARGET, place, Platform.LINUX)
    assert words[-2:] == ["127.0.0.1:/ticket/lake", place]
    assert shlex.split(command_line(TARGET, place, Platform.LINUX)) == ["sudo", *words]
    assert shlex.split(command_line(TARGET, place, Platform.MACOS))[-1] == place


def test_the_sync_profile_makes_each_write_wait() -> None:
    options = mount_command(TARGET, "/mnt", Platform.LINUX)[4].split(",")
    bulk = Target(host="127.0.0.1", port=2049, export="/t/lake@bulk", profile=Profile.BULK, read_only=True)
    assert {"vers=3", "port=2049", "mountport=2049", "nolock", "sync", "lookupcache=positive"} <= set(options)
    assert "sync" not in mount_command(bulk, "/mnt", Platform.LINUX)[4].split(",")
    assert "ro" in mount_command(bulk, "/mnt", Platform.LINUX)[4].split(",")
