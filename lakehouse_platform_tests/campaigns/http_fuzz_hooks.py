"""What Schemathesis itself loads: how its requests are signed. See `http_fuzz`."""

from __future__ import annotations

import os
import time
from typing import Any

import httpx
import schemathesis
from schemathesis import AuthContext, Case

# Often, because an invented request may end the sign-in at any time; each costs one quick password hash here.
_REFRESH_SECONDS = 2
_ATTEMPTS = 20


@schemathesis.auth(refresh_interval=_REFRESH_SECONDS)
class SignIn:
    """Signs in anew every few seconds."""

    def get(self, case: Case[Any], context: AuthContext) -> str:
        """Return an access token; the account may be disabled for a moment, until it is given back what it had."""
        del case, context
        body = {"login": os.environ["HTTP_FUZZ_LOGIN"], "password": os.environ["HTTP_FUZZ_PASSWORD"]}
        for _ in range(_ATTEMPTS):
            answer = httpx.post(f"{os.environ['HTTP_FUZZ_URL']}/v1/auth/login", json=body, timeout=60)
            if answer.is_success:
                return str(answer.json()["access_token"])
            time.sleep(0.5)
        return "none"

    def set(self, case: Case[Any], data: str, context: AuthContext) -> None:
        """Sign a request."""
        del context
        case.headers["Authorization"] = f"Bearer {data}"
