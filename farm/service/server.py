"""The HTTP server of `farm serve`: listens on an address or socket, with or without tokens, until SIGTERM."""

from __future__ import annotations

import gc
import ipaddress
import resource
import signal
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import uvicorn
from fastapi import FastAPI

from farm.connections import Connections
from farm.errors import UsageError
from farm.service.app import application
from farm.service.auth.browser import ROOT, BrowserAuth
from farm.service.auth.key_ring import KeyRing
from farm.service.auth.local_token import LOCAL, Local, published
from farm.service.auth.middleware import AuthMiddleware
from farm.service.auth.origins import allowed_hosts
from farm.service.backend import Backend
from farm.service.protocol import MOST_HEAD_BYTES, InTime
from farm.service.sockets import BACKLOG, listening, listening_at, shown_host
from farm.store.keys import Key, Keys

#: After SIGTERM, requests under way may take this much longer.
_GRACE_SECONDS = 5
#: The default limit of a request's size in MiB.
BODY_MIB = 64

#: Finds the key of a presented token, which is "" for a request without one.


@dataclass(frozen=True, kw_only=True, slots=True)
class Listening:
    """Where the service listens: an address or a unix socket; `names` are further hosts of its URLs."""

    host: str = "127.0.0.1"
    port: int = 8700
    uds: Path | None = None
    names: tuple[str, ...] = ()
    body_mib: int = BODY_MIB
    needs_token: bool = True
    certificate: Path | None = None
    private_key: Path | None = None
    #: Names of keys that see the runs of `farm submit` on the page.
    page_keys: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Raise `UsageError` for a name that is not a host, before anything is started."""
        allowed_hosts(port=self.port, names=self.names)


def run(
    connections: Connections, where: Listening, *, say: Callable[[str], None], tells_token: bool = True
) -> None:
    """Serve until SIGTERM; print the address with `say`, and the token too if `tells_token`.

    Raises `UsageError` for an address that other machines reach if there is no token or key.
    """
    keys = Keys(connections.engine)
    ring = KeyRing(keys.valid)
    is_local = where.uds is not None or _is_loopback(where.host)
    if not is_local and not where.needs_token:
        raise UsageError(f"--no-token: {where.host} is reached from other machines; listen on 127.0.0.1")
    if not is_local and not keys.valid():
        raise UsageError(
            f"--host {where.host} is reached from other machines, and there is no key; make one first: "
            "farm keys add NAME"
        )
    # Each waiting client holds a connection, and the usual limit is a thousand open files.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    # By default SIGTERM kills this process before it removes its files; uvicorn raises it again at its end.
    # The signal stays blocked until uvicorn handles it: an exit in between could be reported as a failure.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    with listening(where.uds) if where.uds else listening_at(where.host, where.port) as bound:
        if where.uds is not None:
            say(f"Listening on the unix socket {where.uds}, for programs of this user")
            _serve(connections, where, bound, BrowserAuth(lambda _: LOCAL, shown_to=where.page_keys))
        elif is_local:
            _serve_this_machine(connections, where, bound, ring, say=say, tells_token=tells_token)
        else:
            say(f"Listening on {_url(where, bound)}; clients need a token: farm keys add NAME")
            _serve(connections, where, bound, BrowserAuth(ring.verify, shown_to=where.page_keys))


def _serve_this_machine(
    connections: Connections,
    where: Listening,
    bound: socket.socket,
    ring: KeyRing,
    *,
    say: Callable[[str], None],
    tells_token: bool,
) -> None:
    """Serve at a loopback address, for clients with the token of this start or with a key."""
    url = _url(where, bound)
    with published(connections.settings.home, url) as local:

        def verify(token: str) -> Key | None:
            if not token and not where.needs_token:
                return LOCAL
            return local.verify(token) or ring.verify(token)

        browsers = BrowserAuth(verify, shown_to=where.page_keys)
        say(f"Listening on {url}" + (f", with the token {local.token}" if tells_token else ""))
        say(_where_found(connections.settings.home, local))
        if tells_token:
            code = browsers.sessions.invite(local.token)
            say(f"To look at runs, open {url}{ROOT}/enter?code={code} (once, within an hour)")
        _serve(connections, where, bound, browsers)


def _where_found(home: Path, local: Local) -> str:
    if local.is_published:
        return f"Programs of this user find both in {home}"
    return (
        f"Programs of this user find another service in {home}, which started before; "
        "give them this address and token to ask this one"
    )


def _url(where: Listening, bound: socket.socket) -> str:
    scheme = "http" if where.certificate is None else "https"
    return f"{scheme}://{shown_host(where.host)}:{bound.getsockname()[1]}"


def _serve(connections: Connections, where: Listening, bound: socket.socket, browsers: BrowserAuth) -> None:
    port = None if where.uds is not None else bound.getsockname()[1]
    service = application(lambda: Backend(connections))
    app = AuthMiddleware(
        service,
        hosts=allowed_hosts(port=port, names=where.names),
        browsers=browsers,
        most_bytes=where.body_mib << 20,
    )
    config = uvicorn.Config(
        app,
        access_log=False,
        server_header=False,
        log_config=None,
        lifespan="on",
        http=InTime,
        h11_max_incomplete_event_size=MOST_HEAD_BYTES,
        ws="none",
        timeout_graceful_shutdown=_GRACE_SECONDS,
        backlog=BACKLOG,
        ssl_certfile=where.certificate,
        ssl_keyfile=where.private_key,
    )
    _Server(config, service).run(sockets=[bound])


class _Server(uvicorn.Server):
    """A server that answers waiting clients with partial results when it stops."""

    def __init__(self, config: uvicorn.Config, service: FastAPI) -> None:
        super().__init__(config)
        self._service = service

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Unblock SIGTERM, which uvicorn now handles, and start."""
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        await super().startup(sockets)
        # All objects of the libraries stay: garbage collection need not visit them each time.
        gc.collect()
        gc.freeze()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End all waits, then stop the server."""
        self._service.state.backend.waiters.release()
        await super().shutdown(sockets)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
