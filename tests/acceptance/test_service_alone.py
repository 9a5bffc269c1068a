"""`farm serve` on a port, and whoever connects to it: revoked keys, ambiguous and unfinished requests."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests.commands import HEADER, Running
from tests.farms import Quiet
from tests.processes import PATIENCE, eventually

#: So long a client may take to send the head of a request.
HEAD_SECONDS = 10.0
BATCH = {"items": [{"program": HEADER + "theorem t : True := True.intro\n"}]}


@dataclass(frozen=True)
class Service:
    running: Running
    url: str

    @property
    def address(self) -> tuple[str, int]:
        return "127.0.0.1", int(self.url.rpartition(":")[2])

    def client(self, token: str) -> httpx.Client:
        headers = {"Authorization": f"Bearer {token}"}
        return httpx.Client(base_url=self.url, headers=headers, timeout=60 * PATIENCE)


@pytest.fixture
def quiet(shared_quiet: Quiet) -> Quiet:
    """A farm without a worker, of which nobody has asked anything yet."""
    shared_quiet.clear()
    return shared_quiet


@pytest.fixture(scope="module")
def service(shared_quiet: Quiet, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("service")
    farm = shared_quiet.farm.having(FARM_HOME=str(folder / "home"))
    with farm.forked(folder / "serve", "serve", "--port", 0) as running:
        eventually(lambda: "Listening" in running.said, seconds=60)
        service = Service(running, re.findall(r"http://[0-9.:]+", running.said)[0])
        eventually(lambda: listens(service.address))
        yield service


def listens(address: tuple[str, int]) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(address) == 0


def test_who_waits_or_listens_with_a_key_that_is_revoked_is_sent_away_and_another_waits_on(
    quiet: Quiet, service: Service
) -> None:
    token, other = (quiet.farm("keys", "add", name).stdout.strip() for name in ("ci", "stays"))
    waits = {**BATCH, "wait_seconds": 600}
    with service.client(token) as client, service.client(other) as staying, ThreadPoolExecutor(3) as pool:
        stays = pool.submit(staying.post, "/v1/batches", json=waits)
        eventually(lambda: len(quiet.ask("SELECT id FROM runs")) == 1)
        (kept,) = map(str, quiet.ask("SELECT id FROM runs"))
        batch = client.post("/v1/batches", json=BATCH).json()["batch"]
        posts = pool.submit(client.post, "/v1/batches", json=waits)
        polls = pool.submit(client.get, f"/v1/batches/{batch}", params={"wait_seconds": 600})
        with client.stream("GET", f"/v1/batches/{batch}/events") as events:
            assert events.status_code == 200
            eventually(lambda: len(quiet.ask("SELECT id FROM runs")) == 3)
            assert quiet.farm("keys", "revoke", "ci").returncode == 0
            told = [line for line in events.iter_lines() if line.startswith(("event", "data"))]
        answers = posts.result(), polls.result()
        assert not stays.done()
        quiet.judge(kept, 1)
        assert stays.result().status_code == 200
    assert [told[0], "was revoked meanwhile" in told[1], len(told)] == ["event: revoked", True, 2]
    for answer in answers:
        assert (answer.status_code, answer.headers["WWW-Authenticate"]) == (401, "Bearer")
        assert "was revoked meanwhile" in answer.json()["detail"]


def test_a_timeout_beyond_what_a_key_may_ask_for_is_refused_at_every_address(
    quiet: Quiet, service: Service
) -> None:
    program = BATCH["items"][0]["program"]
    bodies: dict[str, tuple[dict[str, object], int]] = {
        "/v1/batches": ({**BATCH, "timeout": 601}, 422),
        "/api/check": ({"snippets": [{"id": "a", "code": program}], "timeout": 601}, 422),
        "/verify": ({"codes": [{"custom_id": "a", "proof": program}], "timeout": 601}, 422),
        "/execute": ({"generated_code": program, "language": "lean4", "timeout": 601}, 400),
        "/run_code": ({"code": program, "language": "lean", "run_timeout": 601}, 400),
    }
    usual, more = (
        quiet.farm("keys", "add", *words).stdout.strip()
        for words in (["usual"], ["more", "--most-seconds", "1200"])
    )
    with service.client(usual) as client:
        for address, (body, status) in bodies.items():
            answer = client.post(address, json=body)
            assert (answer.status_code, "600 s" in answer.text) == (status, True), (address, answer.text)
        item = {**BATCH["items"][0], "timeout": 601}
        (fault,) = client.post("/v1/batches", json={"items": [item]}).json()["detail"]
        assert fault["loc"] == ["body", "items", 0, "timeout"]
        assert "jobs" not in quiet.rows()
        assert client.post("/v1/batches", json={**BATCH, "timeout": 600}).status_code == 202
    with service.client(more) as client:
        statuses = [
            client.post("/v1/batches", json={**BATCH, "timeout": t}).status_code for t in (1200, 1201)
        ]
    assert statuses == [202, 422]


def heard(connection: socket.socket) -> bytes:
    """Return all that is sent until the other end closes the connection."""
    said = b""
    while more := connection.recv(65536):
        said += more
    return said


@pytest.mark.parametrize("path", ["/v1/batches", "/health/live"])
def test_a_request_whose_length_is_said_twice_is_refused_and_nothing_behind_it_is_read(
    service: Service, path: str
) -> None:
    request = (
        f"POST {path} HTTP/1.1\r\nHost: {service.url[7:]}\r\nContent-Type: application/json\r\n"
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
        f"GET /health/live HTTP/1.1\r\nHost: {service.url[7:]}\r\n\r\n"
    )
    with socket.create_connection(service.address, timeout=4 * PATIENCE) as connection:
        connection.sendall(request.encode())
        said = heard(connection)
    assert said.startswith(b"HTTP/1.1 400 ")
    assert said.count(b"HTTP/1.1 ") == 1
    assert b"both Content-Length and Transfer-Encoding; send one of them" in said


def test_a_client_that_does_not_finish_a_head_is_closed_and_one_that_waits_is_not(
    quiet: Quiet, service: Service
) -> None:
    token = quiet.farm("keys", "add", "ci").stdout.strip()
    silent = socket.create_connection(service.address, timeout=HEAD_SECONDS + 5 * PATIENCE)
    partial = socket.create_connection(service.address, timeout=HEAD_SECONDS + 5 * PATIENCE)
    with silent, partial, service.client(token) as client, ThreadPoolExecutor(1) as pool:
        waits = pool.submit(client.post, "/v1/batches", json={**BATCH, "wait_seconds": HEAD_SECONDS + 4})
        partial.sendall(b"GET /health/live HTTP/1.1\r\nHost: local")
        assert (heard(partial), heard(silent)) == (b"", b"")
        assert not waits.done()
        assert waits.result().status_code == 202


@pytest.mark.parametrize("pieces", [1, 40])
@pytest.mark.parametrize("where", ["header", "headers", "address", "no end"])
def test_a_head_that_is_too_large_is_told_so_and_closed(service: Service, where: str, pieces: int) -> None:
    large = "a" * 200_000
    lines = {
        "header": f"GET /v1/environments HTTP/1.1\r\nHost: {service.url[7:]}\r\nX-Large: {large}\r\n\r\n",
        "headers": f"GET /v1/environments HTTP/1.1\r\nHost: {service.url[7:]}\r\n"
        + "".join(f"X-{number}: {'a' * 2000}\r\n" for number in range(100))
        + "\r\n",
        "address": f"GET /v1/environments?{large} HTTP/1.1\r\nHost: {service.url[7:]}\r\n\r\n",
        "no end": large,
    }
    head = lines[where].encode()
    with socket.create_connection(service.address, timeout=60 * PATIENCE) as client:
        for place in range(0, len(head), size := -(-len(head) // pieces)):
            client.sendall(head[place : place + size])
        said = heard(client)
    assert said.startswith(b"HTTP/1.1 431 ")
    assert b"has more than 65536 bytes; send data in the body" in said


def test_what_is_no_http_is_told_so(service: Service) -> None:
    with socket.create_connection(service.address, timeout=60 * PATIENCE) as client:
        client.sendall(b"\x16\x03\x01\x02\r\n\r\n")
        said = heard(client)
    assert said.startswith(b"HTTP/1.1 400 ")
    assert b"the request is no HTTP/1.1: " in said


def test_a_client_that_never_finishes_a_body_is_closed_once_it_is_answered(service: Service) -> None:
    with socket.create_connection(service.address, timeout=1) as trickling:
        head = f"POST /v1/batches HTTP/1.1\r\nHost: {service.url[7:]}\r\nContent-Length: 9000\r\n\r\n"
        trickling.sendall(head.encode())
        eventually(lambda: _is_over(trickling), seconds=HEAD_SECONDS + 5)


def _is_over(connection: socket.socket) -> bool:
    """Send one more byte; returns whether the connection is closed, after a second where it is not."""
    try:
        connection.sendall(b"x")
        while connection.recv(4096):
            pass
    except TimeoutError:
        return False
    except OSError:
        pass
    return True


def test_a_client_that_would_rather_speak_websockets_is_answered_and_the_log_says_nothing(
    service: Service,
) -> None:
    headers = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
    assert httpx.get(f"{service.url}/v1/environments", headers=headers).status_code == 401
    assert "pip install" not in service.running.said


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--port", 0, "--allow-host", "http://x/"), "--allow-host http://x/: this is not a host; give"),
        (("--uds", "/nope/x.sock"), "the folder /nope cannot be used: No such file or directory; make it"),
    ],
)
def test_what_nobody_could_ask_is_bad_usage_before_anything_listens(
    quiet: Quiet, tmp_path: Path, options: tuple[object, ...], says: str
) -> None:
    said = quiet.farm.having(FARM_HOME=str(tmp_path / "home"))("serve", *options)
    assert said.returncode == 2
    assert says in " ".join(said.stderr.split())
    assert "Listening" not in said.stderr
    assert "FARM_HOME" not in said.stderr
