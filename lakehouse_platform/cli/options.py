"""Options and arguments that several commands share, as decorators, and the value types they parse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from lakehouse_platform.cli.session import Session
from lakehouse_platform.errors import LakehouseError

MOMENT_HELP = "Version number, or RFC 3339 time with a zone such as 2026-02-01T12:00:00Z."

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


class KeyValue(click.ParamType["tuple[str, str]"]):
    """`key=value`; the value may hold further `=` or be empty."""

    name = "key=value"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        """Return key and value."""
        if isinstance(value, tuple):
            return value  # pyright: ignore[reportUnknownVariableType]
        key, equals, rest = str(value).partition("=")
        if not equals or not key.strip():
            self.fail(f"{value!r} is not KEY=VALUE", param, ctx)
        return key.strip(), rest


class Names(click.ParamType["tuple[str, ...]"]):
    """Column names separated by commas."""

    name = "columns"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        """Return the names."""
        if isinstance(value, tuple):
            return value  # pyright: ignore[reportUnknownVariableType]
        names = tuple(part.strip() for part in str(value).split(","))
        if not all(names):
            self.fail(f"{value!r} is not a list of column names such as id,name", param, ctx)
        return names


def common_options() -> list[click.Parameter]:
    """Return the options that the program and every command accept; the session takes their values."""
    return [
        _common(
            "--json", "as_json", is_flag=True, is_eager=True, help="Print one JSON document; errors too."
        ),
        _common("--base-path", "base_path", metavar="PATH|URI", help="The lakehouse  [setting: base_path]"),
        _common(
            "--config", "config_file", metavar="FILE", help="Settings file (TOML)  [else: lakehouse.toml]"
        ),
        _common(
            "--storage-option",
            "storage_options",
            type=KeyValue(),
            multiple=True,
            metavar="KEY=VALUE",
            help="Object store option; repeatable. Keep secrets in settings: others can see command lines.",
        ),
        _common("--debug", "debug", is_flag=True, help="Show the traceback of an error."),
    ]


def server_option() -> click.Parameter:
    """Return the option that names a server to ask; the session takes its value."""
    meaning = "Ask the HTTP API there, not the lakehouse itself  [setting: server]"
    return _common("--server", "server", metavar="URL", help=meaning)


def user_argument(command: Decorated) -> Decorated:
    """Add USER: whose account it is about."""
    return click.argument("user", help="User id, user name or e-mail address.")(command)


def target_argument(command: Decorated) -> Decorated:
    """Add TARGET: a table name of the lakehouse, a path or a URI."""
    meaning = "Table of the lakehouse, path or URI."
    return click.argument("target", shell_complete=_complete_table, help=meaning)(command)


def reason_option(command: Decorated) -> Decorated:
    """Add --reason: recorded in the commit that a change makes."""
    return click.option(
        "--reason",
        expose_value=False,
        callback=_remember,
        metavar="TEXT",
        help="Why; recorded in the table's history. No personal data.",
    )(command)


def yes_option(command: Decorated) -> Decorated:
    """Add --yes: answer the question beforehand."""
    return click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")(command)


def where_option(meaning: str, *, required: bool = False) -> Callable[[Decorated], Decorated]:
    """Add --where with a predicate over the table's columns."""
    return click.option("--where", metavar="PREDICATE", required=required, help=meaning)


def _common(flag: str, name: str, **settings: Any) -> click.Parameter:
    return click.Option([flag, name], expose_value=False, callback=_remember, **settings)


def _remember(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    session = ctx.ensure_object(Session)
    if not value:
        return
    if param.name == "storage_options":
        session.storage_options.update(dict(value))
    else:
        setattr(session, param.name, value)


def _complete_table(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer the lakehouse's tables; the shell adds files, because a TARGET may be a path."""
    del param
    try:
        names = ctx.ensure_object(Session).lakehouse.store.tables()
    except LakehouseError:
        names = []  # completion has nowhere to show an error: it offers files only
    items = [CompletionItem(name) for name in names if name.startswith(incomplete)]
    return items or [CompletionItem(incomplete, type="file")]
