"""Tickets and the export paths that carry them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse_platform.identity.mount_tickets import TICKET_LENGTH
from lakehouse_platform.nfs.operations import NfsError, Status
from lakehouse_platform.nfs.tickets import (
    LAKE,
    Export,
    Profile,
    Ticket,
    export_name,
    user_export,
    user_path,
    user_ticket,
)


@pytest.fixture
def ticket(tmp_path: Path) -> Ticket:
    return Ticket(tmp_path)


@pytest.mark.parametrize("profile", Profile)
@pytest.mark.parametrize("name", [LAKE, b"people", b"p@b", "größe".encode()])
def test_the_path_of_an_export_asks_for_that_export(ticket: Ticket, name: bytes, profile: Profile) -> None:
    assert ticket.parse(ticket.path(name, profile)) == Export(name, profile, ())


@pytest.mark.parametrize("profile", Profile)
def test_a_users_path_asks_for_the_same_as_the_owners(ticket: Ticket, profile: Profile) -> None:
    owners = ticket.path(b"people", profile)
    path = user_path(owners.decode(), "u" * TICKET_LENGTH).encode()
    assert user_ticket(path) == "u" * TICKET_LENGTH
    assert user_export(path + b"/data") == Export(b"people", profile, (b"data",))
    assert user_ticket(owners) is None, "the owner's ticket is shorter"


@pytest.mark.parametrize("path", [b"", b"/", b"/x/lake", b"/" + b"\xff" * TICKET_LENGTH + b"/lake"])
def test_what_cannot_be_a_users_ticket_is_none(path: bytes) -> None:
    assert user_ticket(path) is None


@pytest.mark.parametrize("rest", [b"", b"/", b"/.", b"/lake/..", b"/a\0b"])
def test_a_users_path_that_names_no_export_is_not_there(rest: bytes) -> None:
    with pytest.raises(NfsError) as caught:
        user_export(b"/" + b"u" * TICKET_LENGTH + rest)
    assert caught.value.status is Status.NOENT


def test_a_path_may_go_on_below_the_export(ticket: Ticket) -> None:
    path = ticket.path(LAKE, Profile.BULK) + b"/people/data"
    assert ticket.parse(path) == Export(LAKE, Profile.BULK, (b"people", b"data"))


def test_slashes_too_many_do_not_matter(ticket: Ticket) -> None:
    path = ticket.path(b"people", Profile.SYNC).replace(b"/", b"//") + b"/data//"
    assert ticket.parse(path) == Export(b"people", Profile.SYNC, (b"data",))


def test_only_the_export_itself_carries_a_profile(ticket: Ticket) -> None:
    path = ticket.path(LAKE, Profile.SYNC) + b"/x@bulk"
    assert ticket.parse(path) == Export(LAKE, Profile.SYNC, (b"x@bulk",))


@pytest.mark.parametrize("path", [b"", b"/", b"/lake", b"/lake/people", b"people", b"/x/lake", b"//"])
def test_a_path_without_the_ticket_is_refused(ticket: Ticket, path: bytes) -> None:
    with pytest.raises(NfsError) as refused:
        ticket.parse(path)
    assert refused.value.status is Status.ACCES


def test_a_ticket_that_is_almost_right_is_refused(ticket: Ticket, tmp_path: Path) -> None:
    secret = (tmp_path / "ticket").read_bytes()
    for wrong in (secret[:-1], secret + b"A", secret.swapcase(), secret[:-1] + b"\xff", b"A" * 22):
        with pytest.raises(NfsError, match="ACCES"):
            ticket.parse(b"/" + wrong + b"/lake")


@given(st.binary(max_size=60))
def test_no_bytes_are_a_way_around_the_ticket(tmp_path_factory: pytest.TempPathFactory, path: bytes) -> None:
    ticket = Ticket(tmp_path_factory.getbasetemp())
    with pytest.raises(NfsError, match="ACCES"):
        ticket.parse(path)


@pytest.mark.parametrize(
    ("rest", "status"),
    [
        (b"", Status.NOENT),
        (b"/", Status.NOENT),
        (b"/lake/..", Status.NOENT),
        (b"/../lake", Status.NOENT),
        (b"/lake/./people", Status.NOENT),
        (b"/lake/a\0b", Status.NOENT),
        (b"/" + b"n" * 300, Status.NAMETOOLONG),
    ],
)
def test_with_the_ticket_a_path_that_leads_nowhere_is_refused(
    ticket: Ticket, tmp_path: Path, rest: bytes, status: Status
) -> None:
    with pytest.raises(NfsError) as refused:
        ticket.parse(b"/" + (tmp_path / "ticket").read_bytes() + rest)
    assert refused.value.status is status


def test_the_ticket_stays_is_private_and_differs_by_server(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    paths = [
        Ticket(directory).path(LAKE, Profile.SYNC) for directory in (tmp_path, tmp_path, tmp_path / "other")
    ]
    assert paths[0] == paths[1] != paths[2]
    assert (tmp_path / "ticket").stat().st_mode & 0o777 == 0o600
    assert re.fullmatch(rb"/[\w-]{22}/lake", paths[0])


def test_a_ticket_does_not_show_itself(ticket: Ticket, tmp_path: Path) -> None:
    assert (tmp_path / "ticket").read_text() not in f"{ticket!r} {ticket}"


def test_the_name_of_an_export_tells_its_profile() -> None:
    assert export_name(LAKE, Profile.SYNC) == b"lake"
    assert export_name(LAKE, Profile.BULK) == b"lake@bulk"
