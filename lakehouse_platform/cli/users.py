"""Commands about accounts: who there is, who may sign in, with which role and subscription."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from lakehouse_platform.cli.accounts import Facts
from lakehouse_platform.cli.command import AccountCommand, PlatformCommand, PlatformGroup
from lakehouse_platform.cli.finding import user_id_of
from lakehouse_platform.cli.options import user_argument
from lakehouse_platform.cli.passwords import new_password, password_option
from lakehouse_platform.cli.session import Session
from lakehouse_platform.model.actors import AccountStatus, Role, SubscriptionTier

SECTION = "Users"
_ROLES = click.Choice([role.value for role in Role])
_TIERS = click.Choice([tier.value for tier in SubscriptionTier])
_STATES = click.Choice([status.value for status in AccountStatus])
_COLUMNS = ("user_id", "username", "email", "role", "tier", "status", "is_service", "last_login_at")
_PAGE = 1000


@click.group(cls=PlatformGroup, section=SECTION)
def users() -> None:
    """Accounts: list, add, approve and lock them, and say what they may do."""


@users.command(
    "bootstrap",
    cls=PlatformCommand,
    section=SECTION,
    examples=(
        "lakehouse users bootstrap root root@example.com --password-stdin --base-path ./second < password.txt",
    ),
)
@click.argument("username", help="User name: 3 to 64 letters, digits, '.', '_' and '-'.")
@click.argument("email", help="E-mail address.")
@password_option
@click.pass_obj
def bootstrap(session: Session, username: str, email: str, from_stdin: bool) -> None:
    """Make the first superadmin, while there is none; only the owner of the lakehouse's files can."""
    from lakehouse_platform.cli.local_accounts import LocalAccounts

    password = new_password("Password of the superadmin", from_stdin=from_stdin)
    user = LocalAccounts(session.sign_in).bootstrap(username, email, password)
    session.output.say(f"{user['username']} is the first superadmin: sign in with `lakehouse login`.", user)


@users.command(
    "add",
    cls=AccountCommand,
    section=SECTION,
    examples=(
        "lakehouse users add dora dora@example.com --password-stdin < password.txt",
        "lakehouse users add emil emil@example.com --tier pro --approve --password-stdin < password.txt",
    ),
)
@click.argument("username", help="User name: 3 to 64 letters, digits, '.', '_' and '-'.")
@click.argument("email", help="E-mail address.")
@click.option("--tier", type=_TIERS, default="free", show_default=True, help="Subscription.")
@click.option("--approve", is_flag=True, help="Let the user sign in at once; for administrators.")
@password_option
@click.pass_obj
def add(session: Session, username: str, email: str, tier: str, approve: bool, from_stdin: bool) -> None:
    """Register an account, which waits for approval."""
    password = new_password(f"Password of {username}", from_stdin=from_stdin)
    user = session.accounts.register(username, email, password, tier)
    if approve and user["status"] == AccountStatus.PENDING.value:
        user = session.accounts.move("approve", user["user_id"])
    session.output.say(f"{user['username']} is registered and {user['status']}.", user)


@users.command(
    "list",
    cls=AccountCommand,
    section=SECTION,
    examples=("lakehouse users list", "lakehouse users list --status pending --json"),
)
@click.option("--status", type=_STATES, help="Only accounts that stand so.")
@click.pass_obj
def list_users(session: Session, status: str | None) -> None:
    """List the accounts."""
    found: list[Facts] = []
    after: str | None = ""
    while after is not None:
        page = session.accounts.users(after=after, limit=_PAGE)
        found += [user for user in page.users if status in (None, user["status"])]
        after = page.next_after
    session.output.listing(found, _COLUMNS)


@users.command(
    "show",
    cls=AccountCommand,
    section=SECTION,
    examples=("lakehouse users show alice", "lakehouse users show bob@example.com --json"),
)
@user_argument
@click.pass_obj
def show(session: Session, user: str) -> None:
    """Show an account."""
    session.output.record(session.accounts.user(user_id_of(session.accounts, user)))


@users.command(
    "role",
    cls=AccountCommand,
    section=SECTION,
    examples=("lakehouse users role alice admin",),
)
@user_argument
@click.argument("role", type=_ROLES, help="The new role.")
@click.pass_obj
def role(session: Session, user: str, role: str) -> None:
    """Give a user another role; it counts from the next request on."""
    changed = session.accounts.change_role(user_id_of(session.accounts, user), role)
    session.output.say(f"{changed['username']} has the role {changed['role']} now.", changed)


@users.command(
    "tier",
    cls=AccountCommand,
    section=SECTION,
    examples=("lakehouse users tier alice enterprise",),
)
@user_argument
@click.argument("tier", type=_TIERS, help="The new subscription.")
@click.pass_obj
def tier(session: Session, user: str, tier: str) -> None:
    """Give a user another subscription; it counts from the next request on."""
    changed = session.accounts.change_tier(user_id_of(session.accounts, user), tier)
    session.output.say(f"{changed['username']} has the subscription {changed['tier']} now.", changed)


@users.command(
    "password",
    cls=AccountCommand,
    section=SECTION,
    examples=("lakehouse users password bob --password-stdin < new_password.txt",),
)
@user_argument
@password_option
@click.pass_obj
def password(session: Session, user: str, from_stdin: bool) -> None:
    """Give a user who has forgotten it a new password; all sign-ins of the user end."""
    user_id = user_id_of(session.accounts, user)
    changed = session.accounts.set_password(
        user_id, new_password(f"New password of {user}", from_stdin=from_stdin)
    )
    session.output.say(f"{changed['username']} has a new password, and is signed out everywhere.", changed)


@users.command(
    "add-service",
    cls=AccountCommand,
    section=SECTION,
    examples=("lakehouse users add-service robot --tier pro",),
)
@click.argument("name", help="Name of the account, as a user name.")
@click.option("--role", type=_ROLES, default="user", show_default=True, help="Role.")
@click.option("--tier", type=_TIERS, default="free", show_default=True, help="Subscription.")
@click.pass_obj
def add_service(session: Session, name: str, role: str, tier: str) -> None:
    """Make an account for a program: active at once, with API keys in place of a password."""
    made = session.accounts.create_service_account(name, role, tier)
    said = f"{made['username']} is an account for a program: `lakehouse keys create {name}` makes its key."
    session.output.say(said, made)


def _move(verb: str, example: str, meaning: str) -> click.Command:
    """Return the command that approves, rejects, disables or enables an account."""

    @user_argument
    @click.pass_obj
    def move(session: Session, user: str) -> None:
        changed = session.accounts.move(verb, user_id_of(session.accounts, user))
        session.output.say(f"{changed['username']} is {changed['status']} now.", changed)

    move.__doc__ = meaning
    make: Callable[[Any], click.Command] = users.command(
        verb, cls=AccountCommand, section=SECTION, examples=(example,)
    )
    return make(move)


approve = _move("approve", "lakehouse users approve carol", "Let who has registered sign in.")
reject = _move("reject", "lakehouse users reject carol", "Refuse who has registered.")
disable = _move(
    "disable", "lakehouse users disable bob", "Keep a user from signing in; all sign-ins end at once."
)
enable = _move(
    "enable",
    "lakehouse users disable bob && lakehouse users enable bob",
    "Let a disabled user sign in again.",
)
