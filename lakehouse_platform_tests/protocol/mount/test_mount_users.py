"""Mounts of users who are signed in: each acts as its user, with the user's rights, as long as the sign-in lasts."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from lakehouse_platform.identity.mount_tickets import TICKET_LENGTH
from lakehouse_platform.model.actors import Actor
from lakehouse_platform.model.rights import Right
from lakehouse_platform.nfs.operations import Access, Stable, Status
from lakehouse_platform.nfs.tree.handles import HANDLE_SIZE, USER_HANDLE_SIZE
from lakehouse_platform.store.tables import SYSTEM_TABLES
from lakehouse_platform_tests.protocol.mount.conftest import CSV, SOON, Served, World, names, refused, within
from lakehouse_platform_tests.support import libnfs
from lakehouse_platform_tests.support.libnfs import LibNfs
from lakehouse_platform_tests.support.nfs_client import NFS, NfsClient
from lakehouse_platform_tests.support.nfs_xdr import opaque, u32, u64
from lakehouse_platform_tests.support.tables import PEOPLE, ids, people

# ── Tickets and handles ───────────────────────────────────────────────────────────────────────────


def test_a_users_handles_have_the_length_that_nfs_allows_and_the_owners_are_as_before(
    world: World, reader: Actor
) -> None:
    assert len(world.client(reader).root) == USER_HANDLE_SIZE == 64
    assert len(world.served.client().root) == HANDLE_SIZE == 32


@pytest.mark.parametrize("place", [0, 21, 22, 40, TICKET_LENGTH - 1])
def test_a_ticket_that_was_changed_lets_nobody_in(world: World, reader: Actor, place: int) -> None:
    path = world.path(reader)
    other = "A" if path[place + 1] != "A" else "B"
    changed = path[: place + 1] + other + path[place + 2 :]
    assert refused(Status.ACCES, lambda: world.served.connect().mount(changed))


def test_a_handle_of_which_a_bit_was_changed_is_none(world: World, reader: Actor) -> None:
    client = world.client(reader)
    view = client.walk("people/data/data.csv")
    for place in range(0, len(view), 5):
        forged = view[:place] + bytes([view[place] ^ 1]) + view[place + 1 :]
        assert refused(Status.BADHANDLE, lambda forged=forged: client.getattr(forged))


def test_a_ticket_of_a_lakehouse_without_accounts_is_refused(
    world: World, reader: Actor, served: Served
) -> None:
    path = world.path(reader)
    served.stop()
    served.server = served.server.__class__(served.table, port=0, state_dir=served.state)
    served.server.start()
    assert refused(Status.NOENT, lambda: served.connect().mount(path)), (
        "one table is served, and not the lakehouse"
    )
    assert served.connect().mount(path.replace("/lake", "/people"))


def test_a_ticket_of_a_sign_in_that_has_ended_is_refused(world: World, reader: Actor) -> None:
    path = world.path(reader)
    world.auth.revoke_session(str(reader.session_id))
    assert refused(Status.ACCES, lambda: world.served.connect().mount(path))


def test_a_user_that_the_machine_does_not_let_in_is_refused_with_a_ticket_too(
    world: World, reader: Actor
) -> None:
    with NfsClient(world.served.port, uid=54_321) as stranger:
        assert refused(Status.ACCES, lambda: stranger.mount(world.path(reader)))


# ── A reader ──────────────────────────────────────────────────────────────────────────────────────


def test_a_reader_sees_the_tables_of_the_grants_and_no_trace_of_others(world: World, reader: Actor) -> None:
    client = world.client(reader)
    assert names(client, client.root) == {b"people"}
    for hidden in ("orders", "users", "nothing"):
        assert refused(Status.NOENT, lambda hidden=hidden: client.lookup(client.root, hidden))
        assert refused(Status.NOENT, lambda hidden=hidden: world.client(reader, hidden))
    before = client.getattr(client.root)
    world.served.lake.store.create("more", PEOPLE)
    assert client.getattr(client.root) == before, "that a table came is not told"


def test_a_reader_reads_and_sees_what_may_not_be_changed(world: World, reader: Actor) -> None:
    client = world.client(reader)
    view, data = client.walk("people/data/data.csv"), client.walk("people/data")
    assert client.read_all(view) == CSV
    assert client.getattr(view).mode == 0o444
    assert client.getattr(data).mode == 0o555
    assert client.access(view, Access.READ | Access.MODIFY | Access.EXTEND) == Access.READ
    everything = Access.READ | Access.LOOKUP | Access.MODIFY | Access.EXTEND | Access.DELETE
    assert client.access(data, everything) == Access.READ | Access.LOOKUP


def test_a_reader_changes_nothing(world: World, reader: Actor) -> None:
    client = world.client(reader)
    table, data = client.walk("people"), client.walk("people/data")
    view = client.walk("people/data/data.csv")
    version = world.served.table.version()
    for act in (
        lambda: client.write(view, len(CSV), b"4,n4,30\n"),
        lambda: client.truncate(view, 0),
        lambda: client.create(data, "new"),
        lambda: client.create(client.root, "new"),
        lambda: client.mkdir(table, "new"),
        lambda: client.symlink(table, "new", "data"),
        lambda: client.remove(data, "data.csv"),
        lambda: client.rmdir(table, "data"),
        lambda: client.rename(data, "data.csv", table, "elsewhere"),
        lambda: client.rename(data, "data.csv", data, "elsewhere"),
    ):
        assert refused(Status.ACCES, act)
    assert client.read_all(view) == CSV
    assert world.served.table.version() == version
    denied = [row for row in world.audited(reader) if row["outcome"] == "denied"]
    assert denied
    assert {row["action"] for row in denied} == {"permission_denied"}
    assert {row["resource"] for row in denied} <= {"people", "*"}


@pytest.mark.skipif(shutil.which("nfs-ls") is None or not libnfs.is_there(), reason="no libnfs-utils")
def test_libnfs_mounts_as_a_user_too(world: World, reader: Actor, writer: Actor) -> None:
    ports = f"nfsport={world.served.port}&mountport={world.served.port}&version=3"
    url = f"nfs://127.0.0.1{world.path(reader)}/?{ports}"
    listing = subprocess.run(["nfs-ls", url], capture_output=True, timeout=60, check=True).stdout
    assert [line.split()[-1] for line in listing.splitlines()] == [b"people"]
    mount = LibNfs(world.served.port, f"{world.path(writer)}/people/data")
    with mount.open("/data.csv", os.O_WRONLY | os.O_APPEND) as file:
        file.write(b"4,n4,30\n")
    mount.close()
    assert within(20, lambda: ids(world.served.lake.store, "people") == [1, 2, 3, 4])
    assert world.served.table.history(1)[0].actor == writer.id


# ── A writer ──────────────────────────────────────────────────────────────────────────────────────


def test_an_editor_of_one_table_edits_it_and_is_named_in_the_commit_and_in_the_audit_log(
    world: World, writer: Actor
) -> None:
    client = world.client(writer)
    view = client.walk("people/data/data.csv")
    assert client.getattr(view).mode & 0o600 == 0o600
    client.write(view, len(CSV), b"4,n4,30\n5,n5,30\n")
    client.getattr(view)  # the close signal
    assert ids(world.served.lake.store, "people") == [1, 2, 3, 4, 5]
    newest = world.served.table.history(1)[0]
    assert newest.actor == writer.id
    written = [row for row in world.audited(writer) if row["action"] == "data_write"]
    assert [(row["resource"], row["row_count"], row["outcome"]) for row in written] == [("people", 2, "done")]
    assert f"version {newest.version}" in written[0]["details"]


def test_an_editors_rename_over_the_view_and_removal_are_audited(world: World, writer: Actor) -> None:
    client = world.client(writer)
    data = client.walk("people/data")
    made = client.create(data, "new.csv")
    client.write(made, 0, b"id,name,age\n1,n1,30\n2,other,30\n")
    client.rename(data, "new.csv", data, "data.csv")
    assert ids(world.served.lake.store, "people") == [1, 2]
    client.remove(data, "data.csv")
    assert within(SOON, lambda: ids(world.served.lake.store, "people") == [])
    assert world.served.table.history(1)[0].actor == writer.id
    written = [row for row in world.audited(writer) if row["action"] == "data_write"]
    assert [row["row_count"] for row in written] == [2, 2]


def test_a_row_that_does_not_fit_fails_for_a_user_and_its_bytes_are_the_users_alone(
    world: World, writer: Actor, reader: Actor
) -> None:
    client = world.client(writer)
    view = client.walk("people/data/data.csv")
    assert refused(Status.INVAL, lambda: client.write(view, len(CSV), b"x,wrong,30\n"))
    assert client.read_all(client.walk("people/.last_error"))
    kept = names(client, client.walk("people/.rejected"))
    assert kept
    for other in (world.client(reader), world.served.client()):
        assert names(other, other.walk("people/.rejected")) == set()
        assert b"wrong" not in other.read_all(other.walk("people/.last_error"))


def test_users_do_not_see_each_others_scratch_files(world: World, writer: Actor) -> None:
    other = world.user("other", {"people": Right.WRITE})
    mine, theirs, owner = world.client(writer), world.client(other), world.served.client()
    made = mine.create(mine.walk("people"), "notes.txt")
    mine.write(made, 0, b"private")
    assert b"notes.txt" in names(mine, mine.walk("people"))
    for client in (theirs, owner):
        assert b"notes.txt" not in names(client, client.walk("people"))
        assert refused(Status.NOENT, lambda client=client: client.walk("people/notes.txt"))
    again = world.client(writer)
    assert again.read_all(again.walk("people/notes.txt")) == b"private", "another mount of the same user"


def test_nothing_is_moved_from_one_users_mount_into_anothers(world: World, writer: Actor) -> None:
    other = world.user("other", {"people": Right.WRITE})
    mine, theirs = world.client(writer), world.client(other)
    here, there = mine.walk("people/data"), theirs.walk("people/data")
    mine.write(mine.create(here, "x"), 0, CSV)
    assert refused(Status.ACCES, lambda: mine.rename(here, "x", there, "data.csv"))
    assert refused(
        Status.ACCES, lambda: mine.rename(here, "x", world.served.client().walk("people/data"), "y")
    )
    assert b"x" in names(mine, here)


def test_a_handle_of_a_users_mount_acts_as_that_user_whoever_sends_it(
    world: World, writer: Actor, reader: Actor
) -> None:
    mine, theirs = world.client(writer), world.client(reader)
    theirs.write(mine.walk("people/data/data.csv"), len(CSV), b"4,n4,30\n")
    mine.getattr(mine.walk("people/data/data.csv"))
    assert world.served.table.history(1)[0].actor == writer.id


def test_moving_a_view_into_a_table_that_may_not_be_written_is_refused(world: World) -> None:
    user = world.user("mixed", {"people": Right.WRITE, "orders": Right.READ})
    client = world.client(user)
    people_data, orders_data = client.walk("people/data"), client.walk("orders/data")
    assert refused(Status.ACCES, lambda: client.rename(people_data, "data.csv", orders_data, "data.csv"))
    made = client.create(people_data, "new.csv")
    client.write(made, 0, CSV)
    assert refused(Status.ACCES, lambda: client.rename(people_data, "new.csv", orders_data, "data.csv"))
    assert ids(world.served.lake.store, "orders") == [7, 8]
    assert ids(world.served.lake.store, "people") == [1, 2, 3]


# ── Reading is audited ────────────────────────────────────────────────────────────────────────────


def test_a_file_that_is_read_in_many_pieces_is_one_entry_with_its_bytes_and_rows(
    world: World, reader: Actor
) -> None:
    client = world.client(reader)
    view = client.walk("people/data/data.csv")
    for _ in range(2):
        assert client.read_all(view, 5) == CSV
    assert client.read_all(client.walk("people/data/data.jsonl"))
    world.served.table.append(people(9))
    assert within(SOON, lambda: client.read_all(view).endswith(b"9,n9,30\n"))
    read = [row for row in world.audited(reader) if row["action"] == "data_read" and row["outcome"] == "done"]
    assert [(row["resource"], row["row_count"]) for row in read] == [
        ("people", 3),
        ("people", 3),
        ("people", 4),
    ]
    assert f"{len(CSV)} bytes" in read[0]["details"]


def test_a_data_file_that_is_read_is_an_entry_with_its_rows(world: World, reader: Actor) -> None:
    client = world.client(reader)
    (name,) = (one for one in names(client, client.walk("people/data")) if one.endswith(b".parquet"))
    data = client.read_all(client.walk(f"people/data/{name.decode()}"))
    read = [row for row in world.audited(reader) if row["action"] == "data_read"]
    assert [(row["row_count"], row["details"]) for row in read] == [(3, f"parquet of {len(data)} bytes")]


def test_reads_that_are_sent_together_are_one_opening(world: World, reader: Actor) -> None:
    client = world.client(reader)
    view = client.walk("people/data/data.csv")
    calls = [client.send(NFS, 6, opaque(view) + u64(0) + u32(1 << 20)) for _ in range(16)]
    replies = [client.receive() for _ in calls]
    assert all(reply.u32() == Status.OK for reply in replies)
    assert len([row for row in world.audited(reader) if row["action"] == "data_read"]) == 1


def test_the_owner_reads_and_writes_as_before_and_nothing_is_audited(world: World) -> None:
    client = world.served.client()
    view = client.walk("people/data/data.csv")
    assert client.read_all(view) == CSV
    client.write(view, len(CSV), b"4,n4,30\n")
    client.getattr(view)
    assert world.served.table.history(1)[0].actor == "owner"
    assert refused(Status.NOENT, lambda: client.lookup(client.root, "users"))
    assert not set(names(client, client.root)) & {name.encode() for name in SYSTEM_TABLES}
    assert world.audited() == []


# ── The end of a sign-in ──────────────────────────────────────────────────────────────────────────


def void(client: NfsClient, view: bytes, data: bytes) -> bool:
    """Tell whether nothing works any more, each with the status that its procedure may have."""
    return (
        refused(Status.ACCES, lambda: client.read(view))
        and refused(Status.ACCES, lambda: client.lookup(data, "data.csv"))
        and refused(Status.ACCES, lambda: client.lookup(client.root, "people"))
        and refused(Status.ACCES, lambda: client.readdir(data))
        and refused(Status.ACCES, lambda: client.write(view, len(CSV), b"4,n4,30\n"))
        and refused(Status.ACCES, lambda: client.create(data, "new"))
        and refused(Status.ACCES, lambda: client.remove(data, "data.csv"))
        and refused(Status.ACCES, lambda: client.access(view, Access.READ))
        and refused(Status.IO, lambda: client.commit(view))
        and refused(Status.STALE, lambda: client.getattr(view))
        and refused(Status.STALE, lambda: client.fsstat(view))
        and refused(Status.STALE, lambda: client.fsinfo(view))
        and refused(Status.STALE, lambda: client.pathconf(view))
    )


@pytest.mark.parametrize("end", ["logout", "disable", "role gone"])
def test_a_mount_is_void_when_its_sign_in_ends(world: World, writer: Actor, end: str) -> None:
    client = world.client(writer)
    data, view = client.walk("people/data"), client.walk("people/data/data.csv")
    assert client.read_all(view) == CSV
    if end == "logout":
        world.auth.revoke_session(str(writer.session_id))
    elif end == "disable":
        world.auth.disable(writer.id)
    else:
        world.auth.logout_everywhere(writer.id)
    assert within(SOON, lambda: refused(Status.STALE, lambda: client.getattr(view)))
    assert void(client, view, data)
    assert world.served.client().read_all(world.served.clients[-1].walk("people/data/data.csv")) == CSV
    denied = [row for row in world.audited(writer) if row["outcome"] == "denied"]
    assert denied


def test_a_draft_of_a_sign_in_that_has_ended_is_not_published(world: World, writer: Actor) -> None:
    client = world.client(writer)
    view = client.walk("people/data/data.csv")
    client.write(view, len(CSV), b"4,n4,30\n", Stable.UNSTABLE)  # not published by itself for a while
    world.auth.revoke_session(str(writer.session_id))
    denied = [row for row in world.audited(writer) if row["action"] == "permission_denied"]
    assert ids(world.served.lake.store, "people") == [1, 2, 3]
    assert [row["resource"] for row in denied] == ["people"]


def test_a_right_that_is_taken_away_is_gone_from_the_mount(world: World, writer: Actor) -> None:
    client = world.client(writer)
    view = client.walk("people/data/data.csv")
    world.auth.grant(writer.id, "people", Right.READ)
    assert within(SOON, lambda: client.access(view, Access.MODIFY) == Access(0))
    assert refused(Status.ACCES, lambda: client.write(view, len(CSV), b"4,n4,30\n"))
    assert client.read_all(view) == CSV
    world.auth.revoke_grant(writer.id, "people")
    assert within(SOON, lambda: refused(Status.ACCES, lambda: client.read(view)))
    assert names(client, client.root) == set()
    world.auth.grant(writer.id, "people", Right.READ)
    assert within(SOON, lambda: names(client, client.root) == {b"people"})


def test_a_mount_goes_on_after_a_restart_of_the_server(world: World, reader: Actor) -> None:
    client = world.client(reader)
    view = client.walk("people/data/data.csv")
    world.served.stop()
    world.served.start()
    assert world.served.connect().read_all(view) == CSV


def test_what_a_user_had_written_when_the_server_stopped_is_the_users_after_a_restart(
    world: World, writer: Actor
) -> None:
    client = world.client(writer)
    view = client.walk("people/data/data.csv")
    client.truncate(view, 0)
    client.write(view, 0, b"id,name,age\n1,n1,30\n2,n2,30\n3,n3,30\n4,n")  # not whole, so it is kept
    world.served.stop()
    world.served.start()
    client = world.served.connect()
    client.write(view, 36, b"4,n4,30\n")
    client.getattr(view)
    assert within(SOON, lambda: ids(world.served.lake.store, "people") == [1, 2, 3, 4])
    assert world.served.table.history(1)[0].actor == writer.id
