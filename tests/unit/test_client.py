"""The HTTP client without a socket: what it asks, what it believes, when it asks again, and where."""

from __future__ import annotations

import inspect
import json
import os
import socket
import ssl
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from farm.client import (
    AsyncClient,
    Client,
    Conflict,
    Fault,
    Forbidden,
    Invalid,
    NoService,
    NotAFarm,
    NotFound,
    Result,
    ServiceFailed,
    TooLarge,
    Unanswered,
    Unauthorized,
    Unreachable,
    address,
    exchange,
    requests,
    results,
)
from farm.client.exchange import Call, Following, Pause, Steps
from farm.client.requests import Request, Sent
from farm.client.retry import HttpReply, Lost, pause_after

GONE = Lost(why="Connection refused", reached=True)
DONE = {"status": "done", "verdict": "proved", "reward": 1.0}
OPEN = {"status": "queued", "verdict": None, "reward": None}


@dataclass
class Service:
    """A service that answers what the test says, and the clock that both go by."""

    answers: list[object]
    now: float = 0.0
    asked: list[Request] = field(default_factory=list)
    pauses: list[float] = field(default_factory=list)

    def call(self, seconds: float | None = 60.0) -> Call:
        return Call(url="http://farm", seconds=seconds, clock=lambda: self.now)

    def run(self, steps: Steps[Any]) -> Any:
        answer: HttpReply | Lost | None = None
        while True:
            try:
                step = steps.send(answer)
            except StopIteration as end:
                return end.value
            answer = self._answer(step)

    def _answer(self, step: Request | Pause) -> HttpReply | Lost | None:
        if isinstance(step, Pause):
            self.pauses.append(step.seconds)
            self.now += step.seconds
            return None
        self.asked.append(step)
        said = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(said, tuple):
            seconds, said = said
            self.now += seconds
        return (
            said
            if isinstance(said, HttpReply | Lost)
            else HttpReply(status=200, body=json.dumps(said).encode())
        )


def sent(*names: str, first: int = 0) -> Sent:
    (batch,) = requests.batches([{"program": name, "key": name} for name in names], size=10)
    return Sent(first=first, items=batch.items)


def said(*items: dict[str, object], keys: str = "abcdefgh", batch: str = "b") -> dict[str, object]:
    told = [
        {"id": f"{batch}-{place}", "index": place, "key": keys[place], **item}
        for place, item in enumerate(items)
    ]
    return {"batch": batch, "done": False, "items": told}


# What is asked


def test_every_item_gets_a_key_of_its_own_and_keeps_one_that_it_has() -> None:
    (batch,) = requests.batches(["same", "same", {"program": "p", "key": "mine"}], size=10)
    first, second, third = (item.key for item in batch.items)
    assert first != second
    assert len(first) >= 20
    assert third == "mine"
    assert json.loads(batch.items[0].json) == {"program": "same", "key": first}


@pytest.mark.parametrize("item", [b"bytes", 7, None, {"program": object()}, {"program": float("nan")}])
def test_what_is_no_item_is_refused_before_anything_is_sent(item: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        requests.keyed(item)  # type: ignore[arg-type]


def test_items_are_split_by_number_and_by_size() -> None:
    many = list(requests.batches(map(str, range(10)), size=4))
    assert [(each.first, len(each.items)) for each in many] == [(0, 4), (4, 4), (8, 2)]
    large = list(requests.batches(["x" * 3_000_000] * 3, size=4))
    assert [(each.first, len(each.items)) for each in large] == [(0, 1), (1, 1), (2, 1)]
    assert list(requests.batches([], size=4)) == []


def test_the_body_has_the_items_and_only_the_options_that_were_given() -> None:
    chosen = requests.checked({"accept": ("audit",), "timeout": 5.0})
    body = requests.post(sent("a"), chosen, wait_seconds=2.0, deadline=None).body
    assert json.loads(str(body)) == {
        "items": [{"program": "a", "key": "a"}],
        "accept": ["audit"],
        "timeout": 5.0,
        "wait_seconds": 2.0,
    }


def test_an_unknown_option_is_refused_with_those_there_are() -> None:
    with pytest.raises(TypeError, match=r"'timout'.*timeout"):
        Client("http://farm", timout=3.0)  # type: ignore[call-arg]


def test_one_item_is_no_list_of_items() -> None:
    with Client("http://farm") as client, pytest.raises(TypeError, match="give a list"):
        client.check_all("theorem")


@pytest.mark.parametrize("wrong", [{"deadline": 0}, {"deadline": float("nan")}, {"batch_size": 5000}])
def test_a_client_is_not_made_of_nonsense(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Client("http://farm", **wrong)


def test_both_clients_have_the_same_methods() -> None:
    def methods(kind: type) -> dict[str, list[tuple[str, object]]]:
        return {
            name: [(each.name, each.default) for each in inspect.signature(method).parameters.values()]
            for name, method in inspect.getmembers(kind, inspect.isfunction)
            if not name.startswith("_") or name == "__init__"
        }

    assert methods(Client) == methods(AsyncClient)


# What is believed


def test_fields_of_a_newer_service_are_ignored() -> None:
    answer = said({**DONE, "new": 1, "seconds": {"wall": 1.5, "gpu": 2}, "messages": [{"text": "m", "x": 1}]})
    (result,) = results.parse_batch(answer, sent("a")).results
    assert (result.reward, result.seconds and result.seconds.wall) == (1.0, 1.5)
    assert [each.text for each in result.messages] == ["m"]


@pytest.mark.parametrize(
    "lie",
    [
        {"reward": 1.0, "verdict": "rejected"},
        {"reward": 1.0, "verdict": "judge_error"},
        {"reward": 0.0, "verdict": "judge_error"},
        {"reward": 0.0, "verdict": None},
        {"reward": 0.0, "status": "cancelled"},
        {"reward": 1.0, "status": "running"},
        {"reward": 0.5},
        {"reward": True},
        {"reward": "1.0"},
        {"reward": float("nan")},
        {"status": None, "reward": None},
        {"index": "0"},
        {"index": 1},
        {"key": "b"},
        {"key": None},
    ],
    ids=str,
)
def test_a_result_that_contradicts_itself_is_not_believed(lie: dict[str, object]) -> None:
    with pytest.raises(ServiceFailed, match="cannot be used"):
        results.parse_batch(said({**DONE, **lie}), sent("a"))


@pytest.mark.parametrize("answer", [None, [], "x", {}, {"items": {}}, {"items": [1]}, {"items": []}], ids=str)
def test_what_is_no_batch_is_not_believed(answer: object) -> None:
    with pytest.raises(ServiceFailed):
        results.parse_batch(answer, sent("a"))


def test_results_are_those_of_the_items_in_their_order() -> None:
    with pytest.raises(ServiceFailed):
        results.parse_batch(said(DONE, DONE, keys="ba"), sent("a", "b"))
    with pytest.raises(ServiceFailed, match="same id"):
        results.parse_batch(said({**DONE, "id": "b-1"}, DONE), sent("a", "b"))
    batch = results.parse_batch(said(DONE, OPEN), sent("a", "b", first=7))
    assert [each.index for each in batch.results] == [7, 8]
    assert not batch.done


def test_a_result_says_null_where_nothing_is_known() -> None:
    (result,) = results.unknown(sent("a")).results
    assert result == Result(index=0, key="a", status="unknown", reward=None)


# When it asks again


@pytest.mark.parametrize("status", [200, 202, 301, 400, 401, 403, 404, 409, 413, 415, 422, 500, 501])
def test_an_answer_that_does_not_say_later_is_final(status: int) -> None:
    assert pause_after(HttpReply(status=status, body=b"", retry_after="3"), 0) is None


LATER = [GONE, *(HttpReply(status=status, body=b"<html>") for status in (408, 429, 502, 503, 504))]


@pytest.mark.parametrize("answer", LATER)
def test_pauses_have_full_jitter_and_a_longest(answer: HttpReply | Lost) -> None:
    for attempt, longest in ((0, 0.25), (3, 2.0), (50, 10.0), (100_000, 10.0)):
        pauses = [pause_after(answer, attempt) or 0.0 for _ in range(200)]
        assert max(pauses) <= longest
        assert min(pauses) < longest / 4 < 3 * longest / 4 < max(pauses)


@pytest.mark.parametrize(
    ("header", "least"),
    [("5", 5.0), ("0.5", 0.5), ("-3", 0.0), ("inf", 0.0), ("nan", 0.0), ("soon", 0.0), (None, 0.0)],
)
def test_retry_after_is_honoured(header: str | None, least: float) -> None:
    pause = pause_after(HttpReply(status=429, body=b"", retry_after=header), 0)
    assert pause is not None
    assert least <= pause <= least + 0.25


def test_retry_after_may_be_a_date() -> None:
    pauses = []
    for year in (2000, 9000):
        date = format_datetime(datetime(year, 1, 1, tzinfo=UTC), usegmt=True)
        pauses.append(pause_after(HttpReply(status=503, body=b"", retry_after=date), 0))
    # One date is over, and the other thousands of years away.
    assert [pause is not None and pause > 1e9 for pause in pauses] == [False, True]


def test_a_repeated_request_is_the_same_request() -> None:
    service = Service([*LATER, said(DONE)])
    batch = service.run(exchange.judge(sent("a"), {}, service.call()))
    assert [each.reward for each in batch.results] == [1.0]
    assert len(service.asked) == len(LATER) + 1
    assert len({each.body for each in service.asked}) == 1


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (401, Unauthorized),
        (403, Forbidden),
        (404, NotFound),
        (409, Conflict),
        (413, TooLarge),
        (415, Invalid),
        (422, Invalid),
        (418, Invalid),
    ],
)
def test_a_refusal_is_raised_at_once_with_the_words_of_the_service(
    status: int, error: type[Exception]
) -> None:
    service = Service([HttpReply(status=status, body=b'{"detail": "because"}')])
    with pytest.raises(error, match="because"):
        service.run(exchange.judge(sent("a"), {}, service.call()))
    assert len(service.asked) == 1


def test_a_refusal_names_the_fields() -> None:
    fault = {"loc": ["body", "items", 0, "timeout"], "msg": "too long", "type": "x"}
    service = Service([HttpReply(status=422, body=json.dumps({"detail": [fault]}).encode())])
    with pytest.raises(Invalid, match=r"items\.7\.timeout: too long") as raised:
        service.run(exchange.judge(sent("a", first=7), {}, service.call()))
    assert raised.value.faults == (Fault(7, "timeout", "too long"),)


@pytest.mark.parametrize(
    "answer",
    [
        HttpReply(status=500, body=b'{"detail": "unforeseen"}'),
        HttpReply(status=502, body=b"<html>"),
        HttpReply(status=504, body=b"<html>"),
        said({**DONE, "key": "other"}),
        GONE,
        HttpReply(status=503, body=b'{"detail": "PostgreSQL is away"}', retry_after="5"),
        HttpReply(status=429, body=b'{"detail": "full"}', retry_after="1000000"),
    ],
    ids=str,
)
def test_a_failure_of_the_farm_is_an_unknown_reward_and_no_exception(answer: object) -> None:
    service = Service([answer])
    batch = service.run(exchange.judge(sent("a", "b"), {}, service.call(30.0)))
    assert [each.reward for each in batch.results] == [None, None]
    assert [each.index for each in batch.results] == [0, 1]
    assert all(each.detail for each in batch.results)
    assert service.now <= 30.0


FOREIGN = [
    HttpReply(status=200, body=b"<html>hello</html>"),
    HttpReply(status=200, body=b'{"ok": true}'),
    HttpReply(status=200, body=b"[]"),
    HttpReply(status=404, body=b"<html>no such page</html>"),
    HttpReply(status=405, body=b""),
    HttpReply(status=301, body=b"", location="https://farm.example/v1/batches"),
    HttpReply(status=500, body=b"Internal Server Error"),
    HttpReply(status=501, body=b"Unsupported method ('POST')"),
]


@pytest.mark.parametrize("answer", FOREIGN, ids=str)
def test_another_web_server_at_the_address_is_an_error_and_no_list_of_none(answer: HttpReply) -> None:
    service = Service([answer])
    with pytest.raises(NotAFarm, match=r"correct FARM_URL") as raised:
        service.run(exchange.judge(sent("a", "b"), {}, service.call()))
    assert (answer.location or "") in str(raised.value)


@pytest.mark.parametrize("answer", FOREIGN, ids=str)
def test_a_page_of_a_proxy_after_answers_of_a_farm_leaves_rewards_unknown(answer: HttpReply) -> None:
    service = Service([said(DONE), answer])
    call = service.call()
    service.run(exchange.judge(sent("a"), {}, call))
    batch = service.run(exchange.judge(sent("b"), {}, call))
    assert [each.reward for each in batch.results] == [None]


def test_a_wrong_certificate_is_an_error_at_once(tmp_path: Path) -> None:
    certificate, key = tmp_path / "farm.crt", tmp_path / "farm.key"
    subprocess.run(
        f"openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=localhost -keyout {key} -out {certificate}",
        shell=True,
        check=True,
        capture_output=True,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server, ThreadPoolExecutor(1) as threads:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        served = threads.submit(server.handle_request)
        with (
            Client(f"https://127.0.0.1:{server.server_port}", token="t") as client,
            pytest.raises(Unreachable, match=r"certificate .* is not accepted: self.signed.*SSL_CERT_FILE"),
        ):
            client.check("theorem t : True := trivial", deadline=86_400.0)
        served.result(30.0)


def test_what_was_known_before_the_farm_went_away_stays_known() -> None:
    service = Service([said(DONE, OPEN), GONE])
    batch = service.run(exchange.judge(sent("a", "b"), {}, service.call(30.0)))
    assert [(each.status, each.reward) for each in batch.results] == [("done", 1.0), ("queued", None)]
    assert "Connection refused" in batch.results[1].detail


def test_an_address_at_which_nothing_ever_answered_is_an_error_after_half_a_minute() -> None:
    service = Service([Lost(why="Name or service not known", reached=False)])
    with pytest.raises(Unreachable, match=r"Name or service not known.*FARM_URL"):
        service.run(exchange.judge(sent("a"), {}, service.call(3600.0)))
    assert 30 < service.now < 60


def test_who_asks_for_no_reward_is_told_that_nobody_answers() -> None:
    service = Service([GONE])
    with pytest.raises(Unanswered, match="Connection refused"):
        service.run(exchange.ask(Request(method="GET", path="/v1/environments"), service.call(20.0)))


# Waiting


def test_the_farm_is_told_when_the_caller_gives_up_and_is_not_waited_for_after_that() -> None:
    service = Service([(9.0, said(OPEN))])
    service.run(exchange.judge(sent("a"), {}, service.call(10.0)))
    (asked,) = service.asked
    assert json.loads(str(asked.body))["deadline_seconds"] == 10.0
    assert asked.wait_seconds == 9.0


def test_the_service_is_asked_again_while_there_is_time() -> None:
    service = Service([(50.0, said(OPEN)), (50.0, said(OPEN)), (3.0, said(DONE))])
    batch = service.run(exchange.judge(sent("a"), {}, service.call(None)))
    assert [each.reward for each in batch.results] == [1.0]
    assert [each.wait_seconds for each in service.asked] == [50.0] * 3
    assert service.pauses == []


def test_a_service_that_does_not_wait_is_not_asked_in_a_hurry() -> None:
    service = Service([said(OPEN)])
    service.run(exchange.judge(sent("a"), {}, service.call(10.0)))
    assert len(service.asked) <= 25


def test_items_of_an_earlier_batch_are_waited_for_there() -> None:
    mixed = said({**OPEN, "id": "old-3"}, OPEN)
    own = {"items": [{"id": "b-1", "index": 0, "key": "b", **DONE}]}
    old = {"id": "old-3", "index": 3, "key": "a", **DONE, "reward": 0.0, "verdict": "rejected"}
    service = Service([mixed, (1.0, own), (1.0, old)])
    batch = service.run(exchange.judge(sent("a", "b", first=5), {}, service.call()))
    assert [(each.index, each.reward) for each in batch.results] == [(5, 0.0), (6, 1.0)]
    assert [each.path for each in service.asked] == ["/v1/batches", "/v1/batches/b", "/v1/items/old-3"]


def test_news_of_another_item_are_not_taken() -> None:
    service = Service([said(OPEN), (1.0, said({**DONE, "key": "other"}))])
    batch = service.run(exchange.judge(sent("a"), {}, service.call()))
    assert [each.reward for each in batch.results] == [None]


# Following events


def lines(*told: tuple[str, object]) -> list[str]:
    return [line for event, data in told for line in (f"event: {event}", f"data: {json.dumps(data)}", "")]


def event(place: int, key: str, **fields: object) -> tuple[str, object]:
    return "result", {"id": f"b-{place}", "index": place, "key": key, **DONE, **fields}


def following(service: Service, *names: str, first: int = 0) -> Following:
    followed = Following(sent(*names, first=first), {}, service.call())
    assert service.run(followed.submit()) == []
    return followed


def heard(followed: Following, told: Sequence[str]) -> list[int]:
    return [each.index for line in told for each in followed.hear(line)]


def test_events_are_results_in_the_order_of_completion() -> None:
    followed = following(Service([said(OPEN, OPEN)]), "a", "b", first=10)
    assert heard(followed, [": ", *lines(event(1, "b"))]) == [11]
    assert followed.listens
    assert heard(followed, lines(event(0, "a"), ("end", {}))) == [10]
    assert not followed.listens


def test_what_is_told_again_after_a_broken_stream_is_yielded_once() -> None:
    service = Service([said(OPEN, OPEN)])
    followed = following(service, "a", "b")
    assert heard(followed, [*lines(event(1, "b")), "event: result", 'data: {"broken']) == [1]
    service.run(followed.paused(GONE))
    assert heard(followed, lines(event(1, "b"), event(0, "a"))) == [0]


def test_an_event_that_cannot_be_believed_ends_the_listening() -> None:
    followed = following(Service([said(OPEN), said(DONE)]), "a")
    assert heard(followed, lines(event(0, "other"))) == []
    assert not followed.listens


def test_results_are_asked_for_where_there_are_no_events() -> None:
    service = Service([said(OPEN), (1.0, said(DONE))])
    followed = following(service, "a")
    while followed.listens:
        service.run(followed.paused(HttpReply(status=200, body=b"")))
    assert [each.reward for each in service.run(followed.finish())] == [1.0]
    assert not followed.is_left


def test_results_that_nobody_told_come_last_without_a_reward() -> None:
    service = Service([said(OPEN, OPEN)])
    followed = following(service, "a", "b")
    assert heard(followed, lines(event(1, "b"))) == [1]
    service.now = 100.0
    assert not followed.listens
    assert [(each.index, each.reward) for each in service.run(followed.finish())] == [(0, None)]


def test_a_batch_that_was_never_taken_is_told_too() -> None:
    service = Service([GONE])
    followed = following(service, "a")
    assert not followed.listens
    assert [(each.index, each.reward) for each in service.run(followed.finish())] == [(0, None)]


# Where it asks


def test_arguments_come_before_variables() -> None:
    environ = {"FARM_URL": "http://other", "FARM_TOKEN": "theirs"}
    found = address.find("https://farm.example/", "mine", environ)
    assert (found.url, found.token(), found.local) == ("https://farm.example", "mine", False)
    found = address.find(None, None, environ)
    assert (found.url, found.token()) == ("http://other", "theirs")


def test_a_token_file_is_read_anew_each_time(tmp_path: Path) -> None:
    file = tmp_path / "token"
    found = address.find(None, None, {"FARM_URL": "http://farm", "FARM_TOKEN_FILE": str(file)})
    with pytest.raises(NoService, match="token"):
        found.token()
    for token in ("first", "second"):
        file.write_text(token + "\n")
        assert found.token() == token


def test_a_request_that_waited_with_the_token_of_before_is_made_again_with_that_of_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, shown = tmp_path / "token", list[str]()

    class Service(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            file.write_text("second")  # as one that has started again while the request was on its way
            shown.append(self.headers["Authorization"])
            self.send_response(200 if shown[-1] == "Bearer second" else 401)
            body = b"[]" if shown[-1] == "Bearer second" else b'{"detail": "no valid token"}'
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *words: object) -> None:
            pass

    file.write_text("first")
    monkeypatch.setenv("FARM_TOKEN_FILE", str(file))
    with HTTPServer(("127.0.0.1", 0), Service) as server, ThreadPoolExecutor(1) as pool:
        pool.submit(server.serve_forever)
        try:
            with Client(f"http://127.0.0.1:{server.server_port}") as client:
                assert client.environments() == []
        finally:
            server.shutdown()
    assert shown == ["Bearer first", "Bearer second"]


def test_a_service_of_this_machine_is_found_by_its_files(tmp_path: Path) -> None:
    environ = {"FARM_HOME": str(tmp_path)}
    with pytest.raises(NoService, match=r"farm serve"):
        address.find(None, None, environ)
    for name, words in (("http.json", '{"url": "http://127.0.0.1:8700"}'), ("http.token", "secret")):
        (tmp_path / name).touch(mode=0o600)
        (tmp_path / name).write_text(words)
    found = address.find(None, None, environ)
    assert (found.url, found.token(), found.local) == ("http://127.0.0.1:8700", "secret", True)
    (tmp_path / "http.json").write_text("[]")
    with pytest.raises(NoService, match=r"http\.json"):
        address.find(None, None, environ)


@pytest.mark.parametrize("name", ["http.json", "http.token"])
@pytest.mark.parametrize("way", ["readable", "link", "folder", "pipe"])
def test_files_that_others_may_have_written_are_refused(tmp_path: Path, name: str, way: str) -> None:
    for each, words in (("http.json", '{"url": "http://127.0.0.1:8700"}'), ("http.token", "secret")):
        (tmp_path / each).touch(mode=0o600)
        (tmp_path / each).write_text(words)
    path = tmp_path / name
    if way == "readable":
        path.chmod(0o640)
    elif way == "link":
        path.rename(tmp_path / "elsewhere")
        path.symlink_to(tmp_path / "elsewhere")
    else:
        path.unlink()
        path.mkdir(mode=0o700) if way == "folder" else os.mkfifo(path, 0o600)
    with pytest.raises(NoService, match=name):
        address.find(None, None, {"FARM_HOME": str(tmp_path)}).token()


@pytest.mark.parametrize("user", ["farm:secret", ":secret"])
def test_an_address_may_contain_the_token_and_is_shown_without_it(user: str) -> None:
    found = address.find(f"http://{user}@farm.example:8700/", None, {})
    assert (found.url, found.token()) == ("http://farm.example:8700", "secret")
    assert "secret" not in repr(found)
    with pytest.raises(NoService) as error:
        address.find(f"ftp://{user}@farm.example", None, {})
    assert "secret" not in str(error.value)


@pytest.mark.parametrize("token", ["two words", "line\nline", "schlüssel", "\x7f"])
def test_what_no_header_can_carry_is_no_token(token: str) -> None:
    with pytest.raises(NoService, match="token"):
        Client("http://farm.example", token=token)


def test_a_socket_in_the_home_needs_no_token(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "http.sock"))
        found = address.find(None, None, {"FARM_HOME": str(tmp_path)})
    assert (found.socket, found.token(), found.local) == (tmp_path / "http.sock", None, True)


@pytest.mark.parametrize("url", ["farm.example", "ftp://farm", "http://", "unix:"])
def test_what_is_no_address_is_refused_with_an_example(url: str) -> None:
    with pytest.raises(NoService, match=r"https://farm\.example"):
        address.find(url, None, {})


def test_the_home_is_the_one_of_the_farm(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from farm.settings import Settings

    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    for environ in ({}, {"XDG_DATA_HOME": str(tmp_path)}, {"FARM_HOME": str(tmp_path / "home")}):
        for name in ("XDG_DATA_HOME", "FARM_HOME"):
            monkeypatch.delenv(name, raising=False)
        for name, value in environ.items():
            monkeypatch.setenv(name, value)
        with pytest.raises(NoService, match=str(Settings.load().home)):
            address.find(None, None)
