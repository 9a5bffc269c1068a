"""A farm served over HTTP for the tests, and a proxy that loses answers."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from farm.client import Client
from tests.commands import Command, Running
from tests.processes import eventually


def url_of(path: Path) -> str:
    return f"unix:{path}"


@contextlib.contextmanager
def served(
    farm: Command, folder: Path, path: Path, *, behind: Sequence[Proxy] = (), **settings: str
) -> Iterator[Running]:
    """`farm serve` at a unix socket, maybe behind proxies, answering when the block begins."""
    names = [word for proxy in behind for word in ("--allow-host", proxy.host)]
    with farm.having(**settings).forked(folder, "serve", "--uds", path, *names) as running:
        eventually(lambda: _listens(path) or running.process.poll() is not None, seconds=60)
        with Client(url_of(path)) as client:
            assert client.environments(), running.said
        yield running


def _listens(path: Path) -> bool:
    # Not the client: a unix socket that refuses it is left open by httpcore, which warnings tell.
    with socket.socket(socket.AF_UNIX) as trying, contextlib.suppress(OSError):
        trying.connect(str(path))
        return True
    return False


@dataclass
class Proxy:
    """A proxy at a port before a unix socket; it loses as many answers as `answers_to_lose` says."""

    behind: Path
    answers_to_lose: int = 0
    requests: list[bytes] = field(default_factory=list)
    _listening: socket.socket = field(default_factory=lambda: socket.create_server(("127.0.0.1", 0)))

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self._listening.getsockname()[1]}"

    @property
    def url(self) -> str:
        return f"http://{self.host}"

    def __enter__(self) -> Proxy:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # closed at the end
            while True:
                client, _ = self._listening.accept()
                service = socket.socket(socket.AF_UNIX)
                try:
                    service.connect(str(self.behind))
                except OSError:
                    service.close()
                    client.close()
                    continue
                threading.Thread(target=self._to_service, args=(client, service), daemon=True).start()
                threading.Thread(target=self._to_client, args=(service, client), daemon=True).start()

    def _to_service(self, client: socket.socket, service: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := client.recv(1 << 16):
                if b" HTTP/1.1\r\n" in data:
                    self.requests.append(data.partition(b" HTTP")[0])
                service.sendall(data)
            service.shutdown(socket.SHUT_WR)

    def _to_client(self, service: socket.socket, client: socket.socket) -> None:
        with contextlib.suppress(OSError), service, client:
            while data := service.recv(1 << 16):
                if self.answers_to_lose:
                    self.answers_to_lose -= 1
                    break
                client.sendall(data)
            client.shutdown(socket.SHUT_RDWR)  # closing alone would wait for the thread that reads from it
