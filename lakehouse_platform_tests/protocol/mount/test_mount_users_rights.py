"""SQL through the mounts of users, administrators in theirs, and the platform's own tables."""

from __future__ import annotations

import pytest

from lakehouse_platform.model.actors import Actor, Role
from lakehouse_platform.model.rights import Right
from lakehouse_platform.nfs.operations import Stable, Status
from lakehouse_platform.nfs.tree.query_view import MOST_FILES
from lakehouse_platform.store.tables import SYSTEM_TABLES
from lakehouse_platform_tests.protocol.mount.conftest import SOON, World, names, refused, within
from lakehouse_platform_tests.support.nfs_client import NFS, NfsClient
from lakehouse_platform_tests.support.nfs_xdr import opaque
from lakehouse_platform_tests.support.tables import PEOPLE, ids

# ── SQL ───────────────────────────────────────────────────────────────────────────────────────────


def ask(client: NfsClient, text: bytes) -> bytes:
    """Write a query to `.query` and read what it shows then."""
    query = client.walk("people/.query")
    client.truncate(query, 0)
    try:
        client.write(query, 0, text)
    finally:
        shown = client.read_all(query)
    return shown


def test_a_reader_queries_what_may_be_read(world: World, reader: Actor) -> None:
    client = world.client(reader)
    assert client.getattr(client.walk("people/.query")).mode & 0o200
    assert ask(client, b"SELECT name FROM data WHERE id > 1 ORDER BY id") == b"name\nn2\nn3\n"
    assert ask(client, b"SHOW TABLES") == b"table_name\ndata\npeople\n"
    done = [row for row in world.audited(reader) if row["action"] == "sql_query"]
    assert [(row["resource"], row["row_count"], row["outcome"]) for row in done][:1] == [
        ("people", 2, "done")
    ]


@pytest.mark.parametrize("name", ["orders", "users", "sessions", "nothing"])
def test_a_query_that_reaches_for_another_table_is_refused_whether_it_exists_or_not(
    world: World, reader: Actor, name: str
) -> None:
    client = world.client(reader)
    text = f"SELECT count(*) FROM data, {name}".encode()
    assert refused(Status.INVAL, lambda: ask(client, text))
    shown = client.read_all(client.walk("people/.query"))
    assert shown.replace(name.encode(), b"?").startswith(b"You may not run SQL over a table on ?.")
    denied = [row for row in world.audited(reader) if row["outcome"] == "denied"]
    assert [(row["action"], row["resource"]) for row in denied] == [("permission_denied", name)]


def test_a_reader_may_use_the_query_directory(world: World, reader: Actor) -> None:
    client = world.client(reader)
    queries = client.walk("people/.query.d")
    client.write(client.create(queries, "good.sql"), 0, b"SELECT count(*) AS n FROM data")
    client.write(client.create(queries, "bad.sql"), 0, b"SELECT * FROM orders")
    assert client.read_all(client.walk("people/.query.d/good.csv")) == b"n\n3\n"
    assert b"You may not" in client.read_all(client.walk("people/.query.d/bad.err"))
    owner = world.served.client()
    assert names(owner, owner.walk("people/.query.d")) == set()


@pytest.mark.parametrize("last", ["", " LIMIT 1"])
def test_a_query_with_two_columns_of_one_name_shows_both(world: World, reader: Actor, last: str) -> None:
    text = f"SELECT a.id, b.id FROM data a JOIN people b ON a.id + 1 = b.id ORDER BY a.id{last}".encode()
    assert ask(world.client(reader), text).startswith(b"id,id\n1,2\n")


def test_what_a_query_shows_stays_while_others_look_at_theirs(world: World, reader: Actor) -> None:
    mine = world.client(reader)
    query = mine.walk("people/.query")
    mine.truncate(query, 0)
    mine.write(query, 0, b"SELECT 42 AS n", Stable.UNSTABLE)
    for _ in range(MOST_FILES + 1):
        other = world.client(reader)
        other.getattr(other.walk("people/.query"))
        other.close()
    mine.commit(query)
    assert mine.read_all(query) == b"n\n42\n"


# ── What is seen ──────────────────────────────────────────────────────────────────────────────────


def test_tables_that_are_looked_up_together_are_all_found(world: World) -> None:
    tables = [f"t{number}" for number in range(40)]
    for name in tables:
        world.served.lake.store.create(name, PEOPLE)
    user = world.user("many", dict.fromkeys(tables, Right.READ))
    world.served.stop()
    world.served.start()  # it has not seen any of them yet
    clients = [world.client(user) for _ in range(4)]
    for name in tables:
        for client in clients:
            client.send(NFS, 3, opaque(client.root) + opaque(name.encode()))
    answers = {client.receive().u32() for client in clients for _ in tables}
    assert answers == {Status.OK}
    assert {row["outcome"] for row in world.audited(user)} == {"done"}, "no refusal"


def test_a_view_that_was_moved_elsewhere_is_gone_with_the_right_to_read_its_table(world: World) -> None:
    user = world.user("mixed", {"people": Right.WRITE, "orders": Right.WRITE})
    client = world.client(user)
    orders = client.walk("orders/data")
    client.rename(client.walk("people/data"), "data.csv", orders, "kept.csv")
    assert b"kept.csv" in names(client, orders)
    world.auth.revoke_grant(user.id, "people")
    assert within(SOON, lambda: b"kept.csv" not in names(client, orders))
    assert refused(Status.NOENT, lambda: client.lookup(orders, "kept.csv"))
    assert refused(Status.ACCES, lambda: client.rename(orders, "kept.csv", orders, "data.csv"))
    assert ids(world.served.lake.store, "orders") == [7, 8]


# ── Administrators and system tables ──────────────────────────────────────────────────────────────


@pytest.mark.parametrize("role", [Role.ADMIN, Role.SUPERADMIN])
def test_an_administrator_sees_the_systems_tables_without_secrets_and_changes_none(
    world: World, role: Role
) -> None:
    admin = world.user("root", role=role)
    client = world.client(admin)
    assert names(client, client.root) == {b"people", b"orders", *(name.encode() for name in SYSTEM_TABLES)}
    table = client.walk("users")
    assert names(client, table) == {b"data", b"schema.sql"}
    assert names(client, client.walk("users/data")) == {b"data.csv", b"data.json", b"data.jsonl"}
    shown = client.read_all(client.walk("users/data/data.csv"))
    assert b"root@example.com" in shown
    texts = [
        shown,
        *(client.read_all(client.walk(f"users/{name}")) for name in ("schema.sql", "data/data.json")),
    ]
    for secret in (*SYSTEM_TABLES["users"].secret_columns, "$argon2"):
        assert not any(secret.encode() in text for text in texts)
    view = client.walk("users/data/data.csv")
    assert client.getattr(view).mode == 0o444
    assert refused(Status.ROFS, lambda: client.write(view, 0, b"x"))
    assert refused(Status.ROFS, lambda: client.remove(client.walk("users/data"), "data.csv"))
    assert refused(Status.ROFS, lambda: client.create(client.walk("users/data"), "x"))
    assert refused(Status.NOENT, lambda: client.lookup(table, ".query"))
    assert refused(Status.NOENT, lambda: client.lookup(table, ".versions"))


def test_handles_of_the_systems_tables_outlive_the_server(world: World) -> None:
    view = world.client(world.user("root", role=Role.SUPERADMIN)).walk("grants/data/data.csv")
    world.served.stop()
    world.served.start()
    assert world.served.connect().read_all(view).startswith(b"grant_id,")


def test_an_administrator_edits_every_table_and_makes_scratch_files_at_the_root(world: World) -> None:
    client = world.client(world.user("boss", role=Role.ADMIN))
    view = client.walk("orders/data/data.csv")
    before = client.read_all(view)
    client.write(view, len(before), b"9,n9,30\n")
    client.getattr(view)
    assert ids(world.served.lake.store, "orders") == [7, 8, 9]
    client.mkdir(client.root, "somewhere")
    assert b"somewhere" in names(client, client.root)
