"""The service is told to end, as service managers do."""

from __future__ import annotations

import logging
import re
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from farm.client import Client
from tests.commands import HEADER
from tests.farms import Quiet
from tests.processes import eventually


def test_a_service_that_is_told_to_end_leaves_with_0_and_takes_its_token_with_it(
    quiet: Quiet, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    files = [home / name for name in ("http.token", "http.json")]
    farm = quiet.farm.having(FARM_HOME=str(home))
    with farm.started(tmp_path / "serve", "serve", "--port", 0) as service:
        eventually(lambda: "Listening" in service.said, seconds=60)
        assert all(each.exists() for each in files)
        service.process.terminate()
        assert service.ended() == 0, service.said
    assert not any(each.exists() for each in files)


def test_a_second_service_of_a_home_leaves_the_clients_of_the_first_alone(
    quiet: Quiet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    monkeypatch.setenv("FARM_HOME", str(home))
    farm = quiet.farm.having(FARM_HOME=str(home))
    with farm.started(tmp_path / "first", "serve", "--port", 0) as first:
        eventually(lambda: "Programs of this user find both" in first.said, seconds=60)
        found = (home / "http.json").read_text(), (home / "http.token").read_text()
        with farm.started(tmp_path / "second", "serve", "--port", 0) as second:
            eventually(lambda: "find another service in" in second.said, seconds=60)
            url, token = re.findall(r"Listening on (\S+), with the token (\S+)", second.said)[0]
            answer = httpx.get(f"{url}/v1/environments", headers={"Authorization": f"Bearer {token}"})
            assert answer.status_code == 200
            second.process.terminate()
            assert second.ended() == 0
        assert ((home / "http.json").read_text(), (home / "http.token").read_text()) == found
        with Client() as client:
            assert client.environments()


def test_who_waits_is_told_what_is_known_when_the_service_is_told_to_end(
    quiet: Quiet, tmp_path: Path
) -> None:
    path = tmp_path / "socket"
    item = {"program": HEADER + "theorem t : True := True.intro\n"}
    transport = httpx.HTTPTransport(uds=str(path))
    with (
        quiet.farm.started(tmp_path / "serve", "serve", "--uds", path) as service,
        httpx.Client(transport=transport, base_url="http://localhost", timeout=60) as client,
        ThreadPoolExecutor(1) as pool,
    ):
        eventually(lambda: "Listening" in service.said, seconds=60)
        answer = pool.submit(client.post, "/v1/batches", json={"items": [item], "wait_seconds": 600})
        eventually(lambda: quiet.ask("SELECT id FROM runs"))
        service.process.terminate()
        assert answer.result().status_code == 202
        assert answer.result().json()["items"][0]["status"] == "queued"
        assert service.ended() == 0


def test_a_client_of_this_machine_asks_again_until_the_service_has_started_again(
    quiet: Quiet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, logger="farm.client")  # the chaos suite silences it
    monkeypatch.setenv("FARM_HOME", str(tmp_path / "home"))
    farm = quiet.farm.having(FARM_HOME=str(tmp_path / "home"))
    with socket.create_server(("127.0.0.1", 0)) as found:
        words = ("serve", "--port", found.getsockname()[1])
    with farm.started(tmp_path / "first", *words) as service:
        eventually(lambda: "Listening" in service.said, seconds=60)
        client = Client()
        assert client.environments()
        service.process.terminate()
        service.ended()
    with client, ThreadPoolExecutor(1) as pool:
        answer = pool.submit(client.environments)
        eventually(lambda: "asking again" in caplog.text or answer.done())
        with farm.started(tmp_path / "second", *words):
            assert answer.result()
