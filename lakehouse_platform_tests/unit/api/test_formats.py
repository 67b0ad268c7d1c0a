import time

import pytest
from starlette.exceptions import HTTPException

from lakehouse_platform.api.formats import RowForm, sent_form, wanted_form

JSON, NDJSON, CSV, ARROW = RowForm


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        (None, JSON),
        ("", JSON),
        ("*/*", JSON),
        ("application/*", JSON),
        ("text/*", CSV),
        ("application/json", JSON),
        ("APPLICATION/X-NDJSON", NDJSON),
        ("text/csv", CSV),
        ("text/csv; charset=utf-8; header=present", CSV),
        ('text/csv;charset="UTF-8"', CSV),
        ("application/vnd.apache.arrow.stream", ARROW),
        ("text/csv, application/json", JSON),
        ("text/csv;q=0.9, application/json;q=0.8", CSV),
        ("text/csv;q=0.8, application/*;q=0.9", JSON),
        ("*/*;q=0.1, text/csv;q=0.2", CSV),
        ("text/html, application/xhtml+xml, */*;q=0.8", JSON),
        ("application/json;q=0, */*", NDJSON),
        ("application/*;q=0, */*;q=0.5", CSV),
        ("*/*;q=0.5, application/json;q=0.001", NDJSON),
        (", ,text/csv,,", CSV),
        ('text/html;level="a,b;c", text/csv', CSV),
        ("application/json;q=2, text/csv;q=0.1", CSV),
        ("nonsense, text/csv;q=0.1", CSV),
    ],
)
def test_the_form_that_is_liked_most_is_chosen(accept: str | None, form: RowForm) -> None:
    assert wanted_form(accept) is form


@pytest.mark.parametrize(
    "accept",
    [
        "text/html",
        "*/*;q=0",
        "text/csv;charset=utf-16",
        "text/csv;header=absent",
        "text/*;q=0, application/xml",
        "nonsense",
        "*/json",
        "x" * 5000,
    ],
)
def test_an_accept_header_that_admits_no_form_is_refused_with_the_forms_that_there_are(accept: str) -> None:
    with pytest.raises(HTTPException) as refusal:
        wanted_form(accept)
    assert refusal.value.status_code == 406
    assert all(form in str(refusal.value.detail) for form in RowForm)


@pytest.mark.parametrize(
    ("content_type", "form"),
    [
        ("application/json", JSON),
        ("application/json; charset=utf-8", JSON),
        ("Application/X-NDJSON", NDJSON),
        ("text/csv;header=present", CSV),
        ("application/vnd.apache.arrow.stream", ARROW),
    ],
)
def test_a_content_type_says_which_form_rows_have(content_type: str, form: RowForm) -> None:
    assert sent_form(content_type) is form


@pytest.mark.parametrize(
    "content_type",
    [
        None,
        "",
        "*/*",
        "application/*",
        "text/plain",
        "text/csv; charset=latin1",
        "application/json, text/csv",
        "application/x-www-form-urlencoded",
        "application/json\n",
        "application/vnd.apache.arrow.file",
    ],
)
def test_a_content_type_of_another_kind_is_refused(content_type: str | None) -> None:
    with pytest.raises(HTTPException) as refusal:
        sent_form(content_type)
    assert refusal.value.status_code == 415


def test_hostile_headers_take_no_time() -> None:
    hostile = [
        'a/b;c="' + "\\a" * 2000,
        "a/b" + ";a=b" * 1000 + ";",
        '"' * 4000,
        "a/a," * 1024,
        "a/b;" + "a=" * 2000,
    ]
    began = time.perf_counter()
    for header in hostile:
        for read in (wanted_form, sent_form):
            with pytest.raises(HTTPException):
                read(header)
    assert time.perf_counter() - began < 1
