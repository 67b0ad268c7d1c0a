"""What is shown of a table, and what is new since a version that was seen."""

from __future__ import annotations

from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform.store.tables import SYSTEM_TABLES
from lakehouse_platform.upkeep.status import new_commits, registered_tables, table_status
from lakehouse_platform_tests.support.tables import PEOPLE, people


def test_the_status_has_state_commits_and_growth(store: DeltaStore) -> None:
    store.create("people", PEOPLE)
    store.append("people", people(1, 2, 3))
    store.delete("people", "id = 1")
    store.compact("people")
    status = table_status(store, "people")

    assert status.info.rows == 2
    assert status.commits[-1].version == 0
    assert [count.rows for count in status.growth][:3] == [0, 3, 2]
    assert status.spec is None


def test_growth_follows_a_merge(store: DeltaStore) -> None:
    store.create("people", PEOPLE, primary_key=["id"])
    store.append("people", people(1, 2))
    store.merge("people", people(2, 3, 4))

    assert [count.rows for count in table_status(store, "people").growth][-2:] == [2, 4]


def test_a_platform_tables_status_has_its_definition(store: DeltaStore) -> None:
    store.ensure(SYSTEM_TABLES["users"])

    assert table_status(store, "users").spec is registered_tables()["users"]


def test_new_commits_are_those_after_the_version_seen(store: DeltaStore) -> None:
    store.create("people", PEOPLE)
    store.append("people", people(1))
    store.append("people", people(2))
    news = new_commits(store, "people", 0)

    assert news is not None
    assert (news.version, [commit.version for commit in news.commits]) == (2, [2, 1])
    assert new_commits(store, "people", 2) is None


def test_a_table_not_seen_before_brings_its_recent_commits(store: DeltaStore) -> None:
    store.create("people", PEOPLE)
    news = new_commits(store, "people", None)

    assert news is not None
    assert [commit.version for commit in news.commits] == [0]


def test_a_table_that_was_dropped_and_made_anew_is_new_again(store: DeltaStore) -> None:
    store.create("people", PEOPLE)
    store.append("people", people(1))
    store.drop("people")
    store.create("people", PEOPLE)
    news = new_commits(store, "people", 1)

    assert news is not None
    assert news.version == 0
