"""What the tests of the HTTP service share: `farm serve` as a process of its own, and asking it."""

from __future__ import annotations

import json
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.commands import Command, Running
from tests.processes import PATIENCE, eventually


@dataclass(frozen=True)
class Service:
    """A service that answers on a unix socket."""

    running: Running
    path: Path

    def client(self, *, seconds: float = 60.0) -> httpx.Client:
        """Return a client with connections of its own."""
        transport = httpx.HTTPTransport(uds=str(self.path))
        return httpx.Client(transport=transport, base_url="http://localhost", timeout=seconds * PATIENCE)

    def ask(self, method: str, path: str, *, status: int = 200, **more: Any) -> Any:
        """Ask once, and return what is answered."""
        with self.client(seconds=100) as client:
            answer = client.request(method, path, **more)
        assert answer.status_code == status, answer.text
        return answer.json()

    def post(self, *items: dict[str, Any], status: int = 200, **options: Any) -> Any:
        return self.ask("POST", "/v1/batches", status=status, json={"items": items, **options})

    def get(self, path: str, *, status: int = 200, **params: Any) -> Any:
        return self.ask("GET", path, status=status, params=params or None)

    def events(self, batch: str) -> Iterator[tuple[str, Any]]:
        """Yield the events of a batch as they come."""
        with self.client() as client, client.stream("GET", f"/v1/batches/{batch}/events") as stream:
            assert stream.status_code == 200
            kind = ""
            for line in stream.iter_lines():
                field, _, value = line.partition(": ")
                if field == "event":
                    kind = value
                elif field == "data":
                    yield kind, json.loads(value)

    def answers(self) -> bool:
        """Whether it listens; httpx leaves a socket open that nobody listened to."""
        with socket.socket(socket.AF_UNIX) as probe:
            if probe.connect_ex(str(self.path)) != 0:
                return False
        with self.client() as client:
            return client.get("/health/ready").status_code == 200


@contextmanager
def serving_http(farm: Command, folder: Path, **settings: str) -> Iterator[Service]:
    """A `farm serve` of the test's own, ready when the block begins."""
    with tempfile.TemporaryDirectory() as short:  # a socket's path must be short
        path = Path(short) / "http.sock"
        with farm.having(**settings).forked(folder, "serve", "--uds", path) as running:
            service = Service(running, path)
            eventually(service.answers, seconds=60)
            yield service
