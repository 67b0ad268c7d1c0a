"""The error tree: one base, one stable code for each class, facts beside the message."""

from __future__ import annotations

import inspect
import pickle
import re

import pytest

from lakehouse_platform import errors
from lakehouse_platform.errors import LakehouseError, VersionNotFoundError

CLASSES = [
    value for value in vars(errors).values() if inspect.isclass(value) and issubclass(value, LakehouseError)
]


def test_every_code_belongs_to_one_class() -> None:
    codes = [cls.code for cls in CLASSES]
    assert len(set(codes)) == len(codes)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_every_class_has_a_name_a_code_and_a_meaning_of_its_own(cls: type[LakehouseError]) -> None:
    assert cls.__name__.endswith("Error")
    assert re.fullmatch(r"[a-z]+(_[a-z]+)*", cls.__dict__["code"])
    assert cls.__doc__ != cls.__base__.__doc__
    assert cls.__doc__


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_the_tree_in_the_module_text_shows_every_class(cls: type[LakehouseError]) -> None:
    assert re.search(rf"\b{cls.__name__}\b", errors.__doc__ or "")


def test_the_tree_in_the_module_text_shows_nothing_else() -> None:
    shown = set(re.findall(r"\b\w+Error\b", errors.__doc__ or ""))
    assert shown == {cls.__name__ for cls in CLASSES}


def test_an_error_carries_its_message_and_its_facts() -> None:
    error = VersionNotFoundError("Table users has no version 999.", table="users", version=999)
    assert str(error) == error.message == "Table users has no version 999."
    assert error.to_dict() == {
        "code": "version_not_found",
        "message": error.message,
        "details": {"table": "users", "version": 999},
    }


@pytest.mark.parametrize("cls", [errors.RateLimitedError, errors.LoginThrottledError])
def test_a_limit_says_when_to_come_back_also_on_the_other_side_of_a_process(
    cls: type[errors.RateLimitedError],
) -> None:
    error = pickle.loads(pickle.dumps(cls("Too much: wait.", retry_after=2.5, limit=10)))
    assert (type(error), str(error), error.retry_after) == (cls, "Too much: wait.", 2.5)
    assert error.to_dict()["details"] == {"retry_after": 2.5, "limit": 10}


def test_the_groups_of_the_seed_catch_their_members() -> None:
    members = {
        errors.StorageError: [
            "DeltaTableError", "TableNotFoundError", "VersionNotFoundError", "SchemaMismatchError",
        ],
        errors.AuthError: [
            "AuthenticationFailedError", "UserNotFoundError", "InvalidCredentialsError", "TokenExpiredError",
        ],
        errors.AuditError: ["AuditWriteFailedError"],
        errors.InfrastructureError: ["StorageIoError", "ArrowDataError", "ConfigError"],
    }  # fmt: skip
    for group, names in members.items():
        assert all(issubclass(getattr(errors, name), group) for name in names)
