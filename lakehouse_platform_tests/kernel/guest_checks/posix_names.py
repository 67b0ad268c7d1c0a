"""What POSIX asks of rename, links, truncate, unlink, times and names, after the cases of pjdfstest."""

from __future__ import annotations

import errno
import os
import stat

from lakehouse_platform_tests.kernel.guest_checks.framework import (
    LONG,
    NOTSUPP,
    SECOND,
    TOO_LONG,
    Checks,
    add,
    changes_times,
    equal,
    fails,
    get,
    main,
    make_each,
    put,
    soon_listed,
    wait_for_clock,
)

CHECKS: Checks = {}
BOTH = ("st_ctime_ns", "st_mtime_ns")

# ── rename ────────────────────────────────────────────────────────────────────────────────────────


@add(CHECKS)
def rename_keeps_the_object() -> None:
    for old in make_each():
        before = os.lstat(old)
        os.rename(old, "new")
        after = os.lstat("new")
        equal((after.st_ino, after.st_mode, after.st_size), (before.st_ino, before.st_mode, before.st_size))
        assert not os.path.lexists(old)
        os.rename("new", old)


@add(CHECKS)
def rename_changes_both_parents() -> None:
    os.mkdir("a")
    os.mkdir("b")
    put("a/f")
    before = os.stat("a").st_mtime_ns
    changes_times(BOTH, "b", os.rename, "a/f", "b/f")
    assert os.stat("a").st_mtime_ns > before


@add(CHECKS)
def rename_moves_directories_with_what_they_hold() -> None:
    os.makedirs("a/d/e")
    os.mkdir("b")
    put("a/d/e/f", b"text")
    os.rename("a/d", "b/moved")
    equal(get("b/moved/e/f"), b"text")
    equal((os.stat("a").st_nlink, os.stat("b").st_nlink), (2, 3))
    equal(os.stat("b/moved/..").st_ino, os.stat("b").st_ino)


@add(CHECKS)
def rename_replaces_files_and_links() -> None:
    for victim in ("file", "link", "dangling"):
        make_each()
        put("new", b"new")
        os.rename("new", victim)
        equal(get(victim), b"new")
        assert not os.path.lexists("new")
        for name in ("file", "link", "dangling"):
            os.unlink(name)
        os.rmdir("directory")


@add(CHECKS)
def rename_replaces_an_empty_directory_only() -> None:
    os.mkdir("a")
    put("a/f")
    os.mkdir("b")
    os.rename("a", "b")
    equal(os.listdir("b"), ["f"])
    os.mkdir("c")
    fails((errno.ENOTEMPTY, errno.EEXIST), os.rename, "c", "b")
    equal(sorted(os.listdir()), ["b", "c"])


@add(CHECKS)
def rename_to_itself_does_nothing() -> None:
    for name in make_each():
        os.rename(name, name)
        assert os.path.lexists(name)


@add(CHECKS)
def rename_errors() -> None:
    make_each()
    os.mkdir("directory/below")
    fails(errno.ENOENT, os.rename, "none", "new")
    fails(errno.ENOENT, os.rename, "file", "none/new")
    fails(errno.ENOTDIR, os.rename, "file/x", "new")
    fails(errno.ENOTDIR, os.rename, "file", "link/new")
    fails(errno.EISDIR, os.rename, "file", "directory")
    fails(errno.ENOTDIR, os.rename, "directory", "file")
    fails(errno.ENOTDIR, os.rename, "directory", "link")
    fails(errno.EINVAL, os.rename, "directory", "directory/below/new")
    fails(errno.EINVAL, os.rename, "directory", "directory/new")
    fails((errno.ENOTEMPTY, errno.EEXIST), os.rename, "directory/below", "directory")
    fails((errno.EINVAL, errno.EBUSY), os.rename, "directory/.", "new")
    fails((errno.EINVAL, errno.EBUSY), os.rename, "directory/..", "new")
    fails((errno.EINVAL, errno.EBUSY), os.rename, "directory/below", "directory/.")
    fails(errno.ENAMETOOLONG, os.rename, "file", TOO_LONG)
    fails(errno.ENAMETOOLONG, os.rename, TOO_LONG, "new")
    fails(errno.ENOTDIR, os.rename, "file", "new/")
    equal(sorted(os.listdir()), ["dangling", "directory", "file", "link"])


@add(CHECKS)
def rename_over_an_open_file_leaves_it_readable() -> None:
    put("old", b"old")
    put("new", b"new")
    with open("old", "rb") as file:
        os.rename("new", "old")
        equal(file.read(), b"old")
        equal(get("old"), b"new")


@add(CHECKS)
def rename_of_an_open_file_keeps_it_open() -> None:
    with open("a", "w+b") as file:
        file.write(b"one")
        file.flush()
        os.rename("a", "b")
        file.write(b"two")
        file.flush()
        equal(get("b"), b"onetwo")


# ── symlink and readlink ──────────────────────────────────────────────────────────────────────────


@add(CHECKS)
def symlinks_hold_any_target() -> None:
    for number, target in enumerate(("x", "../..", "/abs/olute", "a" * 255, "b/" * 2000, "ö\n \t", ".")):
        os.symlink(target, f"l{number}")
        equal(os.readlink(f"l{number}"), target)
        found = os.lstat(f"l{number}")
        equal((stat.S_ISLNK(found.st_mode), found.st_size), (True, len(os.fsencode(target))))


@add(CHECKS)
def symlinks_are_followed() -> None:
    os.mkdir("d")
    put("d/f", b"text")
    os.symlink("d", "l")
    os.symlink("l/f", "m")
    equal(get("m"), b"text")
    equal(os.listdir("l"), ["f"])
    equal(os.stat("l/..").st_ino, os.stat(".").st_ino)


@add(CHECKS)
def symlink_errors() -> None:
    make_each()
    for name in ("file", "directory", "link", "dangling"):
        fails(errno.EEXIST, os.symlink, "x", name)
    fails(errno.ENOENT, os.symlink, "x", "none/l")
    fails(errno.ENOTDIR, os.symlink, "x", "file/l")
    fails(errno.ENOENT, os.symlink, "", "new")
    fails(errno.ENAMETOOLONG, os.symlink, "x", TOO_LONG)
    fails(errno.ENAMETOOLONG, os.symlink, "x" * 4096, "new")
    fails(errno.EINVAL, os.readlink, "file")
    fails(errno.EINVAL, os.readlink, "directory")
    fails(errno.ENOENT, os.readlink, "none")
    os.symlink("two", "one")
    os.symlink("one", "two")
    fails(errno.ELOOP, os.stat, "one")


# ── truncate ──────────────────────────────────────────────────────────────────────────────────────


@add(CHECKS)
def truncate_cuts_and_fills_with_zeros() -> None:
    put("f", b"0123456789")
    for size, content in ((4, b"0123"), (8, b"0123\0\0\0\0"), (0, b""), (3, b"\0\0\0")):
        os.truncate("f", size)
        equal(get("f"), content)
        equal(os.stat("f").st_size, size)


@add(CHECKS)
def ftruncate_works_on_an_open_file() -> None:
    with open("f", "w+b") as file:
        file.write(b"0123456789")
        file.flush()
        file.truncate(5)
        equal(file.tell(), 10)
        file.write(b"x")
        file.flush()
        equal(get("f"), b"01234\0\0\0\0\0x")


@add(CHECKS)
def truncate_changes_times() -> None:
    put("f", b"text")
    changes_times(BOTH, "f", os.truncate, "f", 2)


@add(CHECKS)
def truncate_errors() -> None:
    make_each()
    fails(errno.EISDIR, os.truncate, "directory", 0)
    fails(errno.ENOENT, os.truncate, "none", 0)
    fails(errno.ENOENT, os.truncate, "dangling", 0)
    fails(errno.ENOTDIR, os.truncate, "file/x", 0)
    fails(errno.EINVAL, os.truncate, "file", -1)
    fails(errno.ENAMETOOLONG, os.truncate, TOO_LONG, 0)
    fails((errno.EFBIG, errno.EINVAL, errno.ENOSPC), os.truncate, "file", (1 << 63) - 1)
    handle = os.open("file", os.O_RDONLY)
    fails((errno.EBADF, errno.EINVAL), os.ftruncate, handle, 0)
    os.close(handle)
    equal(get("file"), b"text")


# ── unlink ────────────────────────────────────────────────────────────────────────────────────────


@add(CHECKS)
def unlink_removes_files_and_links_not_their_targets() -> None:
    make_each()
    os.unlink("link")
    equal(get("file"), b"text")
    os.unlink("dangling")
    os.unlink("file")
    equal(os.listdir(), ["directory"])


@add(CHECKS)
def unlink_changes_its_parent() -> None:
    os.mkdir("d")
    put("d/f")
    changes_times(BOTH, "d", os.unlink, "d/f")


@add(CHECKS)
def unlink_errors() -> None:
    make_each()
    fails((errno.EISDIR, errno.EPERM), os.unlink, "directory")
    fails(errno.ENOENT, os.unlink, "none")
    fails(errno.ENOTDIR, os.unlink, "file/x")
    fails(errno.ENOTDIR, os.unlink, "file/")
    fails(errno.ENAMETOOLONG, os.unlink, TOO_LONG)


@add(CHECKS)
def an_unlinked_open_file_lives_until_it_is_closed() -> None:
    handle = os.open("f", os.O_CREAT | os.O_RDWR)
    os.write(handle, b"one")
    os.unlink("f")
    assert not os.path.exists("f")
    os.write(handle, b"two")
    os.fsync(handle)
    equal(os.pread(handle, 100, 0), b"onetwo")
    equal(os.fstat(handle).st_size, 6)
    os.ftruncate(handle, 1)
    equal(os.pread(handle, 100, 0), b"o")
    put("f", b"another")
    equal(os.pread(handle, 100, 0), b"o")
    os.close(handle)
    soon_listed(["f"])
    equal(get("f"), b"another")


# ── Times ─────────────────────────────────────────────────────────────────────────────────────────


@add(CHECKS)
def utimensat_sets_times_to_the_nanosecond() -> None:
    make_each()
    for path in ("file", "directory"):
        for when in (SECOND, 1_234_567_890_123_456_789, (1 << 31) * SECOND + 7, ((1 << 32) - 2) * SECOND):
            os.utime(path, ns=(when, when + 5))
            found = os.stat(path)
            equal((found.st_atime_ns, found.st_mtime_ns), (when, when + 5))


@add(CHECKS)
def utimensat_changes_ctime() -> None:
    put("f")
    changes_times(("st_ctime_ns",), "f", os.utime, "f", (1, 1))


@add(CHECKS)
def utimensat_now_is_now() -> None:
    put("f")
    os.utime("f", (1, 1))
    wait_for_clock()
    os.utime("f")
    found = os.stat("f")
    assert found.st_mtime_ns == found.st_atime_ns > 10**18


@add(CHECKS)
def utimensat_works_on_links_themselves_and_open_files() -> None:
    make_each()
    before = os.stat("file").st_mtime_ns
    os.utime("link", ns=(5, SECOND + 6), follow_symlinks=False)
    equal((os.lstat("link").st_mtime_ns, os.stat("file").st_mtime_ns), (SECOND + 6, before))
    with open("file", "rb") as file:
        os.utime(file.fileno(), ns=(7, SECOND + 8))
    equal(os.stat("link").st_mtime_ns, SECOND + 8)


@add(CHECKS)
def utimensat_errors() -> None:
    make_each()
    fails(errno.ENOENT, os.utime, "none")
    fails(errno.ENOENT, os.utime, "dangling")
    fails(errno.ENOTDIR, os.utime, "file/x")


@add(CHECKS)
def writing_changes_mtime_and_reading_does_not() -> None:
    put("f", b"text")
    with open("f", "r+b") as file:
        before = os.fstat(file.fileno())
        wait_for_clock()
        equal(file.read(), b"text")
        equal(os.fstat(file.fileno()).st_mtime_ns, before.st_mtime_ns)
        file.write(b"more")
        file.flush()
        os.fsync(file.fileno())
        after = os.fstat(file.fileno())
    assert after.st_mtime_ns > before.st_mtime_ns
    assert after.st_ctime_ns > before.st_ctime_ns


# ── Names and paths ───────────────────────────────────────────────────────────────────────────────


@add(CHECKS)
def names_of_255_bytes_work_everywhere_and_of_256_nowhere() -> None:
    put(LONG)
    os.rename(LONG, "x" + LONG[1:])
    os.rename("x" + LONG[1:], LONG)
    equal(os.listdir(), [LONG])
    os.unlink(LONG)
    os.mkdir(LONG)
    os.symlink(LONG, "l" + LONG[1:])
    put(f"l{LONG[1:]}/{LONG}", b"text")
    equal(get(f"{LONG}/{LONG}"), b"text")
    fails(errno.ENAMETOOLONG, os.stat, TOO_LONG)
    fails(errno.ENAMETOOLONG, os.stat, "ö" * 128)
    put("ö" * 127)


@add(CHECKS)
def every_byte_but_slash_and_nul_can_be_in_a_name() -> None:
    usable = bytes(byte for byte in range(1, 256) if byte != ord("/"))
    names = [usable[at : at + 8] for at in range(0, len(usable), 8)]
    for name in names:
        put(name)
    equal(sorted(os.listdir(b".")), sorted(names))
    for name in names:
        os.unlink(name)
    equal(os.listdir(), [])


@add(CHECKS)
def hostile_names_are_ordinary_names() -> None:
    names = [
        b"..a", b"...", b" ", b"a\nb", b"-rf", b"$(reboot)", b"`id`", b"'; DROP TABLE people; --", b"%2F",
        b"..%2f..%2fetc",
        b"\\..\\..", b"\xff\xfe", b"\xc0\xaf", b"\xed\xa0\x80", "é".encode(), "e\u0301".encode(), "\u202egnp".encode(),
        b"CON", b"nul.txt", b"a:b", b"~", b"*", b"?", b"\x7f", b"\x1b[2J", b"A", b"a", b"data.csv.", b"DATA.CSV",
        b"people", b"_delta_log", b"0.parquet", b".nfs000", b".query", b"schema.sql", b"x" * 255,
    ]  # fmt: skip
    for number, name in enumerate(names):
        put(name, b"%d" % number)
    equal(sorted(os.listdir(b".")), sorted(names))
    for number, name in enumerate(names):
        os.rename(name, b"moved")
        os.rename(b"moved", name)
        equal(get(name), b"%d" % number)
    for name in names:
        os.unlink(name)
        os.mkdir(name)
        os.rmdir(name)
        os.symlink(name, b"l")
        equal(os.readlink(b"l"), name)
        os.unlink(b"l")
    equal(os.listdir(), [])


@add(CHECKS)
def paths_are_resolved_step_by_step() -> None:
    os.makedirs("a/b")
    put("a/f", b"text")
    for path in ("a/../a/f", "./a//f", "a/b/../f", "a/./f", "a/b/../../a/f"):
        equal(get(path), b"text")
    for path in ("a/f/", "a/f/.", "a/f/..", "a/f/../f"):
        fails(errno.ENOTDIR, os.stat, path)
    for path in ("a/none/../f", "none/.."):
        fails(errno.ENOENT, os.stat, path)


@add(CHECKS)
def deep_trees_work() -> None:
    here = os.getcwd()
    for number in range(60):
        os.mkdir(f"level{number}")
        os.chdir(f"level{number}")
    put("f", b"deep")
    equal(os.getcwd().count("level"), 60)
    os.chdir("../" * 60)
    equal(os.getcwd(), here)
    path = "/".join(f"level{number}" for number in range(60))
    equal(get(f"{path}/f"), b"deep")


# ── What stat and friends tell ────────────────────────────────────────────────────────────────────


@add(CHECKS)
def stat_tells_the_type_size_and_number() -> None:
    make_each()
    here = os.stat(".")
    numbers = {os.lstat(name).st_ino for name in os.listdir()}
    equal(len(numbers), 4)
    for name, is_type in (("file", stat.S_ISREG), ("directory", stat.S_ISDIR), ("link", stat.S_ISLNK)):
        found = os.lstat(name)
        assert is_type(found.st_mode), name
        equal((found.st_dev, found.st_uid), (here.st_dev, here.st_uid))
    entries = {entry.name: entry.inode() for entry in os.scandir()}
    equal(entries, {name: os.lstat(name).st_ino for name in entries})


@add(CHECKS)
def statvfs_makes_sense() -> None:
    found = os.statvfs(".")
    equal(found.f_namemax, 255)
    assert 0 < found.f_bavail <= found.f_bfree <= found.f_blocks
    assert 0 < found.f_favail <= found.f_ffree <= found.f_files


@add(CHECKS)
def access_tells_the_owners_rights() -> None:
    make_each()
    assert os.access("file", os.R_OK | os.W_OK)
    assert not os.access("file", os.X_OK)
    assert os.access("directory", os.R_OK | os.W_OK | os.X_OK)
    os.chmod("file", 0o755)
    assert os.access("file", os.X_OK)
    fails(errno.ENOENT, os.stat, "none")


@add(CHECKS)
def extended_attributes_are_refused_and_space_is_reserved_by_zeros() -> None:
    put("f", b"text")
    fails((errno.EOPNOTSUPP, NOTSUPP), os.setxattr, "f", "user.a", b"1")
    with open("f", "r+b") as file:
        os.posix_fallocate(file.fileno(), 0, 10_000)
    equal(get("f"), b"text" + bytes(9_996))


if __name__ == "__main__":
    main(CHECKS)
