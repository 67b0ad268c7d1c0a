"""Accounts: unique however many processes register them, and changed without losing anything else."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lakehouse_platform.errors import (
    InvalidArgumentError,
    InvalidNameError,
    InvalidRowsError,
    PermissionDeniedError,
    UserExistsError,
    UserNotFoundError,
)
from lakehouse_platform.identity.users import UserRecord, Users
from lakehouse_platform.model.actors import AccountStatus, Role, SubscriptionTier
from lakehouse_platform.store.delta_store import DeltaStore
from lakehouse_platform_tests.support.identity_worker import NOW, together, user

LATER = datetime(2026, 4, 1, tzinfo=UTC)


@pytest.fixture
def users(identity_store: DeltaStore) -> Users:
    return Users(identity_store, clock=lambda: LATER)


def version(store: DeltaStore) -> int:
    return store.table("users").version()


def test_an_account_is_one_commit_and_comes_back_as_it_was(identity_store: DeltaStore, users: Users) -> None:
    given = user(
        "Euler", "Leonhard@Basel.Example", role=Role.ADMIN, tier=SubscriptionTier.PRO, last_login_at=NOW
    )
    before = version(identity_store)
    made = users.create(given)
    assert version(identity_store) == before + 1
    assert made == replace(given, email="Leonhard@basel.example")
    assert users.by_id(given.user_id) == made
    assert Users(identity_store).by_id(given.user_id) == made


def test_an_account_is_found_by_either_name_in_any_capitals(users: Users) -> None:
    made = users.create(user("Euler", "leonhard@basel.example"))
    for login in ("euler", "EULER", " Euler ", "Leonhard@Basel.Example", "LEONHARD@BASEL.EXAMPLE"):
        assert users.by_login(login) == made


@pytest.mark.parametrize(
    "login", ["", "e", "eule", "euler2", "x@y.z", "' OR '1'='1", "leonhard@basel", "@", "\ud800abc"]
)
def test_nobody_is_found_by_another_name(users: Users, login: str) -> None:
    users.create(user("Euler", "leonhard@basel.example"))
    assert users.by_login(login) is None


@pytest.mark.parametrize(
    ("username", "email"),
    [("euler", "new@basel.example"), ("new", "LEONHARD@BASEL.example"), ("EULER", "Leonhard@Basel.Example")],
)
def test_a_name_is_taken_once_and_which_one_is_not_told(
    identity_store: DeltaStore, users: Users, username: str, email: str
) -> None:
    users.create(user("Euler", "leonhard@basel.example"))
    before = version(identity_store)
    with pytest.raises(UserExistsError, match="user name or e-mail address") as caught:
        users.create(user(username, email))
    assert caught.value.details == {}
    assert version(identity_store) == before


def test_an_id_is_taken_once(users: Users) -> None:
    made = users.create(user("euler", "leonhard@basel.example"))
    with pytest.raises(UserExistsError):
        users.create(replace(user("other", "other@basel.example"), user_id=made.user_id))


@pytest.mark.parametrize(
    ("username", "email"),
    [("a", "a@b.de"), ("abc", "a"), ("a b c", "a@b.de"), ("Owner", "a@b.de"), ("anonymous", "a@b.de")],
)
def test_a_name_that_is_not_allowed_is_refused(users: Users, username: str, email: str) -> None:
    with pytest.raises(InvalidNameError):
        users.create(user(username, email))
    assert users.count() == 0


def test_a_change_keeps_all_other_fields_and_all_other_accounts(
    identity_store: DeltaStore, users: Users
) -> None:
    one = users.create(user("euler", "leonhard@basel.example", tier=SubscriptionTier.PRO))
    two = users.create(user("gauss", "carl@goettingen.example", role=Role.ADMIN))
    before = version(identity_store)
    changed = users.change(one.user_id, password_hash="new", role=Role.SUPERADMIN)
    assert version(identity_store) == before + 1
    assert changed == replace(one, password_hash="new", role=Role.SUPERADMIN, updated_at=LATER)
    assert users.by_id(one.user_id) == changed
    assert users.by_id(two.user_id) == two
    stored = {row["user_id"]: row for row in identity_store.scan("users").to_pylist()}
    assert stored[one.user_id] == changed.to_row()
    assert stored[two.user_id] == two.to_row()


def test_every_field_that_can_change_does(users: Users) -> None:
    made = users.create(user("euler", "leonhard@basel.example"))
    wanted = replace(
        made, username="Leo", email="leo@basel.example", password_hash="h", role=Role.ADMIN,
        tier=SubscriptionTier.ENTERPRISE, status=AccountStatus.ACTIVE, updated_at=LATER + timedelta(days=1),
        last_login_at=LATER, approved_at=LATER,
    )  # fmt: skip
    fields = {
        name: getattr(wanted, name)
        for name in UserRecord.__dataclass_fields__
        if name not in ("user_id", "created_at", "is_service")
    }
    assert users.change(made.user_id, **fields) == wanted
    assert users.by_login("LEO") == users.by_login("leo@basel.example") == users.by_id(made.user_id) == wanted
    assert users.by_login("euler") is None
    assert users.change(made.user_id, approved_at=None).approved_at is None


@pytest.mark.parametrize("field", ["created_at", "is_active", "email_key", "password", "is_service"])
def test_other_fields_never_change(identity_store: DeltaStore, users: Users, field: str) -> None:
    made = users.create(user("euler", "leonhard@basel.example"))
    before = version(identity_store)
    with pytest.raises(InvalidArgumentError, match="cannot be changed"):
        users.change(made.user_id, **{field: "x"})
    assert version(identity_store) == before


def test_a_new_name_must_be_free(users: Users) -> None:
    one = users.create(user("euler", "leonhard@basel.example"))
    users.create(user("gauss", "carl@goettingen.example"))
    for fields in ({"username": "Gauss"}, {"email": "Carl@goettingen.example"}):
        with pytest.raises(UserExistsError):
            users.change(one.user_id, **fields)
    assert users.change(one.user_id, username="EULER", email="Leonhard@basel.example").username == "EULER"


def test_an_unknown_account_is_told(identity_store: DeltaStore, users: Users) -> None:
    before = version(identity_store)
    with pytest.raises(UserNotFoundError):
        users.by_id("nobody")
    with pytest.raises(UserNotFoundError):
        users.change("nobody", role=Role.ADMIN)
    assert version(identity_store) == before


def test_only_active_accounts_count_as_active(users: Users) -> None:
    made = users.create(user("euler", "leonhard@basel.example"))
    for status in AccountStatus:
        changed = users.change(made.user_id, status=status)
        assert (changed.status, changed.is_active) == (status, status is AccountStatus.ACTIVE)


def test_the_table_says_active_as_the_status_does(identity_store: DeltaStore, users: Users) -> None:
    users.create(user("euler", "leonhard@basel.example", status=AccountStatus.ACTIVE))
    users.create(user("gauss", "carl@goettingen.example"))
    rows = identity_store.scan("users", columns=["username", "status", "is_active"]).to_pylist()
    assert {row["username"]: (row["status"], row["is_active"]) for row in rows} == {
        "euler": ("active", True),
        "gauss": ("pending", False),
    }


def test_a_change_can_depend_on_what_is_there(identity_store: DeltaStore, users: Users) -> None:
    made = users.create(user("euler", "leonhard@basel.example", status=AccountStatus.ACTIVE))

    def must_be_pending(record: UserRecord, _: Mapping[str, UserRecord]) -> None:
        if record.status is not AccountStatus.PENDING:
            raise PermissionDeniedError("Only a pending account can be approved.")

    before = version(identity_store)
    with pytest.raises(PermissionDeniedError):
        users.change(made.user_id, only_if=must_be_pending, status=AccountStatus.REJECTED)
    assert version(identity_store) == before


def test_the_condition_is_checked_again_if_another_change_came_between(
    users: Users, identity_store: DeltaStore
) -> None:
    made, other = users.create(user("euler", "leonhard@basel.example")), Users(identity_store)
    looks: list[AccountStatus] = []

    def look(record: UserRecord, _: Mapping[str, UserRecord]) -> None:
        looks.append(record.status)
        if len(looks) == 1:
            other.change(made.user_id, status=AccountStatus.DISABLED, tier=SubscriptionTier.PRO)

    changed = users.change(made.user_id, only_if=look, role=Role.ADMIN)
    assert looks == [AccountStatus.PENDING, AccountStatus.DISABLED]
    assert (changed.status, changed.tier, changed.role) == (
        AccountStatus.DISABLED,
        SubscriptionTier.PRO,
        Role.ADMIN,
    )
    assert other.by_id(made.user_id) == changed


def test_the_first_of_a_kind_is_made_once(users: Users, identity_store: DeltaStore) -> None:
    def none_yet(accounts: Mapping[str, UserRecord]) -> None:
        if not accounts:
            Users(identity_store).create(user("faster", "faster@basel.example", role=Role.SUPERADMIN))
        if any(one.role is Role.SUPERADMIN for one in accounts.values()):
            raise PermissionDeniedError("There is a superadmin.")

    with pytest.raises(PermissionDeniedError):
        users.create(user("slower", "slower@basel.example", role=Role.SUPERADMIN), only_if=none_yet)
    assert users.count() == 1


def test_pending_accounts_are_listed_the_oldest_first(users: Users) -> None:
    for days, name in enumerate(["third", "second", "first"]):
        users.create(replace(user(name, f"{name}@b.de"), created_at=NOW - timedelta(days=days)))
    users.create(user("active", "active@b.de", status=AccountStatus.ACTIVE))
    assert [one.username for one in users.pending()] == ["first", "second", "third"]
    users.change(users.pending()[0].user_id, status=AccountStatus.ACTIVE)
    assert [one.username for one in users.pending()] == ["second", "third"]


def test_all_accounts_come_page_by_page(users: Users) -> None:
    names = {users.create(user(f"user{number}", f"u{number}@b.de")).username for number in range(5)}
    found, after, pages = [], "", 0
    while after is not None:
        page = users.all(after=after, limit=2)
        found += page.users
        after, pages = page.next_after, pages + 1
    assert [one.user_id for one in found] == sorted(one.user_id for one in found)
    assert ({one.username for one in found}, pages) == (names, 3)
    assert users.all(limit=5).next_after is None
    with pytest.raises(InvalidArgumentError):
        users.all(limit=0)


def test_a_hash_is_not_shown_with_the_account() -> None:
    assert "argon2" not in repr(user("euler", "leonhard@basel.example"))


def test_the_log_holds_nothing_personal(identity_store: DeltaStore, users: Users, tmp_path: Path) -> None:
    made = users.create(user("Eulerius", "leonhard@basel.example"))
    users.change(
        made.user_id, password_hash="a-new-hash", email="leo@basel.example", status=AccountStatus.ACTIVE
    )
    log = "".join(path.read_text() for path in (tmp_path / "lake" / "users" / "_delta_log").glob("*.json"))
    row = users.by_id(made.user_id).to_row()
    hashes = [row["email_key"], row["username_key"], made.to_row()["email_key"]]
    for text in [made.user_id, "Eulerius", "leonhard", "leo@", "a-new-hash", "argon2", *hashes]:
        assert text not in log
    assert json.loads(log.splitlines()[-1])


def test_rows_from_before_accounts_had_a_status_are_understood(
    identity_store: DeltaStore, users: Users
) -> None:
    old = {
        **user("Euler", "Leonhard@Basel.Example").to_row(),
        "status": None,
        "email_key": None,
        "username_key": None,
    }
    identity_store.append("users", [{**old, "is_active": True}])
    assert users.by_login("euler") == users.by_login("leonhard@basel.example")
    assert users.by_id(old["user_id"]).status is AccountStatus.ACTIVE
    with pytest.raises(UserExistsError):
        users.create(user("euler", "other@b.de"))
    assert users.change(old["user_id"], status=AccountStatus.DISABLED).status is AccountStatus.DISABLED


@pytest.mark.slow
def test_of_eight_processes_that_register_one_address_exactly_one_wins(
    identity_store: DeltaStore, users: Users
) -> None:
    base = identity_store.config.base_path
    spellings = [
        "euler@basel.example",
        "Euler@Basel.Example",
        " EULER@basel.example",
        "euler@BASEL.example",
    ] * 2
    answers = together("register", [[base, f"user{n}", email] for n, email in enumerate(spellings)])
    assert Counter(next(iter(answer)) for answer in answers) == {"value": 1, "error": 7}
    assert {answer["error"] for answer in answers if "error" in answer} == {"user_exists"}
    (winner,) = (answer["value"] for answer in answers if "value" in answer)
    assert [row["user_id"] for row in identity_store.scan("users").to_pylist()] == [winner]
    assert users.by_login("euler@basel.example") == users.by_id(winner)


@pytest.mark.slow
def test_processes_that_register_different_people_all_win(identity_store: DeltaStore, users: Users) -> None:
    base = identity_store.config.base_path
    answers = together("register", [[base, f"user{n}", f"u{n}@basel.example"] for n in range(6)])
    assert all("value" in answer for answer in answers)
    assert users.count() == 6


@pytest.mark.slow
def test_changes_of_one_account_by_several_processes_are_all_kept(
    identity_store: DeltaStore, users: Users
) -> None:
    made, base = users.create(user("euler", "leonhard@basel.example")), identity_store.config.base_path
    fields = [
        ("role", "admin"),
        ("tier", "pro"),
        ("status", "active"),
        ("password_hash", "h"),
        ("username", "Leo"),
    ]
    answers = together("change", [[base, made.user_id, field, value] for field, value in fields])
    assert all(answer == {"value": made.user_id} for answer in answers)
    kept = users.by_id(made.user_id)
    assert {field: getattr(kept, field) for field, _ in fields} == dict(fields)


@pytest.mark.parametrize(
    "damage", [{"role": "root"}, {"subscription_tier": "gold"}, {"status": "?"}, {"created_at": "yesterday"}]
)
def test_an_account_that_cannot_be_read_keeps_no_other_from_signing_in(
    identity_store: DeltaStore, users: Users, damage: dict[str, str]
) -> None:
    sound, broken = users.create(user("euler", "leonhard@basel.example")), user("gauss", "carl@b.example")
    identity_store.append("users", [{**broken.to_row(), **damage}])
    assert users.by_login("euler") == sound
    assert users.change(sound.user_id, role=Role.ADMIN).role is Role.ADMIN
    assert users.by_login("gauss") is None
    with pytest.raises(InvalidRowsError, match="cannot be read"):
        users.by_id(broken.user_id)
    # Its names might be taken twice, and nobody may take it for granted that it is no superadmin.
    with pytest.raises(InvalidRowsError, match=broken.user_id):
        users.create(user("gauss", "other@b.example"))
    with pytest.raises(InvalidRowsError):
        users.all()


def test_accounts_of_one_status_come_page_by_page_too(users: Users) -> None:
    for number in range(5):
        status = AccountStatus.PENDING if number % 2 else AccountStatus.DISABLED
        users.create(user(f"user{number}", f"u{number}@b.de", status=status))
    page = users.all(limit=2, status=AccountStatus.DISABLED)
    rest = users.all(limit=2, status=AccountStatus.DISABLED, after=str(page.next_after))
    assert {one.username for one in (*page.users, *rest.users)} == {"user0", "user2", "user4"}
    assert (len(page.users), rest.next_after) == (2, None)
    assert [one.status for one in users.all(status=AccountStatus.PENDING).users] == [
        AccountStatus.PENDING
    ] * 2
    assert users.all(status=AccountStatus.REJECTED).users == []
