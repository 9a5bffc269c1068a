"""Metrics step, the port: serves a registry over HTTP to every client that reaches the address."""

from __future__ import annotations

import ipaddress
import json
import socket
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit
from wsgiref.simple_server import WSGIRequestHandler

from prometheus_client.exposition import ThreadingWSGIServer, make_wsgi_app
from prometheus_client.registry import Collector

from farm.errors import UsageError

#: The default address of metrics.
LOOPBACK = "127.0.0.1"
#: Connections that are served at once; each costs a thread and an open file, which the worker needs itself.
MOST_CONNECTIONS = 16
_REFUSED = b"a web page may ask under this name; ask for localhost, or for the address\n"

_Start = Callable[[str, list[tuple[str, str]]], object]
_App = Callable[[dict[str, Any], _Start], Iterable[bytes]]
#: Returns the reason why a process does not do its work now, None if it does.
Unready = Callable[[], str | None]


def _always() -> None:
    """Return None: the process is ready."""


class _Handler(WSGIRequestHandler):
    """Answers one request; closes a connection after `timeout` silent seconds."""

    timeout = 10

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 # the name of the class above
        """Log nothing."""


class _Server(ThreadingWSGIServer):
    """Serves a registry; closes connections beyond `MOST_CONNECTIONS`."""

    request_queue_size = 128

    def __init__(self, address: str, port: int, registry: Collector, unready: Unready) -> None:
        """Listen; raises `OSError` and `OverflowError` if the address or port cannot be used."""
        found = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        self.address_family = found[0]
        self._free = threading.BoundedSemaphore(MOST_CONNECTIONS)
        super().__init__((str(found[4][0]), port), _Handler)
        app = _with_health(make_wsgi_app(registry), unready)
        self.set_app(_for_this_machine(app) if _is_loopback(str(found[4][0])) else app)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread of its own, if one is free."""
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:  # no thread was to be had
            self._free.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer, and let the next one in."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log an error, unless a client was silent or went away, which any client can do."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


def _with_health(app: Callable[..., Any], unready: Unready) -> _App:
    """Return an application that answers probes as well, at the addresses that the service has for them.

    A process that answers is alive, whatever its checks, PostgreSQL or Redis are doing: to kill it mends none
    of these.
    """

    def answer(environ: dict[str, Any], start: _Start) -> Iterable[bytes]:
        path = environ.get("PATH_INFO")
        if path not in ("/health/live", "/health/ready"):
            return app(environ, start)  # type: ignore[no-any-return]
        why = unready() if path == "/health/ready" else None
        start("200 OK" if why is None else "503 Service Unavailable", [("Content-Type", "application/json")])
        return [json.dumps({"status": "ok"} if why is None else {"detail": why}).encode()]

    return answer


def _for_this_machine(app: _App) -> _App:
    """Return an application that answers only programs of this machine.

    A page in a browser here can have its own name resolve to a loopback address (DNS rebinding), and would
    read the answers. It cannot change the name, which is in `Host`.
    """

    def answer(environ: dict[str, Any], start: _Start) -> Iterable[bytes]:
        if _is_loopback(_host(environ.get("HTTP_HOST", LOOPBACK))):
            return app(environ, start)
        start("403 Forbidden", [("Content-Type", "text/plain")])
        return [_REFUSED]

    return answer


def _host(value: str) -> str:
    """Return the name or the address in a `Host`, "" if it has none."""
    try:
        return urlsplit(f"//{value}").hostname or ""
    except ValueError:
        return ""


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@contextmanager
def exposed(registry: Collector, *, address: str, port: int, unready: Unready = _always) -> Iterator[str]:
    """Serve metrics inside the block and give their URL; port 0 takes a free one.

    Beside them, `/health/live` answers 200, and `/health/ready` 503 while `unready` returns a reason. Raises
    `UsageError` if the address or port cannot be used.
    """
    try:
        server = _Server(address, port, registry, unready)
    except (OSError, OverflowError) as error:
        raise UsageError(
            f"cannot serve metrics on {shown(address)}:{port}: {getattr(error, 'strerror', None) or error}; "
            "choose another address or port, such as --metrics-port 0 for a free one"
        ) from error
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://{shown(address)}:{server.server_port}/metrics"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def shown(address: str) -> str:
    """Return an address as a URL has it."""
    return f"[{address}]" if ":" in address else address
