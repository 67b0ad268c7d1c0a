"""The matrix says something of every permission, and means what it says."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lakehouse_platform.identity.permissions import MATRIX, RULES, Permission, Right, allows
from lakehouse_platform.model.actors import ANONYMOUS, OWNER, Actor, ActorKind, Role
from lakehouse_platform.model.rights import Scopes


def actor(role: Role) -> Actor:
    return Actor(id=f"a-{role}", kind=ActorKind.USER, role=role)


def test_every_permission_has_a_rule() -> None:
    assert set(RULES) == set(MATRIX) == set(Permission)


def test_the_owner_of_the_files_may_do_everything() -> None:
    assert all(allows(OWNER, permission) for permission in Permission)


def test_who_is_not_signed_in_may_only_come_in_and_go_out() -> None:
    assert {permission for permission in Permission if allows(ANONYMOUS, permission, Right.MAINTAIN)} == {
        Permission.REGISTER, Permission.LOGIN, Permission.REFRESH, Permission.LOGOUT,
    }  # fmt: skip


@pytest.mark.parametrize("permission", Permission)
def test_a_higher_role_may_all_that_a_lower_one_may(permission: Permission) -> None:
    user, admin, superadmin = (allows(actor(role), permission, Right.MAINTAIN) for role in Role)
    assert user <= admin <= superadmin or permission is Permission.BOOTSTRAP


def test_only_a_superadmin_changes_roles() -> None:
    assert MATRIX[Permission.CHANGE_ROLE] == {Role.SUPERADMIN}


@pytest.mark.parametrize("permission", [one for one in Permission if RULES[one].right])
def test_a_role_alone_is_not_enough_where_a_right_on_the_table_is_needed(permission: Permission) -> None:
    assert not allows(actor(Role.SUPERADMIN), permission)
    assert allows(actor(Role.SUPERADMIN), permission, Right.MAINTAIN)


def test_a_right_includes_the_weaker_ones_and_no_stronger_one() -> None:
    user = actor(Role.USER)
    allowed = {right: [one for one in (Permission.READ_TABLE, Permission.WRITE_TABLE, Permission.MAINTAIN_TABLE)
                       if allows(user, one, right)] for right in Right}  # fmt: skip
    assert [len(allowed[right]) for right in (Right.READ, Right.WRITE, Right.MAINTAIN)] == [1, 2, 3]


def test_an_actor_without_a_role_may_nothing_that_needs_one() -> None:
    nobody = Actor(id="x", kind=ActorKind.SERVICE)
    assert not any(allows(nobody, permission, Right.MAINTAIN) for permission in Permission)


def key(role: Role, scopes: str) -> Actor:
    return replace(actor(role), kind=ActorKind.SERVICE, scopes=Scopes.parse(scopes))


def test_an_api_key_may_never_what_would_make_it_mightier() -> None:
    mightiest = key(Role.SUPERADMIN, "maintain:* admin")
    denied = {permission for permission in Permission if not allows(mightiest, permission, Right.MAINTAIN)}
    assert denied == {
        Permission.BOOTSTRAP, Permission.CHANGE_OWN_PASSWORD, Permission.MAKE_SERVICE_ACCOUNT,
        Permission.MANAGE_KEYS, Permission.MOUNT,
    }  # fmt: skip


@pytest.mark.parametrize("role", Role)
def test_an_api_key_may_what_its_account_may_and_administer_only_if_it_says_so(role: Role) -> None:
    for permission in Permission:
        of_account = allows(actor(role), permission, Right.MAINTAIN)
        plain, mighty = (
            allows(key(role, scopes), permission, Right.MAINTAIN)
            for scopes in ("maintain:*", "maintain:* admin")
        )
        assert plain <= mighty <= of_account
        assert not plain or Role.USER in RULES[permission].roles


def test_an_api_key_without_scopes_may_nothing() -> None:
    bare = replace(actor(Role.SUPERADMIN), kind=ActorKind.SERVICE)
    assert not any(allows(bare, permission, Right.MAINTAIN) for permission in Permission)


def test_what_changes_accounts_rights_or_copies_data_out_is_sensitive() -> None:
    sensitive = {permission for permission in Permission if RULES[permission].is_sensitive}
    assert {
        Permission.CHANGE_ROLE, Permission.CHANGE_GRANTS, Permission.APPROVE_USER, Permission.DISABLE_USER,
        Permission.SET_PASSWORD, Permission.CHANGE_OWN_PASSWORD, Permission.EXPORT_TABLE, Permission.DROP_TABLE,
        Permission.RESTORE_TABLE, Permission.BOOTSTRAP, Permission.MANAGE_SESSIONS, Permission.MANAGE_KEYS,
        Permission.MAKE_SERVICE_ACCOUNT,
    } <= sensitive  # fmt: skip


def test_what_keeps_an_account_safe_works_when_the_limit_is_reached() -> None:
    free = {permission for permission in Permission if RULES[permission].is_free}
    assert {Permission.LOGOUT, Permission.CHANGE_OWN_PASSWORD, Permission.REFRESH} <= free
    assert not {permission for permission in free if RULES[permission].right}
