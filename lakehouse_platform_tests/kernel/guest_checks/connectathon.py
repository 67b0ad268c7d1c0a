"""The basic, general and special tests of Connectathon, and an fsx, for scratch files of a mount.

Takes a second directory: the same one through another mount, which is another client to the server.
"""

from __future__ import annotations

import errno
import hashlib
import os
import random
import sys

from lakehouse_platform_tests.kernel.guest_checks.framework import (
    Checks,
    add,
    equal,
    fails,
    get,
    in_parallel,
    main,
    put,
    soon_listed,
    succeeds,
)

CHECKS: Checks = {}
BLOCK = 1 << 16


def elsewhere() -> str:
    """Return the working directory as the other mount has it."""
    return os.path.join(sys.argv[2], os.path.relpath(os.getcwd(), sys.argv[1]))


def noise(seed: int, size: int) -> bytes:
    return random.Random(seed).randbytes(size)


# ── Basic ─────────────────────────────────────────────────────────────────────────────────────────


def plant(depth: int, files: int, directories: int) -> int:
    """Make a tree and return the number of its entries."""
    for number in range(files):
        put(f"file.{number}", b"%d" % number)
    count = files
    for number in range(directories if depth else 0):
        os.mkdir(f"dir.{number}")
        os.chdir(f"dir.{number}")
        count += 1 + plant(depth - 1, files, directories)
        os.chdir("..")
    return count


def fell(directory: str) -> int:
    """Remove what is in a tree and return the number of entries."""
    count = 0
    for path, directories, files in os.walk(directory, topdown=False):
        for name in files:
            os.unlink(os.path.join(path, name))
        for name in directories:
            os.rmdir(os.path.join(path, name))
        count += len(files) + len(directories)
    return count


@add(CHECKS)
def basic_1_and_2_trees_are_made_and_removed() -> None:
    made = plant(2, 3, 3)
    found = sum(len(directories) + len(files) for _, directories, files in os.walk("."))
    equal(found, made)
    equal(fell("."), made)
    equal(os.listdir(), [])


@add(CHECKS)
def basic_3_getcwd_and_parents() -> None:
    here = os.getcwd()
    numbers: list[int] = []
    for number in range(10):
        numbers.append(os.stat(".").st_ino)
        os.mkdir(f"d{number}")
        os.chdir(f"d{number}")
        equal(os.stat("..").st_ino, numbers[-1])
    for number in reversed(numbers):
        os.chdir("..")
        equal(os.stat(".").st_ino, number)
    equal(os.getcwd(), here)


@add(CHECKS)
def basic_4_attributes_are_set_and_got() -> None:
    for number in range(10):
        put(f"f{number}")
    for _ in range(5):
        for number in range(10):
            os.chmod(f"f{number}", 0)
            equal(os.stat(f"f{number}").st_mode & 0o777, 0)
            os.chmod(f"f{number}", 0o666)
            equal(os.stat(f"f{number}").st_mode & 0o777, 0o666)


@add(CHECKS)
def basic_5_a_big_file_is_written_and_read() -> None:
    data = noise(5, 4 << 20)
    with open("big", "wb", buffering=0) as file:
        for at in range(0, len(data), BLOCK):
            equal(file.write(data[at : at + BLOCK]), BLOCK)
    equal(os.stat("big").st_size, len(data))
    there = elsewhere()
    equal(hashlib.sha256(get(f"{there}/big")).digest(), hashlib.sha256(data).digest())
    with open("big", "r+b", buffering=0) as file:
        for at in (1, 4095, 123_457, 3 << 20, len(data) - 10):
            file.seek(at)
            equal(file.read(7), data[at : at + 7])
    os.unlink("big")


@add(CHECKS)
def basic_6_entries_are_listed_once_while_they_are_removed() -> None:
    names = {f"entry-{number:04}-{'x' * (number % 200)}" for number in range(100)}
    for name in names:
        put(name)
    seen: list[str] = []
    with os.scandir() as entries:
        for entry in entries:
            seen.append(entry.name)
            os.unlink(entry.name)
    equal(len(seen), len(set(seen)))
    equal(set(seen), names)
    equal(os.listdir(), [])


@add(CHECKS)
def basic_6b_entries_that_stay_are_listed_while_others_come_and_go() -> None:
    for number in range(60):
        put(f"stay-{number:03}-{'x' * 200}")
        put(f"go-{number:03}-{'x' * 200}")
    seen: list[str] = []
    with os.scandir() as entries:
        for number, entry in enumerate(entries):
            seen.append(entry.name)
            if number < 60:
                os.unlink(f"go-{number:03}-{'x' * 200}")
                put(f"new-{number:03}")
    equal(len(seen), len(set(seen)))
    equal(sum(name.startswith("stay") for name in seen), 60)


@add(CHECKS)
def basic_7_renames_by_the_dozen() -> None:
    put("a", b"text")
    for number in range(50):
        os.rename("a", f"b{number}")
        fails(errno.ENOENT, os.stat, "a")
        os.rename(f"b{number}", "a")
    equal((os.listdir(), get("a")), (["a"], b"text"))


@add(CHECKS)
def basic_8_links_by_the_dozen() -> None:
    for number in range(50):
        os.symlink(f"target {number}", "l")
        equal(os.readlink("l"), f"target {number}")
        os.unlink("l")
    equal(os.listdir(), [])


@add(CHECKS)
def basic_9_statfs() -> None:
    for _ in range(50):
        assert os.statvfs(".").f_blocks > 0


# ── Special ───────────────────────────────────────────────────────────────────────────────────────


@add(CHECKS)
def special_open_unlink_write_read() -> None:
    data = noise(1, 300_000)
    handle = os.open("f", os.O_CREAT | os.O_RDWR)
    os.unlink("f")
    os.write(handle, data)
    os.fsync(handle)
    equal(os.pread(handle, len(data) + 1, 0), data)
    os.close(handle)
    soon_listed([])


@add(CHECKS)
def special_open_rename_over_write_read() -> None:
    handle = os.open("f", os.O_CREAT | os.O_RDWR)
    put("g", b"other")
    os.rename("g", "f")
    os.write(handle, b"text")
    os.fsync(handle)
    equal((os.pread(handle, 10, 0), get("f")), (b"text", b"other"))
    os.close(handle)
    soon_listed(["f"])


@add(CHECKS)
def special_open_chmod_write_read() -> None:
    handle = os.open("f", os.O_CREAT | os.O_RDWR)
    os.chmod("f", 0)
    os.write(handle, b"text")
    os.fsync(handle)
    equal(os.pread(handle, 10, 0), b"text")
    os.close(handle)


@add(CHECKS)
def special_negative_seek() -> None:
    put("f", b"text")
    handle = os.open("f", os.O_RDONLY)
    fails(errno.EINVAL, os.lseek, handle, -1, os.SEEK_SET)
    fails(errno.EINVAL, os.pread, handle, 1, -1)
    os.close(handle)


@add(CHECKS)
def special_holes_are_zeros() -> None:
    with open("f", "wb", buffering=0) as file:
        for number in range(1, 40):
            file.seek(number * 10_007)
            file.write(b"%d" % number)
    found = get(f"{elsewhere()}/f")
    wanted = bytearray(39 * 10_007 + 2)
    for number in range(1, 40):
        text = b"%d" % number
        wanted[number * 10_007 : number * 10_007 + len(text)] = text
    equal(found, bytes(wanted))


@add(CHECKS)
def special_bytes_behind_four_gigabytes() -> None:
    far = (4 << 30) + 12_345
    handle = os.open("f", os.O_CREAT | os.O_RDWR)
    try:
        os.pwrite(handle, b"far", far)
        os.fsync(handle)
        equal(os.fstat(handle).st_size, far + 3)
        equal(os.pread(handle, 10, far - 2), b"\0\0far")
        os.ftruncate(handle, 10)
        equal(os.pread(handle, 20, 0), bytes(10))
    finally:
        os.close(handle)
        os.unlink("f")


@add(CHECKS)
def special_a_listing_begins_again() -> None:
    for number in range(100):
        put(f"f{number:03}-{'x' * 100}")
    handle = os.open(".", os.O_RDONLY)
    first = os.listdir(handle)
    put("new")
    os.unlink(first[0])
    again = os.listdir(handle)
    os.close(handle)
    equal(sorted(again), sorted([*first[1:], "new"]))


@add(CHECKS)
def special_many_stats_at_once() -> None:
    for number in range(50):
        put(f"f{number}", b"x" * number)

    def look() -> None:
        for _ in range(5):
            for number in range(50):
                equal(os.stat(f"f{number}").st_size, number)

    in_parallel(look, look, look)


# ── Races of two clients ──────────────────────────────────────────────────────────────────────────


def winners(make: str, rounds: int) -> list[str]:
    """Let each of two mounts make the same names at once, and return who got each."""
    here, there = os.getcwd(), elsewhere()

    def make_one(path: str, log: str) -> None:
        if make == "file":
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        elif make == "directory":
            os.mkdir(path)
        else:
            os.symlink(log, path)

    def contend(directory: str, log: str) -> None:
        won = [str(n) for n in range(rounds) if succeeds(make_one, f"{directory}/n{n}", log)]
        put(f"/tmp/{log}", " ".join(won).encode())

    in_parallel(*(lambda d=d, i=i: contend(d, f"won{i}") for i, d in enumerate((here, there, here, there))))
    return sorted(number for i in range(4) for number in get(f"/tmp/won{i}").decode().split())


@add(CHECKS)
def race_exclusive_creation_has_one_winner() -> None:
    equal(winners("file", 40), sorted(map(str, range(40))))


@add(CHECKS)
def race_mkdir_has_one_winner() -> None:
    equal(winners("directory", 30), sorted(map(str, range(30))))


@add(CHECKS)
def race_symlink_has_one_winner() -> None:
    equal(winners("link", 30), sorted(map(str, range(30))))


@add(CHECKS)
def race_rename_has_one_winner() -> None:
    for number in range(30):
        put(f"n{number}")
    here, there = os.getcwd(), elsewhere()

    def contend(directory: str, log: str) -> None:
        won = [
            str(n) for n in range(30) if succeeds(os.rename, f"{directory}/n{n}", f"{directory}/{log}-{n}")
        ]
        put(f"/tmp/{log}", " ".join(won).encode())

    in_parallel(lambda: contend(here, "won0"), lambda: contend(there, "won1"))
    equal(len(os.listdir()), 30)
    equal(
        sorted(get("/tmp/won0").decode().split() + get("/tmp/won1").decode().split()),
        sorted(map(str, range(30))),
    )


@add(CHECKS)
def closing_shows_the_bytes_to_the_next_that_opens() -> None:
    there = elsewhere()
    for number in range(8):
        put("f", noise(number, 1000 + number))
        equal(get(f"{there}/f"), noise(number, 1000 + number))
        put(f"{there}/f", noise(~number, 500 + number))
        equal(get("f"), noise(~number, 500 + number))


@add(CHECKS)
def appends_of_processes_of_one_mount_do_not_overwrite_each_other() -> None:
    put("f")

    def append(mark: bytes) -> None:
        handle = os.open("f", os.O_WRONLY | os.O_APPEND)
        for _ in range(50):
            os.write(handle, mark * 10)
        os.close(handle)

    in_parallel(lambda: append(b"a"), lambda: append(b"b"))
    found = get("f")
    equal((len(found), found.count(b"a"), found.count(b"b")), (1000, 500, 500))


# ── fsx ───────────────────────────────────────────────────────────────────────────────────────────

MOST = 200_000


def exercise(seed: int, steps: int, path: str, other: str) -> None:
    """Do random things to a file and compare it with what it must be after each."""
    dice, model = random.Random(seed), bytearray()
    handle = os.open(path, os.O_CREAT | os.O_RDWR)
    for step in range(steps):
        what = dice.choice(
            ["write", "write", "read", "read", "cut", "grow", "reopen", "sync", "append", "size"]
        )
        at, count = dice.randrange(MOST), dice.choice((1, 13, 512, 4096, 4097, 20_000, 65_536))
        where = f"seed {seed} step {step}: {what} {count} at {at}"
        if what == "append":
            what, at = "write", len(model)
        if what == "write" and at + count <= MOST + 65_536:
            data = dice.randbytes(count)
            model.extend(bytes(max(0, at - len(model))))
            model[at : at + count] = data
            assert os.pwrite(handle, data, at) == count, where
        elif what == "read":
            assert os.pread(handle, count, at) == model[at : at + count], where
        elif what == "cut" and model:
            size = dice.randrange(len(model))
            del model[size:]
            os.ftruncate(handle, size)
        elif what == "grow" and len(model) <= at:
            model.extend(bytes(at - len(model)))
            os.ftruncate(handle, at)
        elif what == "reopen":
            os.close(handle)
            assert get(other) == model, f"{where}: as the other mount has it"
            handle = os.open(path, os.O_RDWR)
        elif what == "sync":
            os.fsync(handle)
        assert os.fstat(handle).st_size == len(model), f"{where}: size"
    os.close(handle)
    assert get(path) == model, f"seed {seed}: at the end"


@add(CHECKS)
def fsx_one() -> None:
    exercise(1, 500, "f", f"{elsewhere()}/f")


@add(CHECKS)
def fsx_three_at_once() -> None:
    there = elsewhere()
    in_parallel(*(lambda n=n: exercise(n, 200, f"f{n}", f"{there}/f{n}") for n in (2, 3, 4)))


@add(CHECKS)
def fsx_of_an_unlinked_file() -> None:
    put("kept")
    handle, model, dice = os.open("f", os.O_CREAT | os.O_RDWR), bytearray(), random.Random(9)
    os.unlink("f")
    for _ in range(100):
        at, data = dice.randrange(50_000), dice.randbytes(dice.randrange(1, 5000))
        model.extend(bytes(max(0, at - len(model))))
        model[at : at + len(data)] = data
        os.pwrite(handle, data, at)
    os.fsync(handle)
    equal(os.pread(handle, 1 << 20, 0), bytes(model))
    os.close(handle)
    soon_listed(["kept"])


if __name__ == "__main__":
    main(CHECKS)
