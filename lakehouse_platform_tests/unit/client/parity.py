"""What operations of a face are called and what they take, for comparing two."""

from __future__ import annotations

import inspect
from typing import Any

# What callers of the services say with each call, and a client once.
_OF_THE_CALLER = {"self", "actor", "ip_address", "user_agent"}


def operations(cls: type) -> dict[str, Any]:
    """Return the public operations of a class."""
    return {name: one for name, one in inspect.getmembers(cls, callable) if not name.startswith("_")}


def arguments(operation: Any) -> list[str]:
    """Return the names of an operation's arguments, in order."""
    return [name for name in inspect.signature(operation).parameters if name not in _OF_THE_CALLER]


def assert_same_but_awaited(sync: type, aio: type) -> None:
    """Check that two classes have the same operations, those of the second to be awaited."""
    ours, theirs = operations(sync), operations(aio)
    assert set(ours) == set(theirs)
    for name, operation in ours.items():
        assert inspect.signature(operation) == inspect.signature(theirs[name]), name
        assert inspect.getdoc(operation) == inspect.getdoc(theirs[name]), name
        assert inspect.iscoroutinefunction(theirs[name]), name
        assert not inspect.iscoroutinefunction(operation), name
