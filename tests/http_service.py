"""What the tests of the service share: one that listens in this process, over a farm of the tests'."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from farm.connections import Connections
from farm.service.app import application
from farm.service.auth.browser import BrowserAuth
from farm.service.auth.local_token import LOCAL
from farm.service.auth.middleware import AuthMiddleware
from farm.service.auth.origins import allowed_hosts
from farm.service.backend import Backend
from farm.settings import Settings
from farm.store.keys import Key
from tests.commands import Command
from tests.processes import eventually

#: What opens the service, as no token does.
TOKEN = "token"


@contextmanager
def listening(farm: Command, key: Key = LOCAL) -> Iterator[str]:
    """Serve a farm over HTTP on a port of its own, to who has a token or none; gives the address."""
    connections = Connections(Settings.load(farm.settings), threads=10)
    connections.environments()
    with socket.create_server(("127.0.0.1", 0)) as bound:
        port = bound.getsockname()[1]
        app = AuthMiddleware(
            application(lambda: Backend(connections)),
            hosts=allowed_hosts(port=port),
            browsers=BrowserAuth(lambda token: key if token in ("", TOKEN) else None),
            most_bytes=64 << 20,
        )
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, timeout_graceful_shutdown=1))
        thread = threading.Thread(target=lambda: server.run([bound]), daemon=True)
        thread.start()
        try:
            eventually(lambda: server.started)
            yield f"http://127.0.0.1:{port}"
        finally:
            server.should_exit = True
            thread.join(30)
            connections.close()
