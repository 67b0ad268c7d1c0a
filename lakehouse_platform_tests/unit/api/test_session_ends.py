"""A sign-in is ended only under the user whose it is."""

from __future__ import annotations

import pytest

from lakehouse_platform.api.session_ends import end_session
from lakehouse_platform.errors import PermissionDeniedError
from lakehouse_platform.model.actors import OWNER
from lakehouse_platform.services.lakehouse import Lakehouse
from lakehouse_platform_tests.support.people import signed_in


def test_a_sign_in_ends_under_its_user_and_under_no_other_one(lake: Lakehouse) -> None:
    with lake:
        ada, ben = signed_in(lake.accounts, "ada"), signed_in(lake.accounts, "ben")
        end_session(lake.accounts, ben.id, str(ada.session_id), OWNER)
        end_session(lake.accounts, ada.id, "no such one", OWNER)
        assert len(lake.accounts.sessions(ada.id)) == 1
        end_session(lake.accounts, ada.id, str(ada.session_id), ada)
        assert lake.accounts.sessions(ada.id) == []
        assert len(lake.accounts.sessions(ben.id)) == 1


def test_nobody_ends_anothers_sign_in_under_either_name(lake: Lakehouse) -> None:
    with lake:
        ada, ben = signed_in(lake.accounts, "ada"), signed_in(lake.accounts, "ben")
        with pytest.raises(PermissionDeniedError):
            end_session(lake.accounts, ada.id, str(ada.session_id), ben)
        end_session(lake.accounts, ben.id, str(ada.session_id), ben)
        assert len(lake.accounts.sessions(ada.id)) == 1
