"""What POSIX asks of chmod, chown, mkdir, rmdir and open, after the cases of pjdfstest, for scratch files."""

from __future__ import annotations

import errno
import os
import socket
import stat

from lakehouse_platform_tests.kernel.guest_checks.framework import (
    LONG_PATH,
    REFUSED,
    TOO_LONG,
    Checks,
    add,
    changes_times,
    equal,
    fails,
    get,
    main,
    make_each,
    mode_of,
    put,
    wait_for_clock,
)

CHECKS: Checks = {}
BOTH = ("st_ctime_ns", "st_mtime_ns")

# ── chmod and chown ───────────────────────────────────────────────────────────────────────────────


@add(CHECKS)
def chmod_sets_every_bit_of_files_and_directories() -> None:
    put("f")
    os.mkdir("d")
    for path in ("f", "d"):
        for mode in (0o644, 0o400, 0o111, 0o7777, 0o4755, 0o1777, 0o700):
            os.chmod(path, mode)
            equal(mode_of(path), mode)


@add(CHECKS)
def chmod_changes_ctime_and_not_mtime() -> None:
    put("f")
    before = os.stat("f").st_mtime_ns
    changes_times(("st_ctime_ns",), "f", os.chmod, "f", 0o600)
    equal(os.stat("f").st_mtime_ns, before)


@add(CHECKS)
def chmod_follows_links() -> None:
    make_each()
    os.chmod("link", 0o640)
    equal(mode_of("file"), 0o640)


@add(CHECKS)
def fchmod_works_on_an_open_file() -> None:
    put("f")
    with open("f", "rb") as file:
        os.fchmod(file.fileno(), 0o640)
    equal(mode_of("f"), 0o640)


@add(CHECKS)
def chmod_errors() -> None:
    make_each()
    fails(errno.ENOENT, os.chmod, "none", 0o644)
    fails(errno.ENOENT, os.chmod, "dangling", 0o644)
    fails(errno.ENOTDIR, os.chmod, "file/x", 0o644)
    fails(errno.ENAMETOOLONG, os.chmod, TOO_LONG, 0o644)
    fails(errno.ENAMETOOLONG, os.chmod, LONG_PATH, 0o644)


@add(CHECKS)
def chown_to_the_owner_is_allowed_and_to_others_refused() -> None:
    make_each()
    owner = os.stat("file")
    os.chown("file", -1, -1)
    os.chown("file", owner.st_uid, owner.st_gid)
    fails(errno.EPERM, os.chown, "file", 4242, -1)
    fails(errno.EPERM, os.chown, "file", -1, 4242)
    fails(errno.EPERM, os.lchown, "link", 4242, 4242)
    equal((os.stat("file").st_uid, os.stat("file").st_gid), (owner.st_uid, owner.st_gid))
    fails(errno.ENOENT, os.chown, "none", -1, -1)


# ── link, mkfifo, mknod ───────────────────────────────────────────────────────────────────────────


@add(CHECKS)
def link_is_refused_and_leaves_nothing() -> None:
    put("f")
    fails(REFUSED, os.link, "f", "g")
    equal(os.listdir(), ["f"])
    equal(os.stat("f").st_nlink, 1)
    fails(errno.ENOENT, os.link, "none", "g")
    fails(errno.EEXIST, os.link, "f", "f")


@add(CHECKS)
def special_files_are_refused_and_leave_nothing() -> None:
    fails(REFUSED, os.mkfifo, "fifo")
    fails(REFUSED, os.mknod, "null", 0o600 | stat.S_IFCHR, os.makedev(1, 3))
    fails(REFUSED, os.mknod, "disk", 0o600 | stat.S_IFBLK, os.makedev(8, 0))
    with socket.socket(socket.AF_UNIX) as listener:
        fails(REFUSED, listener.bind, "socket")
    equal(os.listdir(), [])


# ── mkdir and rmdir ───────────────────────────────────────────────────────────────────────────────


@add(CHECKS)
def mkdir_honours_mode_and_umask() -> None:
    for umask, mode, result in ((0o022, 0o777, 0o755), (0o077, 0o777, 0o700), (0, 0o751, 0o751)):
        os.umask(umask)
        os.mkdir("d", mode)
        equal(mode_of("d"), result)
        os.rmdir("d")


@add(CHECKS)
def mkdir_and_rmdir_change_their_parent() -> None:
    os.mkdir("p")
    changes_times(BOTH, "p", os.mkdir, "p/d")
    equal((os.stat("p").st_nlink, os.stat("p/d").st_nlink), (3, 2))
    changes_times(BOTH, "p", os.rmdir, "p/d")
    equal(os.stat("p").st_nlink, 2)


@add(CHECKS)
def mkdir_errors() -> None:
    for name in make_each():
        fails(errno.EEXIST, os.mkdir, name)
    fails(errno.EEXIST, os.mkdir, ".")
    fails(errno.EEXIST, os.mkdir, "directory/..")
    fails(errno.EEXIST, os.mkdir, "/")
    fails(errno.ENOENT, os.mkdir, "none/d")
    fails(errno.ENOTDIR, os.mkdir, "file/d")
    fails(errno.ENOENT, os.mkdir, "")
    fails(errno.ENAMETOOLONG, os.mkdir, TOO_LONG)
    fails(errno.ENAMETOOLONG, os.mkdir, LONG_PATH)


@add(CHECKS)
def rmdir_errors() -> None:
    make_each()
    put("directory/x")
    fails((errno.ENOTEMPTY, errno.EEXIST), os.rmdir, "directory")
    fails(errno.ENOTDIR, os.rmdir, "file")
    fails(errno.ENOTDIR, os.rmdir, "link")
    fails(errno.ENOENT, os.rmdir, "none")
    fails(errno.ENOTDIR, os.rmdir, "file/d")
    fails(errno.EINVAL, os.rmdir, "directory/.")
    fails((errno.ENOTEMPTY, errno.EEXIST), os.rmdir, "directory/..")
    fails(errno.ENAMETOOLONG, os.rmdir, TOO_LONG)
    os.unlink("directory/x")
    os.rmdir("directory")
    fails(errno.ENOENT, os.rmdir, "directory")


@add(CHECKS)
def a_removed_working_directory_is_gone() -> None:
    os.mkdir("d")
    handle = os.open("d", os.O_RDONLY)
    os.rmdir("d")
    fails((errno.ENOENT, errno.ESTALE), os.open, "f", os.O_CREAT | os.O_WRONLY, dir_fd=handle)
    os.close(handle)
    os.mkdir("d")
    put("d/f")
    equal(os.listdir("d"), ["f"])


# ── open ──────────────────────────────────────────────────────────────────────────────────────────


@add(CHECKS)
def open_creates_with_mode_and_umask() -> None:
    for umask, mode, result in ((0o022, 0o666, 0o644), (0o077, 0o666, 0o600), (0, 0o777, 0o777)):
        os.umask(umask)
        os.close(os.open("f", os.O_CREAT | os.O_WRONLY, mode))
        equal(mode_of("f"), result)
        os.close(os.open("e", os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))
        equal(mode_of("e"), result)
        os.unlink("f")
        os.unlink("e")


@add(CHECKS)
def open_changes_its_parent_only_when_it_creates() -> None:
    os.mkdir("d")
    changes_times(BOTH, "d", put, "d/f", b"1")
    before = os.stat("d")
    wait_for_clock()
    put("d/f", b"2")
    equal(os.stat("d").st_mtime_ns, before.st_mtime_ns)


@add(CHECKS)
def open_exclusively_never_opens_what_is_there() -> None:
    for name in make_each():
        fails(errno.EEXIST, os.open, name, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    equal(get("file"), b"text")
    assert not os.path.lexists("nowhere")


@add(CHECKS)
def open_truncates() -> None:
    put("f", b"text")
    changes_times(BOTH, "f", put, "f", b"")
    equal(os.stat("f").st_size, 0)


@add(CHECKS)
def open_for_appending_writes_at_the_end() -> None:
    put("f", b"one")
    handle = os.open("f", os.O_WRONLY | os.O_APPEND)
    os.lseek(handle, 0, os.SEEK_SET)
    os.write(handle, b"two")
    with open("f", "r+b") as other:
        other.truncate(1)
    os.write(handle, b"three")
    os.close(handle)
    equal(get("f"), b"othree")


@add(CHECKS)
def open_errors() -> None:
    make_each()
    os.symlink("loop", "loop")
    fails(errno.ENOENT, os.open, "none", os.O_RDONLY)
    fails(errno.ENOENT, os.open, "none/f", os.O_CREAT | os.O_WRONLY)
    fails(errno.ENOTDIR, os.open, "file/f", os.O_CREAT | os.O_WRONLY)
    fails(errno.ENOTDIR, os.open, "file", os.O_RDONLY | os.O_DIRECTORY)
    fails(errno.EISDIR, os.open, "directory", os.O_WRONLY)
    fails(errno.EISDIR, os.open, "directory", os.O_RDWR)
    fails(errno.EISDIR, os.open, "directory", os.O_RDONLY | os.O_CREAT)
    fails(errno.ELOOP, os.open, "loop", os.O_RDONLY)
    fails(errno.ELOOP, os.open, "link", os.O_RDONLY | os.O_NOFOLLOW)
    fails(errno.ENAMETOOLONG, os.open, TOO_LONG, os.O_CREAT | os.O_WRONLY)
    fails(errno.ENAMETOOLONG, os.open, LONG_PATH, os.O_CREAT | os.O_WRONLY)
    fails(errno.EISDIR, os.open, "directory/new/", os.O_CREAT | os.O_WRONLY)


@add(CHECKS)
def open_creates_through_a_dangling_link() -> None:
    os.symlink("nowhere", "dangling")
    put("dangling", b"text")
    equal(get("nowhere"), b"text")
    assert os.path.islink("dangling")


@add(CHECKS)
def open_writes_only_as_asked() -> None:
    put("f", b"text")
    handle = os.open("f", os.O_RDONLY)
    fails(errno.EBADF, os.write, handle, b"x")
    os.close(handle)
    handle = os.open("f", os.O_WRONLY)
    fails(errno.EBADF, os.read, handle, 1)
    os.close(handle)


@add(CHECKS)
def synchronous_writes_are_there() -> None:
    handle = os.open("f", os.O_CREAT | os.O_RDWR | os.O_SYNC)
    os.write(handle, b"text")
    os.fsync(handle)
    os.fdatasync(handle)
    os.close(handle)
    equal(get("f"), b"text")


if __name__ == "__main__":
    main(CHECKS)
