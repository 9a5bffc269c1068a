"""The page over real HTTP, at the gate of `farm serve`: who gets in, who sees what, who changes what."""

from __future__ import annotations

import contextlib
import html
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser
from pathlib import Path

import httpx
import pytest
import uvicorn
from sqlalchemy import Engine

from farm.connections import Connections
from farm.service.app import application
from farm.service.auth.browser import BrowserAuth
from farm.service.auth.key_ring import KeyRing
from farm.service.auth.local_token import LOCAL
from farm.service.auth.middleware import AuthMiddleware
from farm.service.auth.origins import allowed_hosts
from farm.service.auth.tokens import ApiToken
from farm.service.backend import Backend
from farm.service.page.responses import HEADERS
from farm.settings import Settings
from farm.store.keys import Key, Keys, Scope
from farm.store.looking import LineFilter, LinePlace, Looking
from tests.commands import HEADER, PROVED, WRONG, Command, entry
from tests.farms import CORE, Quiet, load
from tests.processes import PATIENCE, eventually

LOCAL_TOKEN = "the token of this start"
HOSTILE = "</td><script>alert(1)</script>\u202e\"' onload=alert(1) {{ 7 * 7 }}"


class Tags(HTMLParser):
    """Collects the tags of a page, with their attributes, and its text."""

    def __init__(self, body: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(body)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


@dataclass
class Browser:
    """A browser that keeps cookies, follows no redirect by itself, and says its origin as browsers do."""

    url: str
    client: httpx.Client = field(init=False)

    def __post_init__(self) -> None:
        self.client = httpx.Client(base_url=self.url, timeout=60 * PATIENCE)

    def answers(self) -> bool:
        """Whether the service listens; it says where a moment before."""
        with socket.socket() as probe:
            return probe.connect_ex((self.client.base_url.host, self.client.base_url.port or 80)) == 0

    def get(self, path: str, *, status: int = 200, **headers: str) -> httpx.Response:
        answer = self.client.get(path, headers=headers)
        assert answer.status_code == status, answer.text
        return answer

    def post(self, path: str, data: dict[str, str], *, status: int = 303, **headers: str) -> httpx.Response:
        answer = self.client.post(path, data=data, headers={"Origin": self.url, **headers})
        assert answer.status_code == status, answer.text
        return answer

    def sign_in(self, token: str) -> Browser:
        assert self.post("/page/sign-in", {"token": token}).headers["location"] == "/page/"
        return self

    def csrf(self, path: str = "/page/") -> str:
        found = re.search(r'name="csrf" value="([^"]+)"', self.get(path).text)
        assert found
        return found[1]


class Door:
    """Who comes in: who has the local token, and who has a key of the farm."""

    def __init__(self, engine: Engine) -> None:
        self.keys = Keys(engine)
        self.forget()

    def forget(self) -> None:
        """Read the keys again for the next token: one was added this moment."""
        self._ring = KeyRing(self.keys.valid)

    def verify(self, token: str) -> Key | None:
        return LOCAL if token == LOCAL_TOKEN else self._ring.verify(token)


@dataclass(frozen=True)
class Page:
    """A served farm without a worker, and who may come to its page."""

    quiet: Quiet
    url: str
    door: Door
    access: BrowserAuth
    browsers: contextlib.ExitStack

    def browser(self) -> Browser:
        browser = Browser(self.url)
        self.browsers.enter_context(browser.client)
        return browser

    def local(self) -> Browser:
        return self.browser().sign_in(LOCAL_TOKEN)

    def key(self, name: str, *scopes: Scope) -> str:
        """Add a key and return its token."""
        token = ApiToken.new()
        key = Key(id=token.id, name=name, scopes=frozenset(scopes or Scope), classes=LOCAL.classes)
        self.door.keys.add(key, token.sha256)
        self.door.forget()
        return token.text

    def load(self, folder: Path, *entries: dict[str, object], name: str = "m.jsonl") -> str:
        return load(self.quiet.store, folder / name, *entries)


@pytest.fixture
def page(shared_page: Page) -> Iterator[Page]:
    """The page of a farm in which nothing was submitted yet, and to which nobody has a key."""
    shared_page.quiet.clear()
    shared_page.door.forget()
    with contextlib.ExitStack() as browsers:
        yield replace(shared_page, browsers=browsers)


@pytest.fixture(scope="module")
def shared_page(shared_quiet: Quiet) -> Iterator[Page]:
    connections = Connections(Settings.load(shared_quiet.farm.settings), threads=10)
    door = Door(connections.engine)
    access = BrowserAuth(door.verify, shown_to=["anna"])
    config = uvicorn.Config("", port=0, log_config=None, timeout_graceful_shutdown=1)
    bound = config.bind_socket()
    port = bound.getsockname()[1]
    config.app = AuthMiddleware(
        application(lambda: Backend(connections)),
        hosts=allowed_hosts(port=port),
        browsers=access,
        most_bytes=1 << 20,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: server.run([bound]), daemon=True)
    thread.start()
    try:
        eventually(lambda: server.started)
        yield Page(shared_quiet, f"http://127.0.0.1:{port}", door, access, contextlib.ExitStack())
    finally:
        server.should_exit = True
        thread.join(30)
        connections.close()
        bound.close()


class TestComingIn:
    def test_who_is_not_signed_in_is_sent_to_the_form_and_back(self, page: Page) -> None:
        browser = page.browser()
        assert browser.get("/", status=303).headers["location"] == "/page/"
        sent = browser.get("/page/runs/abc?state=proved", status=303).headers["location"]
        assert sent == "/page/sign-in?next=%2Fpage%2Fruns%2Fabc%3Fstate%3Dproved"
        form = browser.get(sent)
        assert 'value="/page/runs/abc?state=proved"' in form.text
        leads = browser.post("/page/sign-in", {"token": LOCAL_TOKEN, "next": "/page/runs/abc?state=proved"})
        assert leads.headers["location"] == "/page/runs/abc?state=proved"

    def test_a_sign_in_leads_to_no_other_site(self, page: Page) -> None:
        leads = page.browser().post("/page/sign-in", {"token": LOCAL_TOKEN, "next": "//evil.example/page/"})
        assert leads.headers["location"] == "/page/"

    @pytest.mark.parametrize("token", ["", "wrong", "farm_000000000000_" + "a" * 43, "\udcff"])
    def test_a_wrong_token_opens_nothing(self, page: Page, token: str) -> None:
        browser = page.browser()
        given = token.encode("utf-8", "replace").decode()
        answer = browser.post("/page/sign-in", {"token": given}, status=401)
        assert "set-cookie" not in answer.headers
        assert 'role="alert"' in answer.text
        browser.get("/page/", status=303)

    def test_the_token_is_in_no_cookie_and_no_page(self, page: Page) -> None:
        browser = page.local()
        (cookie,) = browser.client.cookies.jar
        assert LOCAL_TOKEN not in str(cookie.value)
        assert LOCAL_TOKEN not in browser.get("/page/").text

    def test_a_sign_in_makes_a_new_session_whatever_the_browser_had(self, page: Page) -> None:
        planted = page.local()
        (known,) = [cookie.value for cookie in planted.client.cookies.jar]
        victim = page.browser()
        name = next(iter(planted.client.cookies))
        victim.client.cookies.set(name, str(known), path="/page")
        answer = victim.post("/page/sign-in", {"token": page.key("anna")})
        assert str(known) not in answer.headers["set-cookie"]
        planted.get("/page/", status=303)  # the one that was known has ended

    def test_the_link_of_the_start_opens_once(self, page: Page) -> None:
        link = f"/page/enter?code={page.access.sessions.invite(LOCAL_TOKEN)}"
        for method, headers in (("HEAD", {}), ("GET", {"Sec-Purpose": "prefetch"})):
            browser = page.browser()
            assert browser.client.request(method, link, headers=headers).status_code == 401
        assert page.browser().get(link, status=303).headers["location"] == "/page/"
        assert "used already" in page.browser().get(link, status=401).text

    def test_who_signs_out_is_out(self, page: Page) -> None:
        browser = page.local()
        answer = browser.post("/page/sign-out", {"csrf": browser.csrf()})
        assert "Max-Age=0" in answer.headers["set-cookie"]
        browser.get("/page/", status=303)

    def test_a_revoked_key_is_out_soon(self, page: Page) -> None:
        browser = page.browser().sign_in(page.key("trainer"))
        Keys(page.quiet.engine).revoke("trainer")
        eventually(lambda: browser.client.get("/page/").status_code == 303)

    def test_a_service_without_tokens_shows_its_page_to_all_its_users(
        self, shared_quiet: Quiet, tmp_path: Path
    ) -> None:
        with shared_quiet.farm.started(tmp_path, "serve", "--port", "0", "--no-token") as running:
            eventually(lambda: "Listening" in running.said, seconds=60)
            found = re.search(r"http://\S+?(?=,)", running.said)
            assert found, running.said
            browser = Browser(found[0])
            with browser.client:
                eventually(browser.answers)
                browser.post("/page/runs/none/cancel", {"csrf": "no"}, status=403)
                assert "Sign out" not in browser.get("/page/").text


class TestStrangers:
    """Pages of other sites, in a browser that is signed in."""

    @pytest.mark.parametrize(
        "headers",
        [
            {"Host": "evil.example"},
            {"Origin": "http://evil.example"},
            {"Origin": "null"},
            {"Sec-Fetch-Site": "cross-site"},
            {"Sec-Fetch-Site": "same-site"},  # another port of this machine
            {
                "Sec-Fetch-Site": "cross-site",
                "Sec-Fetch-Mode": "navigate",
                "Sec-Fetch-Dest": "iframe",
            },
        ],
    )
    def test_may_not_even_look(self, page: Page, headers: dict[str, str]) -> None:
        page.local().get("/page/", status=403, **headers)

    @pytest.mark.parametrize(
        ("headers", "status"),
        [
            ({"Origin": "http://evil.example"}, 403),
            ({"Origin": "http://127.0.0.1:1"}, 403),
            ({"Origin": "null"}, 403),
            ({"Sec-Fetch-Site": "cross-site"}, 403),
            (
                {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"},
                403,
            ),
            ({"Content-Type": "text/plain"}, 415),
            ({"Content-Type": "multipart/form-data; boundary=x"}, 415),
        ],
    )
    @pytest.mark.parametrize("path", ["/page/sign-in", "/page/sign-out", "/page/runs/x/cancel"])
    def test_change_nothing_though_they_know_the_forms(
        self, page: Page, path: str, headers: dict[str, str], status: int
    ) -> None:
        browser = page.local()
        browser.post(path, {"csrf": browser.csrf(), "token": LOCAL_TOKEN}, status=status, **headers)
        browser.get("/page/")

    def test_a_form_without_an_origin_changes_nothing(self, page: Page) -> None:
        browser = page.local()
        for path in ("/page/sign-in", "/page/sign-out"):
            answer = browser.client.post(path, data={"csrf": browser.csrf(), "token": LOCAL_TOKEN})
            assert answer.status_code == 403

    def test_a_link_on_another_site_leads_to_a_page_that_tells_nothing(
        self, page: Page, tmp_path: Path
    ) -> None:
        run = page.load(tmp_path, entry(PROVED, 1))
        fetched = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
        told = page.local().get(f"/page/runs/{run}?name=%22%3E%3Cb%3E", **fetched)
        assert f'href="/page/runs/{run}?name=%22%3E%3Cb%3E"' in told.text
        assert "m.jsonl" not in told.text

    def test_may_not_put_it_into_a_frame_or_read_it(self, page: Page) -> None:
        answers = [page.local().get("/page/"), page.browser().get("/page/sign-in")]
        answers += [page.local().get("/page/nowhere", status=404), page.browser().get("/page/", status=303)]
        for answer in answers:
            for name, value in HEADERS.items():
                assert answer.headers[name] == value
            assert not [name for name in answer.headers if name.startswith("access-control")]

    def test_the_api_takes_no_cookie(self, page: Page) -> None:
        browser = page.local()
        for cookie in list(browser.client.cookies.jar):
            browser.client.cookies.set(cookie.name, str(cookie.value), path="/")
        for path in ("/v1/environments", "/v1/items?ids=a-1", "/openapi.json"):
            browser.get(path, status=401)
        answer = browser.client.post("/v1/batches", json={"items": [{"program": "x"}]})
        assert answer.status_code == 401

    def test_the_page_takes_no_token_of_the_api(self, page: Page) -> None:
        browser = page.browser()
        browser.get("/page/", status=303, Authorization=f"Bearer {LOCAL_TOKEN}")


class TestScopes:
    def test_a_key_sees_its_own_batches_and_no_other_run(self, page: Page, tmp_path: Path) -> None:
        run = page.load(tmp_path, entry(PROVED, 1))
        token, other = page.key("trainer"), page.key("other")
        with httpx.Client(base_url=page.url, headers={"Authorization": f"Bearer {token}"}) as client:
            items = [{"program": HEADER + "theorem t : True := trivial", "name": "mine"}]
            batch = client.post("/v1/batches", json={"items": items}).json()["batch"]
        browser = page.browser().sign_in(token)
        listed = browser.get("/page/").text
        assert batch in listed and run not in listed
        assert "farm serve --page-key trainer" in listed
        assert "mine" in browser.get(f"/page/runs/{batch}").text
        for path in (f"/page/runs/{run}", f"/page/runs/{run}/problems", f"/page/runs/{run}/0/1"):
            browser.get(path, status=404)
        browser.get(f"/page/runs/{run}/0/1/program", status=404)
        browser.get(f"/page/compare?one={run}&other={batch}", status=404)
        browser.post(f"/page/runs/{run}/cancel", {"csrf": browser.csrf()}, status=404)
        stranger = page.browser().sign_in(other)
        assert batch not in stranger.get("/page/").text
        stranger.get(f"/page/runs/{batch}", status=404)
        local = page.local()
        assert batch not in local.get("/page/").text
        local.get(f"/page/runs/{batch}", status=404)

    def test_single_checks_are_one_row_an_hour_and_batches_have_names(self, page: Page) -> None:
        token = page.key("trainer")
        check = {"program": HEADER + "theorem t : True := trivial"}
        with httpx.Client(base_url=page.url, headers={"Authorization": f"Bearer {token}"}) as client:

            def batch(*items: dict[str, object], **more: object) -> str:
                answer = client.post("/v1/batches", json={"items": items, **more})
                assert answer.status_code == 202, answer.text
                return str(answer.json()["batch"])

            singles = [batch({**check, "name": f"single {number}"}) for number in range(3)]
            two = batch(check, {**check, "name": "b"})
            named = batch(check, batch_name=f"step 100 {HOSTILE}")
        browser = page.browser().sign_in(token)
        listed = browser.get("/page/").text
        assert [each for each in (*singles, two, named) if f'/page/runs/{each}"' in listed] == [two, named]
        assert "step 100" in Tags(listed).text
        assert "<script>alert" not in listed
        (hour,) = re.findall(r'href="(/page/checks[^"]+)"', listed)
        shown = browser.get(hour).text
        assert all(each in shown for each in singles)
        assert not any(each in shown for each in (two, named))
        stranger = page.browser().sign_in(page.key("other"))
        assert not any(each in stranger.get(hour).text for each in singles)
        browser.get("/page/checks?hour=yesterday", status=404)
        offered = browser.get("/page/compare").text
        assert f'value="{two}"' in offered and f'value="{named}"' in offered

    def test_the_addresses_are_shown_to_who_is_signed_in(self, page: Page) -> None:
        assert page.browser().get("/docs", status=303).headers["location"] == "/page/docs"
        page.browser().get("/page/docs", status=303)
        shown = page.local().get("/page/docs").text
        assert "POST /v1/batches" in shown and "POST /execute" in shown and "batch_name" in shown

    def test_a_key_that_was_named_sees_the_runs(self, page: Page, tmp_path: Path) -> None:
        run = page.load(tmp_path, entry(PROVED, 1))
        browser = page.browser().sign_in(page.key("anna", Scope.READ))
        assert run in browser.get("/page/").text
        assert "m.jsonl" in browser.get(f"/page/runs/{run}").text

    def test_a_key_that_may_not_read_is_told_so(self, page: Page) -> None:
        browser = page.browser()
        token = page.key("writer", Scope.SUBMIT, Scope.CANCEL)
        assert "scope read" in browser.post("/page/sign-in", {"token": token}, status=403).text

    def test_who_may_not_cancel_has_no_button_and_cannot(self, page: Page, tmp_path: Path) -> None:
        run = page.load(tmp_path, entry(PROVED, 1))
        browser = page.browser().sign_in(page.key("anna", Scope.READ))
        assert "/cancel" not in browser.get(f"/page/runs/{run}").text
        browser.post(f"/page/runs/{run}/cancel", {"csrf": browser.csrf()}, status=403)
        assert page.quiet.queries.tally(run).statuses == {"queued": 1}

    def test_a_run_is_cancelled_by_a_form_of_this_session_only(self, page: Page, tmp_path: Path) -> None:
        run = page.load(tmp_path, entry(PROVED, 1), entry(PROVED, 2))
        browser, other = page.local(), page.local()
        for csrf in ("", "x", other.csrf(), page.access.sessions.anonymous.csrf):
            browser.post(f"/page/runs/{run}/cancel", {"csrf": csrf}, status=403)
        assert page.quiet.queries.tally(run).statuses == {"queued": 2}
        browser.post(f"/page/runs/{run}/cancel", {"csrf": browser.csrf()})
        assert page.quiet.queries.tally(run).statuses == {"cancelled": 2}
        assert "2 cancelled" in browser.get(f"/page/runs/{run}").text.replace("\n", " ")

    def test_nothing_changes_by_get(self, page: Page, tmp_path: Path) -> None:
        run = page.load(tmp_path, entry(PROVED, 1))
        browser = page.local()
        for path in (f"/page/runs/{run}/cancel", "/page/sign-out"):
            assert browser.client.get(path).status_code == 405
        assert page.quiet.queries.tally(run).statuses == {"queued": 1}

    @pytest.mark.parametrize("size", [16_385, 2 << 20])
    def test_a_long_form_is_refused(self, page: Page, size: int) -> None:
        answer = page.browser().client.post(
            "/page/sign-in", data={"token": "x" * size}, headers={"Origin": page.url}
        )
        assert answer.status_code in (403, 413)

    @pytest.mark.parametrize("body", [b"", b"token=x"], ids=["no body", "a part of it"])
    def test_a_form_that_does_not_arrive_is_waited_for_shortly(
        self, page: Page, body: bytes, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("farm.service.page.query.FORM_SECONDS", 0.2)
        with _begun_sign_in(page) as client:
            client.sendall(body)
            assert client.recv(4096).startswith(b"HTTP/1.1 403 ")

    def test_a_client_that_goes_away_within_its_form_is_no_failure(
        self, page: Page, caplog: pytest.LogCaptureFixture
    ) -> None:
        with _begun_sign_in(page) as client:
            client.sendall(b"token=x")
        page.browser().get("/page/sign-in")
        assert [each for each in caplog.records if each.levelname == "ERROR"] == []


@contextmanager
def _begun_sign_in(page: Page) -> Iterator[socket.socket]:
    """A connection that has sent the head of a sign-in."""
    host = page.url.removeprefix("http://")
    with socket.create_connection(("127.0.0.1", int(host.split(":")[1])), timeout=20) as client:
        head = (
            f"POST /page/sign-in HTTP/1.1\r\nHost: {host}\r\nOrigin: {page.url}\r\nContent-Length: 9000\r\n"
        )
        client.sendall(f"{head}Content-Type: application/x-www-form-urlencoded\r\n\r\n".encode())
        yield client


class TestLooking:
    def test_lines_are_filtered_and_paged_by_place(self, page: Page, tmp_path: Path) -> None:
        entries = [entry(PROVED if n % 2 else WRONG, n, group=f"g{n % 3}") for n in range(1, 251)]
        run = page.load(tmp_path, *entries)
        page.quiet.judge(run, *range(1, 250, 2))
        browser = page.local()
        path, seen = f"/page/runs/{run}?state=proved", list[int]()
        for expected in (100, 25):
            told = browser.get(path).text
            found = [int(n) for n in re.findall(rf'href="/page/runs/{run}/0/(\d+)"', told)]
            assert len(found) == expected
            seen += found
            more = re.search(r'rel="next" href="([^"]+)"', told)
            path = more[1].replace("&amp;", "&") if more else ""
        assert seen == list(range(1, 250, 2)) and path == ""
        told = browser.get(f"/page/runs/{run}?state=waiting&name=t24&group=g0").text
        assert re.findall(rf'href="/page/runs/{run}/0/(\d+)"', told) == ["24", "240", "246"]
        for empty in ("state=nonsense", "reason=%00", "name=%00", "group=nowhere", "state=cancelled"):
            assert "No line is like that" in browser.get(f"/page/runs/{run}?{empty}").text

    def test_problems_are_counted(self, page: Page, tmp_path: Path) -> None:
        run = page.load(tmp_path, *(entry(PROVED, n, group=f"g{n % 2}") for n in range(1, 5)))
        page.quiet.judge(run, 1)
        found = Looking(page.quiet.engine).problems(run)
        assert [(each.group_name, each.samples, each.judged, each.proved) for each in found] == [
            ("g1", 2, 1, 1),
            ("g0", 2, 0, 0),
        ]
        told = page.local().get(f"/page/runs/{run}/problems?state=unsolved").text
        assert ">g0<" in told and ">g1<" not in told

    def test_older_runs_are_on_the_next_page(self, page: Page, tmp_path: Path) -> None:
        runs = [page.load(tmp_path, entry(PROVED, 1), name=f"{n}.jsonl") for n in range(32)]
        browser = page.local()
        first = re.findall(r'<h3><a href="/page/runs/(\w+)"', browser.get("/page/").text)
        assert first == runs[:1:-1]
        second = re.findall(r'<h3><a href="/page/runs/(\w+)"', browser.get(f"/page/?before={first[-1]}").text)
        assert second == runs[1::-1]

    def test_two_runs_are_compared(self, page: Page, tmp_path: Path) -> None:
        entries = [entry(PROVED, n, group=f"g{n % 2}") for n in range(1, 5)]
        one = page.load(tmp_path, *entries)
        other = load(page.quiet.store, tmp_path / "other.jsonl", *entries, share=False)
        page.quiet.judge(one, 1, 2)
        page.quiet.judge(other, 2, 3, 4)
        looking = Looking(page.quiet.engine)
        assert [each.line for each in looking.lines_that_differ(one, other)] == [1, 3, 4]
        assert [each.line for each in looking.lines_that_differ(one, other, after=LinePlace(0, 1))] == [3, 4]
        assert looking.problems_that_differ(one, other) == []
        assert looking.turns(one, other) == {
            ("proved", "waiting"): 1,
            ("proved", "proved"): 1,
            ("waiting", "proved"): 2,
        }
        for by in ("lines", "problems"):
            page.local().get(f"/page/compare?one={one}&other={other}&by={by}")

    def test_a_recheck_names_the_run_that_it_judges_again_and_leads_to_what_changed(
        self, page: Page, tmp_path: Path
    ) -> None:
        page.quiet.store.register([replace(CORE, name="next", digest="d2")])
        run = page.load(tmp_path, entry(PROVED, 1), entry(PROVED, 2))
        page.quiet.judge(run, 1, 2)
        words = "--environment", "next", "--no-wait"
        again = page.quiet.farm.json("rejudge", run, *words)["run"]
        browser = page.local()
        shown = browser.get(f"/page/runs/{again}").text
        assert f"recheck of {run} in next: m.jsonl" in Tags(shown).text
        assert "t1" in Tags(shown).text
        assert f"recheck of {run} in next" in Tags(browser.get("/page/").text).text
        (link,) = re.findall(r'href="(/page/compare[^"]+)">What the recheck changed', shown)
        assert "proved" in Tags(browser.get(html.unescape(link)).text).text

    def test_counts_are_those_of_the_command(self, page: Page, tmp_path: Path) -> None:
        run = page.load(tmp_path, *(entry(PROVED, n) for n in range(1, 6)))
        page.quiet.judge(run, 1)
        page.quiet.judge(run, 2, exit_status=1, audit=None)
        page.quiet.store.claim(["core"], worker="w", lease_seconds=60)
        told, counted = page.quiet.queries.tally(run), Looking(page.quiet.engine).counts(run)
        assert (counted.statuses, counted.verdicts) == (told.statuses, told.verdicts)
        assert (counted.unchecked, counted.trusting) == (told.unchecked, told.trusting)
        assert len(Looking(page.quiet.engine).lines(run, LineFilter(state="waiting"))) == told.unfinished

    def test_hostile_text_is_text_everywhere(self, page: Page, tmp_path: Path) -> None:
        program = HEADER + f"theorem t : True := trivial -- {HOSTILE}"
        run = page.load(
            tmp_path,
            {"name": HOSTILE, "group": HOSTILE, "predicted_proof": program},
            name="<script>&.jsonl",
        )
        page.quiet.judge(run, 1, box_error=HOSTILE)
        browser = page.local()
        paths = ["/page/", f"/page/runs/{run}", f"/page/runs/{run}/0/1", f"/page/runs/{run}/problems"]
        paths += [f"/page/compare?one={run}&other={run}", f"/page/runs/{run}?name=%22%3E%3Cscript%3E"]
        for path in paths:
            body = browser.get(path).text
            found = Tags(body)
            assert {attrs.get("src") for tag, attrs in found.tags if tag == "script"} == {
                attrs["src"] for tag, attrs in found.tags if "/assets/" in str(attrs.get("src"))
            }
            assert not [attrs for _, attrs in found.tags if any(name.startswith("on") for name in attrs)]
            assert not [attrs for _, attrs in found.tags if "style" in attrs]
            assert "\u202e" not in body
        assert r"</td><script>alert(1)</script>\u202e" in Tags(browser.get(paths[2]).text).text

    def test_a_program_is_given_as_a_file(self, page: Page, tmp_path: Path) -> None:
        program = HEADER + "theorem t : True := trivial -- </script>"
        run = page.load(tmp_path, {"name": "t", "predicted_proof": program})
        answer = page.local().get(f"/page/runs/{run}/0/1/program")
        assert answer.text == program
        assert answer.headers["content-type"].startswith("text/plain")
        assert answer.headers["content-disposition"] == f'attachment; filename="{run}-0-1.lean"'
        assert answer.headers["x-content-type-options"] == "nosniff"

    @pytest.mark.parametrize(
        "path",
        [
            "/page/runs/none",
            "/page/runs/%00",
            "/page/runs/%ff",
            "/page/runs/a/0/" + "9" * 5000,
            "/page/runs/a/0/-1",
            "/page/runs/a/x/1",
            "/page/compare?one=a&other=b",
            "/page/assets/..%2fdoor.py",
            "/page/nowhere",
            "/page/v1/environments",
        ],
    )
    def test_what_is_not_there_is_not_found(self, page: Page, path: str) -> None:
        answer = page.local().get(path, status=404)
        assert answer.headers["content-type"].startswith("text/html")

    def test_a_command_can_be_stopped_while_the_page_is_open(
        self, shared_quiet: Quiet, tmp_path: Path
    ) -> None:
        farm: Command = shared_quiet.farm
        with farm.started(tmp_path, "serve", "--port", "0") as running:
            eventually(lambda: "/page/enter?code=" in running.said, seconds=60)
            found = re.search(r"open (http://[^/]+)(/\S+)", running.said)
            assert found
            browser = Browser(found[1])
            with browser.client:
                eventually(browser.answers)
                browser.get(found[2], status=303)
                assert "Runs" in browser.get("/page/").text
            running.process.terminate()
            running.ended()
