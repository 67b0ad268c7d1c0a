"""A ticket stands for one sign-in, and only the secret's holder can make one."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from lakehouse_platform.errors import InvalidArgumentError, StoragePermissionError, TokenInvalidError
from lakehouse_platform.identity.mount_tickets import TICKET_LENGTH, MountTickets

SESSION = str(uuid.uuid4())


def test_a_ticket_leads_back_to_its_sign_in(tmp_path: Path) -> None:
    ticket = MountTickets(tmp_path).issue(SESSION)
    assert len(ticket) == TICKET_LENGTH
    assert MountTickets(tmp_path).session_of(ticket) == SESSION, "also after a restart"


def test_a_ticket_of_another_machine_is_refused(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    with pytest.raises(TokenInvalidError):
        MountTickets(tmp_path / "here").session_of(MountTickets(tmp_path / "there").issue(SESSION))


@pytest.mark.parametrize("place", range(0, TICKET_LENGTH, 7))
def test_a_ticket_of_which_one_character_was_changed_is_refused(tmp_path: Path, place: int) -> None:
    tickets = MountTickets(tmp_path)
    ticket = tickets.issue(SESSION)
    other = "A" if ticket[place] != "A" else "B"
    with pytest.raises(TokenInvalidError):
        tickets.session_of(ticket[:place] + other + ticket[place + 1 :])


@pytest.mark.parametrize(
    "text",
    ["", "A", "A" * TICKET_LENGTH, "é" * TICKET_LENGTH, "=" * TICKET_LENGTH, SESSION],
    ids=["nothing", "short", "letters", "not ASCII", "padding", "session"],
)
def test_what_is_no_ticket_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(TokenInvalidError):
        MountTickets(tmp_path).session_of(text)


def test_a_ticket_has_one_text_only(tmp_path: Path) -> None:
    tickets = MountTickets(tmp_path)
    made = (tickets.issue(str(uuid.uuid4())) for _ in range(1000))
    ticket = next(one for one in made if "-" in one or "_" in one)
    with pytest.raises(TokenInvalidError):
        tickets.session_of(ticket.replace("-", "+").replace("_", "/"))
    with pytest.raises(TokenInvalidError):
        tickets.session_of(f"{ticket}=")


def test_only_a_sign_in_has_a_ticket(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError):
        MountTickets(tmp_path).issue("nobody")


def test_a_secret_that_others_can_read_is_not_used(tmp_path: Path) -> None:
    MountTickets(tmp_path)
    (tmp_path / "mount-tickets").chmod(0o644)
    with pytest.raises(StoragePermissionError):
        MountTickets(tmp_path)


def test_no_text_about_tickets_holds_the_secret(tmp_path: Path) -> None:
    assert repr(MountTickets(tmp_path)) == "MountTickets()"
