"""The page for people needs nothing from anywhere else."""

from __future__ import annotations

import re

import pytest

from lakehouse_platform_tests.support.http_server import LiveHttp

FILES = {"/docs": "text/html", "/docs/script.js": "text/javascript", "/docs/style.css": "text/css"}


@pytest.mark.parametrize(("path", "media_type"), FILES.items())
def test_each_file_comes_from_this_server_under_a_strict_policy(
    shared: LiveHttp, path: str, media_type: str
) -> None:
    answer = shared.get(path)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == f"{media_type}; charset=utf-8"
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy


@pytest.mark.parametrize("path", FILES)
def test_no_file_names_another_server_or_brings_code_inside_the_page(shared: LiveHttp, path: str) -> None:
    text = shared.get(path).text
    assert re.findall(r"https?://|//[a-z0-9.-]+\.[a-z]{2,}/", text) == []
    if path == "/docs":
        assert re.findall(r"<script(?![^>]*\bsrc=)|<style|\bon\w+=|style=", text) == []
    assert "innerHTML" not in text


def test_what_the_page_needs_is_there(shared: LiveHttp) -> None:
    page = shared.get("/docs").text
    for place in re.findall(r'(?:src|href)="([^"]+)"', page):
        assert shared.get(f"/{place}").status_code == 200
