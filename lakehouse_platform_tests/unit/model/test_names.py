from __future__ import annotations

import pytest

from lakehouse_platform.errors import InvalidNameError
from lakehouse_platform.model.names import check_table_name, is_table_name


@pytest.mark.parametrize("name", ["users", "audit_log", "_x", "2026", "a.b-c_d", "A" * 128])
def test_plain_names_are_allowed(name: str) -> None:
    assert check_table_name(name) == name
    assert is_table_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "..",
        "a b",
        "a/b",
        "a\\b",
        "a%20b",
        "a[0]",
        "a#b",
        "ä",
        ".hidden",
        "-flag",
        "end.",
        "a\n",
        "A" * 129,
        "_delta_log",
        "_Delta_Log",
    ],
)
def test_names_that_some_reader_stumbles_over_are_refused(name: str) -> None:
    assert not is_table_name(name)
    with pytest.raises(InvalidNameError) as caught:
        check_table_name(name)
    assert caught.value.details["name"] == name
