"""The parts that accounts are made of, opened once for a lakehouse and wired together."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime

from lakehouse_platform.identity.api_keys import ApiKeys
from lakehouse_platform.identity.grants import Grants
from lakehouse_platform.identity.keys import signing_keys
from lakehouse_platform.identity.limits import Limits
from lakehouse_platform.identity.mount_tickets import MountTickets
from lakehouse_platform.identity.passwords import Passwords
from lakehouse_platform.identity.sessions import Sessions
from lakehouse_platform.identity.throttle import Throttle
from lakehouse_platform.identity.tokens import TokenSigner
from lakehouse_platform.identity.users import UserRecord, Users
from lakehouse_platform.private_files import private_directory, state_directory
from lakehouse_platform.services.account_changes import AccountChanges
from lakehouse_platform.services.auditing import AUDIT_DIRECTORY, AuditActor
from lakehouse_platform.services.gate import Gate
from lakehouse_platform.services.preparing import prepare
from lakehouse_platform.services.sign_ins import SignIns
from lakehouse_platform.services.token_checks import TokenChecks
from lakehouse_platform.settings import LakehouseConfig
from lakehouse_platform.store.delta_store import DeltaStore

# Both stand in every token. Which lakehouse a token is for is told by its session, which no other lakehouse has.
_ISSUER = "lakehouse-platform"
_AUDIENCE = "lakehouse"


class AccountParts:
    """Everything that accounts need. Safe to share between threads.

    Attributes:
        clock: The time.
        auto_approve: Whether who registers can sign in at once.
        users: The accounts.
        sessions: Their sign-ins.
        keys: The API keys of programs.
        mount_tickets: What users mount with.
        grants: Their rights on tables.
        limits: What they may ask for and have used up.
        throttle: Waits after failed sign-ins.
        audit: The audit log.
        checks: Counts of checked tokens.
        changes: What administrators do to accounts.
        sign_ins: Signing in and out.
        gate: What every operation goes through.
    """

    def __init__(
        self,
        store: DeltaStore,
        config: LakehouseConfig,
        audit: AuditActor | None,
        passwords: Passwords | None,
        clock: Callable[[], datetime],
    ) -> None:
        """Open the parts; see `AuthActor` for the arguments and errors."""
        prepare(store)
        state = private_directory(state_directory(config.state_path, store.base.uri))
        self.clock = clock
        self.auto_approve = config.auto_approve
        self.users = Users(store, clock=clock)
        self.sessions = Sessions(store, ending=self.users.signed_in)
        self.keys = ApiKeys(store)
        self.mount_tickets = MountTickets(state)
        self.grants = Grants(store, clock=clock)
        keys = signing_keys(config, state)
        signer = TokenSigner(keys.keys, keys.current, _ISSUER, _AUDIENCE)
        with ExitStack() as opened:
            self.limits = opened.enter_context(Limits(state))
            self.throttle = opened.enter_context(
                Throttle(state, registrations_per_hour=config.registrations_per_hour)
            )
            passwords = passwords or opened.enter_context(Passwords())
            self.audit = audit or opened.enter_context(AuditActor(store, state_dir=state / AUDIT_DIRECTORY))
            self.checks = TokenChecks(self.audit.writer, store.origin.door)
            opened.callback(self.checks.flush)
            self._opened = opened.pop_all()
        self.changes = AccountChanges(self.users, self.sessions, passwords)
        self.sign_ins = SignIns(config, self.users, self.sessions, passwords, signer, self.throttle)
        self.gate = Gate(self.audit.writer, self.grants, self.limits, origin=store.origin, clock=clock)

    def with_last_sign_in(self, user: UserRecord) -> UserRecord:
        """Return an account with the time of its last sign-in, which is kept with it only when the sign-in ends."""
        lasting = self.sessions.list(user.user_id, self.clock())
        if not lasting or (user.last_login_at and user.last_login_at >= lasting[0].created_at):
            return user
        return replace(user, last_login_at=lasting[0].created_at)

    def close(self) -> None:
        """Write what is counted, and close what was opened here."""
        self._opened.close()
