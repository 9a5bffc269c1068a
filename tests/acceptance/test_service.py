"""The HTTP service as clients meet it: a process that answers, over a real store, with a real worker."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from farm.service.requests import MOST_ITEMS
from farm.service.server import BODY_MIB
from farm.store import postgres
from farm.store.transitions import Store
from tests.chaos.servers import Servers
from tests.commands import ENDLESS, HEADER, PROGRAMS, PROVED, WRONG, Command
from tests.farms import CORE, Quiet
from tests.fuzz.http import ask
from tests.http_service import listening
from tests.processes import PATIENCE, eventually
from tests.services import Service, serving_http


def program(kind: tuple[str, str], number: int, **more: object) -> dict[str, Any]:
    return {"program": HEADER + PROGRAMS[kind].format(n=number), "name": f"t{number}", **more}


def stated(answer: str, *, form: str = "proof", statement: str = "1 = 1", **more: object) -> dict[str, Any]:
    return {
        "header": HEADER,
        "formal_statement": f"theorem t : {statement} := by sorry",
        form: answer,
        **more,
    }


RIGHT = "theorem t : 1 = 1 := by\n  exact rfl"


@pytest.fixture(scope="module")
def service(farm: Command, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service over a farm with a worker."""
    with serving_http(farm, tmp_path_factory.mktemp("service")) as service:
        yield service


@pytest.fixture(scope="module")
def lonely(shared_quiet: Quiet, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service over a farm without a worker; each test asks about programs of its own."""
    with serving_http(shared_quiet.farm, tmp_path_factory.mktemp("lonely")) as service:
        yield service


def seen(results: list[dict[str, Any]], *fields: str) -> list[Any]:
    return [
        each[fields[0]] if len(fields) == 1 else tuple(each[field] for field in fields) for each in results
    ]


class TestAsking:
    @pytest.mark.newcomer
    def test_each_form_is_judged_and_has_its_reward(self, service: Service) -> None:
        answer = service.post(
            stated(RIGHT, key=None, name="n", group="g"),
            stated(f"Indeed:\n```lean4\n{RIGHT}\n```\n", form="generation"),
            stated(RIGHT.replace("rfl", "nothing")),
            stated(RIGHT, statement="1 = 2"),
            {**stated(HEADER + RIGHT, form="program")},
            program(PROVED, 1),
            {"program": "a\0b"},
            stated("", form="generation"),
            wait_seconds=120,
        )
        assert answer["done"] is True
        results = answer["items"]
        assert seen(results, "index") == list(range(8))
        assert seen(results, "reward") == [1.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]
        assert seen(results, "weaker") == [[], [], [], [], [], ["unchecked"], [], []]
        assert (results[0]["name"], results[0]["group"]) == ("n", "g")
        assert results[3]["verdict"] == "rejected"
        assert results[6]["reason"] == "invalid_text"
        wrong = results[2]["messages"][0]
        assert (wrong["origin"], wrong["line"], wrong["column"]) == ("answer", 2, 8)
        assert results[0]["provenance"]["statement"] == "compared"
        assert results[0]["provenance"]["tier"] == "kernel"

    def test_an_error_behind_more_warnings_than_are_answered_is_answered(self, service: Service) -> None:
        unused = "".join(f"theorem w{n} : 1 = 1 := by have h : 1 = 1 := rfl; sorry\n" for n in range(130))
        wrong = f"{HEADER}{unused}theorem t : 1 = 1 := nothing\n"
        fenceless = stated(RIGHT, form="generation")
        many, bare = service.post({"program": wrong}, fenceless, wait_seconds=120)["items"]
        assert (many["verdict"], many["messages_cut"], len(many["messages"])) == ("rejected", True, 100)
        assert [each["line"] for each in many["messages"] if each["severity"] == "error"] == [
            wrong.count("\n")
        ]
        assert [(each["code"], each["origin"]) for each in bare["warnings"]] == [("no_code_fence", "answer")]

    def test_a_weaker_proof_is_worth_1_to_who_accepts_it(self, service: Service) -> None:
        for accept, reward in ((["unchecked"], 1.0), (["native"], 0.0)):
            (found,) = service.post(program(PROVED, 2), accept=accept, wait_seconds=120)["items"]
            assert (found["verdict"], found["reward"], found["weaker"]) == ("proved", reward, ["unchecked"])

    def test_a_proved_item_is_had_as_files_and_no_other_is(self, service: Service) -> None:
        items = [stated(RIGHT), stated("exact h"), program(PROVED, 2)]
        ids = seen(service.post(*items, wait_seconds=120)["items"], "id")
        bundle = service.get(f"/v1/items/{ids[0]}/bundle")
        files = bundle["files"]
        assert (bundle["item"], json.loads(files["verdict.json"])["verdict"]) == (ids[0], "proved")
        assert (RIGHT in files["Solution.lean"], "sorry" in files["Challenge.lean"]) == (True, True)
        for item, why in ((ids[1], "is not proved"), (ids[2], "compared with no statement")):
            (fault,) = service.get(f"/v1/items/{item}/bundle", status=422)["detail"]
            assert why in fault["msg"]
        service.get(f"/v1/items/{ids[0]}9/bundle", status=404)

    def test_what_takes_long_is_asked_for_again(self, service: Service) -> None:
        slow = program(ENDLESS, 3, timeout=3)
        posted = service.post(slow, program(PROVED, 3), status=202, share=False)
        assert posted["done"] is False
        done = service.get(f"/v1/batches/{posted['batch']}", wait_seconds=120)
        assert seen(done["items"], "verdict", "reward") == [("timeout", 0.0), ("proved", 0.0)]
        first = posted["items"][0]["id"]
        assert service.get(f"/v1/items/{first}")["verdict"] == "timeout"
        both = service.get("/v1/items", ids=",".join(seen(done["items"], "id")[::-1]))
        assert seen(both, "verdict") == ["proved", "timeout"]

    def test_results_are_streamed_as_they_come_and_then_the_end(self, service: Service) -> None:
        items = [
            program(ENDLESS, 4, timeout=2 * PATIENCE),
            *(program(PROVED, number) for number in range(5, 9)),
        ]
        batch = service.post(*items, status=202, share=False)["batch"]
        *results, end = service.events(batch)
        assert [kind for kind, _ in results] == ["result"] * 5
        assert results[-1][1]["index"] == 0  # the last to end
        assert sorted(told["index"] for _, told in results) == list(range(5))
        assert end == ("end", {"batch": batch, "done": True})
        again = list(service.events(batch))
        assert sorted(seen([told for _, told in again[:-1]], "index")) == list(range(5))

    def test_the_same_key_is_the_same_item(self, service: Service) -> None:
        first = service.post(program(PROVED, 10, key="service-10"), wait_seconds=120)
        again = service.post(program(PROVED, 10, key="service-10"), wait_seconds=120)
        assert first == again
        refused = service.post(program(WRONG, 10, key="service-10"), status=409)
        assert "service-10" in refused["detail"]

    def test_environments_and_health_are_told(self, service: Service) -> None:
        (core,) = [each for each in service.get("/v1/environments") if each["name"] == "core"]
        assert core["served"] is True
        for path in ("/health", "/health/live", "/health/ready", "/health/serving"):
            assert service.get(path) == {"status": "ok"}

    def test_declarations_are_found_by_parts_of_their_names(self, service: Service) -> None:
        found = service.get("/v1/declarations?contains=comm%20And&most=1")
        assert (found["header"], found["total"]) == ("prelude\nimport Core\n", 3)
        assert found["declarations"] == [{"name": "And.comm", "kind": "theorem", "module": "Core"}]

    @pytest.mark.parametrize(
        ("query", "status"),
        [
            ("", 422),
            ("contains=", 422),
            ("contains=%00", 422),
            ("contains=a&most=101", 422),
            ("contains=a&environment=none", 404),
        ],
    )
    def test_a_search_of_declarations_that_is_at_fault_is_refused(
        self, service: Service, query: str, status: int
    ) -> None:
        assert service.ask("GET", f"/v1/declarations?{query}", status=status)["detail"]


class TestWhatIsNotThere:
    @pytest.mark.parametrize(
        "path",
        [
            "/v1/batches/none",
            "/v1/batches/%00",
            "/v1/batches/%ff%fe",
            "/v1/batches/none/events",
            "/v1/batches/%00/events",
            "/v1/items/none-1",
            "/v1/items/%00-1",
            "/v1/items/none",
            "/v1/items?ids=none-1,a",
        ],
    )
    def test_is_not_found(self, service: Service, path: str) -> None:
        assert "has the id" in service.get(path, status=404)["detail"]

    def test_an_item_behind_the_last_is_not_found(self, service: Service) -> None:
        batch = service.post(program(PROVED, 1), wait_seconds=120)["batch"]
        service.get(f"/v1/items/{batch}-2", status=404)
        service.get(f"/v1/items/{batch}-99999999", status=404)

    @pytest.mark.parametrize("name", ["nowhere", "", "core\0", "CORE"])
    def test_an_environment_is_not_found(self, service: Service, name: str) -> None:
        answer = service.post(program(PROVED, 1), environment=name, status=404) if name else None
        assert answer is None or "no environment is called" in answer["detail"]
        if name:
            service.post(program(PROVED, 1, environment=name), status=404)

    def test_nothing_to_cancel_is_not_found(self, service: Service) -> None:
        for batch in ("none", "%00"):
            service.ask("POST", f"/v1/batches/{batch}/cancel", json={}, status=404)

    def test_what_is_malformed_is_named_by_its_path(self, service: Service) -> None:
        answer = service.post({"program": "x", "timeout": "3"}, status=422)
        assert answer["detail"][0]["loc"] == ["body", "items", 0, "timeout"]
        assert len(answer["detail"]) == 1

    def test_groups_that_the_database_cannot_tell_from_each_other_are_refused(self, service: Service) -> None:
        answer = service.post(program(PROVED, 1), program(PROVED, 1, group="a\0"), status=422)
        assert [each["loc"] for each in answer["detail"]] == [["body", "items", 1, "group"]]
        racing = service.post({"program": "x", "name": "a\0"}, stop_on_first_proof=True, status=422)
        assert [each["loc"] for each in racing["detail"]] == [["body", "items", 0, "name"]]
        service.ask("POST", "/v1/batches/none/cancel", json={"groups": ["a\0"]}, status=422)

    def test_a_word_in_place_of_a_list_is_named_so(self, service: Service) -> None:
        (fault,) = service.post(program(PROVED, 1), accept="unchecked", status=422)["detail"]
        assert (fault["loc"], fault["msg"]) == (["body", "accept"], "Input should be a valid list")

    @pytest.mark.parametrize(
        ("content", "says"),
        [
            (b'{\n "items": [}', "Expecting value at line 2, column 12"),
            (b"[" * 100_000, "nested too deeply"),
            (b'{"items": "\xff"}', "byte 11 is not UTF-8"),
        ],
        ids=["cut", "deep", "no UTF-8"],
    )
    @pytest.mark.parametrize("path", ["/v1/batches", "/v1/batches/none/cancel", "/api/check", "/execute"])
    def test_what_is_no_json_is_told_with_its_place(
        self, service: Service, path: str, content: bytes, says: str
    ) -> None:
        with service.client() as client:
            answer = client.post(path, content=content, headers={"Content-Type": "application/json"})
        assert answer.status_code == 400
        assert says in answer.json()["detail"]
        assert answer.json()["detail"].endswith("; send one JSON object in UTF-8")

    @pytest.mark.parametrize(
        ("path", "content", "place"),
        [
            ("/v1/batches", b'{"items": [{"program": "x", "timeout": -Infinity}]}', ["items", 0, "timeout"]),
            ("/v1/batches", b'{"items": 1' + b"0" * 5000 + b"}", []),
            ("/api/check", b'{"snippets": [{"id": NaN, "code": "x"}]}', ["snippets", 0, "id"]),
            ("/api/check", b'{"snippets": [{"id": 1e400, "code": "x"}]}', ["snippets", 0, "id"]),
            ("/api/check", b'{"snippets": [{"id": [1], "code": "x"}]}', ["snippets", 0, "id"]),
            ("/verify", b'{"codes": [{"custom_id": {}, "code": "x"}]}', ["codes", 0, "custom_id"]),
            ("/verify", b'{"codes": [{"custom_id": true, "code": "x"}]}', ["codes", 0, "custom_id"]),
            ("/run_code", b'{"code": "x", "language": "lean", "files": {"a": NaN}}', ["files", "a"]),
        ],
    )
    def test_what_no_client_could_read_back_is_refused_before_anything_is_judged(
        self, lonely: Service, shared_quiet: Quiet, path: str, content: bytes, place: list[object]
    ) -> None:
        before = shared_quiet.rows()
        with lonely.client(seconds=5) as client:
            answer = client.post(path, content=content, headers={"Content-Type": "application/json"})
        assert answer.status_code == 422, answer.text
        assert [each["loc"] for each in answer.json()["detail"]] == [["body", *place]]
        assert shared_quiet.rows() == before

    def test_a_program_without_a_name_stays_without_one(self, service: Service) -> None:
        codes = [{"custom_id": None, "code": ""}, {"code": ""}, {"custom_id": 7, "code": ""}]
        results = service.ask("POST", "/verify", json={"codes": codes})["results"]
        assert seen(results, "custom_id") == [None, "", "7"]


class TestWhatIsTooMuch:
    def test_is_a_body_that_is_said_to_be_too_large_and_is_not_waited_for(self, service: Service) -> None:
        head = f"POST /v1/batches HTTP/1.1\r\nHost: localhost\r\nContent-Length: {(BODY_MIB << 20) + 1}\r\n"
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(60 * PATIENCE)
            client.connect(str(service.path))
            client.sendall(f"{head}Content-Type: application/json\r\n\r\n".encode())
            assert client.recv(4096).startswith(b"HTTP/1.1 413 ")

    def test_is_a_question_after_too_many_items(self, service: Service) -> None:
        service.get("/v1/items", ids="b-1," * (MOST_ITEMS + 1), status=422)


class TestWithoutAWorker:
    def test_nobody_waits_who_did_not_ask_to(self, lonely: Service) -> None:
        posted = lonely.post(program(PROVED, 10), status=202)
        assert posted["done"] is False
        assert seen(posted["items"], "status", "reward") == [("queued", None)]
        lonely.get(f"/v1/batches/{posted['batch']}", status=202, wait_seconds=0.2)

    def test_who_waits_is_answered_with_what_is_known(self, lonely: Service, shared_quiet: Quiet) -> None:
        posted = lonely.post(program(PROVED, 11), program(PROVED, 12), status=202)
        shared_quiet.judge(posted["batch"], 1)
        known = lonely.get(f"/v1/batches/{posted['batch']}", status=202, wait_seconds=0.3)
        assert seen(known["items"], "status") == ["done", "queued"]

    def test_items_groups_and_all_are_cancelled(self, lonely: Service) -> None:
        items = [program(PROVED, number, group=group) for number, group in enumerate("aabbcc", 20)]
        posted = lonely.post(*items, status=202)
        batch, ids = posted["batch"], seen(posted["items"], "id")

        def cancel(**what: object) -> int:
            answer = lonely.ask("POST", f"/v1/batches/{batch}/cancel", json=what)
            assert answer["batch"] == batch
            return int(answer["cancelled"])

        assert [cancel(items=ids[:1]), cancel(items=ids[:1])] == [1, 0]
        assert [cancel(groups=["b", "none"]), cancel(items=[]), cancel(groups=[])] == [2, 0, 0]
        assert cancel(items=ids[:5], groups=["a", "c"]) == 2
        lonely.ask("POST", f"/v1/batches/{batch}/cancel", json={"items": ["none-1"]}, status=404)
        assert cancel() == 1
        told = list(lonely.events(batch))
        assert (
            seen([each for _, each in told[:-1]], "status", "reward", "reason")
            == [("cancelled", None, "user")] * 6
        )

    def test_a_batch_with_items_of_before_is_the_same_wherever_it_is_asked_about(
        self, lonely: Service
    ) -> None:
        items = [program(PROVED, number, key=f"mixed {number - 30}") for number in range(30, 34)]
        first = lonely.post(*items[:2], status=202)
        mixed = lonely.post(items[2], items[1], items[3], status=202)
        ids = seen(mixed["items"], "id")
        assert ids[1] == first["items"][1]["id"]
        known = lonely.get(f"/v1/batches/{mixed['batch']}", status=202)
        assert known["items"] == mixed["items"]
        assert seen(known["items"], "index", "key") == [(0, "mixed 2"), (1, "mixed 1"), (2, "mixed 3")]
        path = f"/v1/batches/{mixed['batch']}/cancel"
        assert lonely.ask("POST", path, json={"items": ids[1:2]})["cancelled"] == 1
        assert lonely.ask("POST", path, json={})["cancelled"] == 2
        left = lonely.get(f"/v1/batches/{first['batch']}", status=202)["items"]
        assert seen(left, "status") == ["queued", "cancelled"]
        *told, _ = lonely.events(mixed["batch"])
        assert sorted(each["index"] for _, each in told) == [0, 1, 2]

    def test_a_full_queue_accepts_nothing(self, quiet: Quiet, tmp_path: Path) -> None:
        with serving_http(quiet.farm, tmp_path / "service", FARM_QUEUE_LIMIT="1") as service:
            service.post(program(PROVED, 1), status=202)
            with service.client() as client:

                def is_full() -> bool:
                    answer = client.post("/v1/batches", json={"items": [program(PROVED, 2)]})
                    return answer.status_code == 429 and int(answer.headers["Retry-After"]) > 0

                eventually(is_full)


def gone_away(service: Service, quiet: Quiet, item: dict[str, Any]) -> str:
    """Have a client wait for an item and go away; returns the batch."""
    before = len(quiet.ask("SELECT id FROM runs"))
    client = service.client()

    def wait() -> None:
        with pytest.raises(httpx.TransportError):
            client.post("/v1/batches", json={"items": [item], "wait_seconds": 600}, timeout=2)

    thread = threading.Thread(target=wait)
    thread.start()
    eventually(lambda: len(quiet.ask("SELECT id FROM runs")) > before)
    thread.join()
    client.close()
    (batch,) = quiet.ask("SELECT id FROM runs ORDER BY created_at DESC LIMIT 1")
    return str(batch)


class TestAClientThatGoesAway:
    DEADLINE = "SELECT deadline_at FROM runs WHERE id = :id"

    def test_is_not_waited_for_but_may_come_back(self, lonely: Service, shared_quiet: Quiet) -> None:
        batch = gone_away(lonely, shared_quiet, program(PROVED, 41))
        eventually(lambda: shared_quiet.ask(self.DEADLINE, id=batch) != [None])
        waiting = threading.Thread(
            target=lonely.get, args=(f"/v1/batches/{batch}",), kwargs={"wait_seconds": 60}
        )
        waiting.start()  # and is waited for from now on, not when this has been answered
        eventually(lambda: shared_quiet.ask(self.DEADLINE, id=batch) == [None])
        assert waiting.is_alive()
        shared_quiet.judge(batch, 1)
        waiting.join(60)

    def test_and_streams_later_is_waited_for(self, lonely: Service, shared_quiet: Quiet) -> None:
        batch = gone_away(lonely, shared_quiet, program(PROVED, 42))
        eventually(lambda: shared_quiet.ask(self.DEADLINE, id=batch) != [None])
        told: list[object] = []
        streaming = threading.Thread(target=lambda: told.extend(lonely.events(batch)))
        streaming.start()
        eventually(lambda: shared_quiet.ask(self.DEADLINE, id=batch) == [None])
        shared_quiet.judge(batch, 1)
        streaming.join(60)
        assert len(told) == 2

    def test_with_a_key_is_waited_for(self, lonely: Service, shared_quiet: Quiet) -> None:
        first = gone_away(lonely, shared_quiet, program(PROVED, 43))
        batch = gone_away(lonely, shared_quiet, program(PROVED, 44, key="k"))
        other = gone_away(lonely, shared_quiet, program(PROVED, 45))
        eventually(lambda: shared_quiet.ask(self.DEADLINE, id=other) != [None])
        assert shared_quiet.ask(self.DEADLINE, id=batch) == [None]
        assert shared_quiet.ask(self.DEADLINE, id=first) != [None]


@pytest.fixture
def servers_of_its_own(tmp_path: Path) -> Iterator[Servers]:
    servers = Servers(tmp_path / "own")
    yield servers
    servers.end()


@pytest.fixture
def frail(quiet: Quiet, servers_of_its_own: Servers) -> Iterator[Quiet]:
    """A farm without a worker whose servers the test may kill."""
    url = servers_of_its_own.new_database("frail")
    engine = postgres.connect(url, application="farm-test")
    Store(engine).register([CORE])
    settings = {"FARM_DATABASE_URL": url, "FARM_BROKER_URL": servers_of_its_own.broker_url(3)}
    yield replace(quiet, farm=quiet.farm.having(**settings), engine=engine)
    engine.dispose()


class TestWhatIsAway:
    def test_is_told_to_nobody_in_detail_and_logged_once(
        self, frail: Quiet, servers_of_its_own: Servers, tmp_path: Path
    ) -> None:
        token = frail.farm("keys", "add", "ci").stdout.strip()
        farm = frail.farm.having(FARM_HOME=str(tmp_path / "home"))
        with farm.started(tmp_path / "service", "serve", "--port", 0) as running:
            eventually(lambda: "Listening" in running.said, seconds=60)
            url = re.findall(r"http://[0-9.:]+", running.said)[0]
            servers_of_its_own.postgres.end_by(signal.SIGKILL)
            ask = {"headers": {"Authorization": f"Bearer {token}"}, "timeout": 60.0}
            eventually(lambda: httpx.get(f"{url}/health/ready", **ask).status_code == 503)
            eventually(lambda: httpx.get(f"{url}/v1/environments", **ask).status_code == 503)
            body = {"snippets": [{"id": "a", "code": "x"}]}
            told = [
                *(httpx.get(f"{url}/health/{word}", timeout=60) for word in ("ready", "serving") * 3),
                *(httpx.get(f"{url}/v1/environments", **ask) for _ in range(3)),
                httpx.post(f"{url}/api/check", json=body, **ask),
            ]
            words = {(each.status_code, each.json()["detail"]) for each in told}
            assert words == {(503, "PostgreSQL does not answer; the log of the service says why; ask again")}
            # Once by who looks for keys, and once by who looks for batches.
            assert running.said.count("PostgreSQL does not answer at postgresql+psycopg://") <= 2
            assert "PostgreSQL does not answer at postgresql+psycopg://" in running.said
            servers_of_its_own.start_postgres()
            eventually(lambda: httpx.get(f"{url}/health/ready", timeout=60).status_code == 200)
            assert "PostgreSQL answers again" in running.said

    def test_a_postgresql_that_was_killed_costs_time_and_no_reward(
        self, frail: Quiet, servers_of_its_own: Servers, tmp_path: Path
    ) -> None:
        items = [program(PROVED, 1), program(WRONG, 2), program(PROVED, 3)]
        with serving_http(frail.farm, tmp_path / "service") as service, ThreadPoolExecutor(2) as pool:
            batch = service.post(*items, accept=["unchecked"], status=202)["batch"]
            frail.judge(batch, 1)
            events = service.events(batch)
            assert next(events)[1]["index"] == 0
            streaming = pool.submit(list, events)
            waiting = pool.submit(service.post, *items[1:], accept=["unchecked"], wait_seconds=600)
            eventually(lambda: len(frail.ask("SELECT id FROM runs")) == 2)
            servers_of_its_own.postgres.end_by(signal.SIGKILL)
            with service.client() as client:
                eventually(lambda: client.get("/health/ready").status_code == 503)
                answer = client.get(f"/v1/batches/{batch}")
                assert (answer.status_code, "Retry-After" in answer.headers) == (503, True)
                answer = client.post("/v1/batches", json={"items": items})
                assert answer.status_code == 503
                assert client.get("/health/live").status_code == 200
            servers_of_its_own.start_postgres()
            frail.judge(batch, 2, limit="output")
            frail.judge(batch, 3, isolation="bwrap")
            assert seen(waiting.result(300)["items"], "reward") == [0.0, 1.0]
            told = [(each["index"], each["reward"]) for _, each in streaming.result(300)[:-1]]
        assert sorted(told) == [(1, 0.0), (2, 1.0)]

    def test_a_redis_that_was_killed_costs_time_only(
        self, frail: Quiet, servers_of_its_own: Servers, tmp_path: Path
    ) -> None:
        items = [program(PROVED, 1), program(WRONG, 2)]
        with serving_http(frail.farm, tmp_path / "service") as service, ThreadPoolExecutor(1) as pool:

            def judged(*items: dict[str, Any]) -> list[Any]:
                """Have these judged while a client waits for them; nobody tells the service of it."""
                before = len(frail.ask("SELECT id FROM runs"))
                waiting = pool.submit(service.post, *items, wait_seconds=600)
                eventually(lambda: len(frail.ask("SELECT id FROM runs")) > before)
                (run,) = frail.ask("SELECT id FROM runs ORDER BY created_at DESC LIMIT 1")
                frail.judge(str(run), 1)
                frail.judge(str(run), 2, limit="output")
                return seen(waiting.result(300)["items"], "verdict")

            servers_of_its_own.valkey.end_by(signal.SIGKILL)
            assert judged(*items) == ["proved", "rejected"]
            servers_of_its_own.start_valkey()
            assert judged(program(PROVED, 3)) == ["proved"]

    def test_a_service_that_was_killed_is_started_again_and_batches_are_there(
        self, quiet: Quiet, tmp_path: Path
    ) -> None:
        with serving_http(quiet.farm, tmp_path / "first") as first:
            posted = first.post(program(PROVED, 1), status=202)
            first.running.process.kill()
        quiet.judge(posted["batch"], 1)
        with serving_http(quiet.farm, tmp_path / "second") as second:
            answer = second.get(f"/v1/batches/{posted['batch']}", wait_seconds=60)
            assert seen(answer["items"], "verdict") == ["proved"]

    def test_a_service_that_is_told_to_stop_answers_who_waits_with_what_is_known(
        self, quiet: Quiet, tmp_path: Path
    ) -> None:
        with serving_http(quiet.farm, tmp_path / "service") as service, ThreadPoolExecutor(2) as pool:
            batch = service.post(program(PROVED, 1), program(PROVED, 2), status=202)["batch"]
            quiet.judge(batch, 1)
            events = service.events(batch)
            assert next(events)[1]["index"] == 0
            streaming = pool.submit(list, events)
            waiting = pool.submit(service.post, program(PROVED, 3), wait_seconds=600, status=202)
            eventually(lambda: len(quiet.ask("SELECT id FROM runs")) == 2)
            service.running.process.terminate()
            assert service.running.ended(seconds=60) in (0, -signal.SIGTERM)
            assert seen(waiting.result(60)["items"], "status", "reward") == [("queued", None)]
            assert streaming.result(60) == []
        assert "Traceback" not in service.running.said


def test_two_replicas_know_the_same(farm: Command, service: Service, tmp_path: Path) -> None:
    with serving_http(farm, tmp_path / "two") as two:
        posted = service.post(program(PROVED, 71, key="replicas"), status=202)
        again = two.post(program(PROVED, 71, key="replicas"), wait_seconds=100)
        assert again["batch"] == posted["batch"]
        assert service.get(f"/v1/batches/{posted['batch']}", wait_seconds=100) == again
        refused = two.post(program(PROVED, 72, key="replicas"), status=409)
        assert "'replicas'" in refused["detail"]


def test_what_the_schema_names_is_all_that_is_answered(farm: Command) -> None:
    with listening(farm) as url:
        asked = ask(url, requests=16, phases="fuzzing", stdout=subprocess.PIPE)
    assert asked.returncode == 0, asked.stdout
