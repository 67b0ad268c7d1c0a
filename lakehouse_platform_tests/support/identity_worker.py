"""One of several processes that use accounts, keys or counters at the same time; started by `together`.

It is told its task on the command line, says when it is ready, starts on a word, and answers with one line of JSON.
Only typed errors are answers. Anything else ends the process and so fails the test.
"""

from __future__ import annotations

import json
import sys
import uuid
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakehouse_platform.errors import LakehouseError, RateLimitedError, UserExistsError
from lakehouse_platform.identity.keys import signing_keys
from lakehouse_platform.identity.limits import Limits
from lakehouse_platform.identity.throttle import Throttle
from lakehouse_platform.model.actors import SubscriptionTier
from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform_tests.support.processes import python_module

# The store is imported by those tasks alone that use it: it takes seconds to load.
if TYPE_CHECKING:
    from lakehouse_platform.identity.sessions import Issued
    from lakehouse_platform.identity.users import UserRecord, Users
    from lakehouse_platform.store.delta_store import DeltaStore

NOW = datetime(2026, 3, 1, 12, 0, 30, tzinfo=UTC)


def user(username: str, email: str, **more: Any) -> UserRecord:
    """Return an account that is not in any table yet."""
    from lakehouse_platform.identity.users import UserRecord

    return UserRecord(
        user_id=str(uuid.uuid4()), username=username, email=email, password_hash="$argon2id$", created_at=NOW,
        updated_at=NOW, **more,
    )  # fmt: skip


def together(task: str, arguments: Sequence[Sequence[str]]) -> list[Any]:
    """Run one process for each list of arguments, all at once, and return what each answered."""
    with ExitStack() as stack:
        module = "lakehouse_platform_tests.support.identity_worker"
        workers = [stack.enter_context(python_module(module, task, *some)) for some in arguments]
        for worker in workers:
            assert worker.stdout is not None
            if worker.stdout.readline() != b"ready\n":
                raise AssertionError(worker.communicate()[1].decode()[-4000:])
        for worker in workers:
            assert worker.stdin is not None
            worker.stdin.write(b"go\n")
            worker.stdin.flush()
        answers: list[Any] = []
        for worker in workers:
            told, complaints = worker.communicate()
            assert worker.returncode == 0, complaints.decode()[-4000:]
            answers.append(json.loads(told))
        return answers


def register(base: str, username: str, email: str) -> Callable[[], object]:
    users = _users(base)
    return lambda: _answer(lambda: users.create(user(username, email)).user_id, UserExistsError)


def change(base: str, user_id: str, field: str, value: str) -> Callable[[], object]:
    users = _users(base)
    return lambda: _answer(lambda: users.change(user_id, **{field: value}).user_id, UserExistsError)


def refresh(base: str, refresh_token: str) -> Callable[[], object]:
    from lakehouse_platform.identity.sessions import Issued, Sessions

    sessions = Sessions(_store(base))
    end = NOW.replace(year=2027)

    def issued(_: object) -> Issued:
        return Issued(token=uuid.uuid4().hex, expires_at=end, refresh_expires_at=end)

    return lambda: _answer(lambda: sessions.refresh(refresh_token, issued, NOW).refresh_token, LakehouseError)


def take(state: str, times: str) -> Callable[[], object]:
    limits = Limits(Path(state))

    def taken() -> int:
        granted = 0
        for _ in range(int(times)):
            try:
                limits.take("u", SubscriptionTier.PRO, NOW)
                granted += 1
            except RateLimitedError as error:
                assert error.retry_after == 30  # noqa: PT017 - the number of grants is what is asserted
        return granted

    return taken


def guess(state: str, times: str) -> Callable[[], object]:
    # The file is opened with the others at once: making it must not fail either.
    def begun() -> int:
        throttle = Throttle(Path(state))
        allowed = 0
        for _ in range(int(times)):
            try:
                throttle.begin("euler", None, NOW)
                allowed += 1
            except RateLimitedError as error:
                assert error.retry_after == 1  # noqa: PT017 - the number of attempts is what is asserted
        return allowed

    return begun


def key(base: str, state: str) -> Callable[[], object]:
    config = LakehouseConfig(base_path=base)

    def made() -> dict[str, str]:
        return {kid: secret.hex() for kid, secret in signing_keys(config, Path(state)).keys.items()}

    return made


def _users(base: str) -> Users:
    from lakehouse_platform.identity.users import Users

    return Users(_store(base))


def _store(base: str) -> DeltaStore:
    from lakehouse_platform.store.delta_store import DeltaStore

    return DeltaStore(LakehouseConfig(base_path=base, durability="os"))


def _answer(act: Callable[[], object], expected: type[LakehouseError]) -> object:
    try:
        return {"value": act()}
    except expected as error:
        return {"error": error.code}


_TASKS: dict[str, Callable[..., Callable[[], object]]] = {
    task.__name__: task for task in (register, change, refresh, take, guess, key)
}


def main() -> None:
    act = _TASKS[sys.argv[1]](*sys.argv[2:])
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    sys.stdout.write(json.dumps(act()) + "\n")


if __name__ == "__main__":
    main()
