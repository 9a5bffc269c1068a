"""How a browser stays signed in, and for how long."""

from __future__ import annotations

import asyncio

import pytest

from farm.service.auth.browser import BrowserAuth, cookie, cookie_name, is_page, way
from farm.service.auth.local_token import LOCAL
from farm.service.auth.sessions import CODE_SECONDS, MOST_SESSIONS, SESSION_SECONDS, Sessions
from farm.store.keys import Key

HOST = "127.0.0.1:8700"


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_session_ends_with_its_time() -> None:
    clock = Clock()
    sessions = Sessions(clock=clock)
    session = sessions.begin("token")
    clock.now += SESSION_SECONDS - 1
    assert sessions.find(session.id) == session
    clock.now += 2
    assert sessions.find(session.id) is None


def test_a_session_ends_when_its_guest_signs_out() -> None:
    sessions = Sessions()
    session, other = sessions.begin("token"), sessions.begin("token")
    sessions.end(session)
    assert sessions.find(session.id) is None
    assert sessions.find(other.id) == other


def test_neither_id_nor_form_token_is_the_token_or_known_before() -> None:
    sessions = Sessions()
    one, other = sessions.begin("token"), sessions.begin("token")
    assert len({"token", one.id, other.id, one.csrf, other.csrf, sessions.anonymous.csrf}) == 6
    assert "token" not in repr(one) and one.id not in repr(one) and one.csrf not in repr(one)


def test_a_form_is_of_one_session_only() -> None:
    sessions = Sessions()
    one, other = sessions.begin("token"), sessions.begin("token")
    assert one.allows(one.csrf)
    assert not one.allows(other.csrf)
    assert not one.allows("")
    assert not one.allows("\udcff")


def test_many_sessions_use_up_no_memory() -> None:
    sessions = Sessions()
    begun = [sessions.begin("token") for _ in range(1000)]
    assert [each for each in begun if sessions.find(each.id)] == begun[-MOST_SESSIONS:]


def test_many_sessions_of_one_token_end_none_of_another() -> None:
    sessions = Sessions()
    other = sessions.begin("another token")
    for _ in range(1000):
        sessions.begin("token")
    assert sessions.find(other.id) == other


def test_a_code_opens_once_and_within_its_time() -> None:
    clock = Clock()
    sessions = Sessions(clock=clock)
    code = sessions.invite("token")
    assert sessions.redeem("") is None
    assert sessions.redeem(code) == "token"
    assert sessions.redeem(code) is None
    late = sessions.invite("token")
    clock.now += CODE_SECONDS + 1
    assert sessions.redeem(late) is None


def viewer_of(browsers: BrowserAuth, *cookies: str) -> Key | None:
    found = asyncio.run(browsers.viewer(cookies, host=HOST))
    return None if found is None else found.key


def test_a_revoked_key_ends_its_sessions() -> None:
    valid = {"token": LOCAL}
    browsers = BrowserAuth(valid.get)
    session = browsers.sessions.begin("token")
    header = f"other=1; {cookie_name(HOST, is_secure=False)}={session.id}"
    assert viewer_of(browsers, header) == LOCAL
    valid.clear()
    assert viewer_of(browsers, header) is None


@pytest.mark.parametrize("header", ["", "farm-page-8700=", "farm-page-8700", "=;=;", "farm-page-8700=token"])
def test_a_cookie_that_names_no_session_opens_nothing(header: str) -> None:
    assert viewer_of(BrowserAuth({"token": LOCAL}.get), header) is None


def test_a_cookie_for_another_port_opens_nothing() -> None:
    browsers = BrowserAuth({"token": LOCAL}.get)
    session = browsers.sessions.begin("token")
    assert viewer_of(browsers, f"farm-page-8701={session.id}") is None


def test_the_cookie_is_strict_and_for_the_page_alone() -> None:
    session = Sessions().begin("token")
    plain = cookie(session, host=HOST, is_secure=False)
    assert plain.startswith(f"farm-page-8700={session.id}; ")
    for words in ("HttpOnly", "SameSite=Strict", "Path=/page", f"Max-Age={SESSION_SECONDS}"):
        assert f"; {words}" in plain
    secure = cookie(session, host=HOST, is_secure=True)
    assert secure.startswith("__Secure-farm-page-8700=") and secure.endswith("; Secure")
    assert "Max-Age=0" in cookie(None, host=HOST, is_secure=False)


@pytest.mark.parametrize(
    "path",
    ["/page/", "/page/runs/abc", "/page/runs/abc/0/12?state=proved&after=0:5", "/page/compare?one=a%20b"],
)
def test_a_sign_in_leads_to_where_it_was_asked_for(path: str) -> None:
    assert way(path) == path


@pytest.mark.parametrize(
    "path",
    [
        *("", "/", "/v1/batches", "//evil.example", "/page//evil.example/..//", "https://evil.example/page/"),
        *(
            "/page/../v1",
            "/page/\\evil.example",
            "/page/\r\nSet-Cookie: a=b",
            "/pages",
            "javascript:alert(1)",
        ),
        "/page/" + "a" * 1000,
    ],
)
def test_a_sign_in_leads_nowhere_else(path: str) -> None:
    assert way(path) == "/page/"


@pytest.mark.parametrize("path", ["/", "/page", "/page/", "/page/runs/x"])
def test_these_addresses_are_the_pages(path: str) -> None:
    assert is_page(path)


@pytest.mark.parametrize("path", ["", "/pages", "/v1/batches", "/execute", "//page/", "/v1/page/", "/health"])
def test_these_are_not(path: str) -> None:
    assert not is_page(path)
