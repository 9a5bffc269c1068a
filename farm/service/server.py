"""Service step, the server: where it listens and for whom, until it is told to stop."""

from __future__ import annotations

import gc
import ipaddress
import resource
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
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
from farm.service.protocol import InTime
from farm.service.sockets import BACKLOG, listening, listening_at, shown_host
from farm.store.keys import Key, Keys

#: Seconds in which requests that are under way may end when the service is told to stop.
_GRACE_SECONDS = 5
#: MiB that a request may have.
BODY_MIB = 64

#: Finds the key of a presented token, "" where there is none.
Verify = Callable[[str], Key | None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Listening:
    """Where the service is to listen, an address or a unix socket, and under which other `names`."""

    host: str = "127.0.0.1"
    port: int = 8700
    uds: Path | None = None
    names: tuple[str, ...] = ()
    body_mib: int = BODY_MIB
    needs_token: bool = True
    certificate: Path | None = None
    private_key: Path | None = None
    #: Keys that see the runs of `farm submit` on the page.
    page_keys: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Raise `UsageError` for a name that is no host's, before anything is started."""
        allowed_hosts(port=self.port, names=self.names)


def run(
    connections: Connections, where: Listening, *, say: Callable[[str], None], tells_token: bool = True
) -> None:
    """Serve until told to stop; `say` is told where, and with which token unless it is not to be told.

    Raises `UsageError` where nobody could be kept out.
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
    # Each client that waits has a connection, and the usual limit is a thousand open files.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    # By default it would kill this process before it removes its files; uvicorn repeats it when it has ended.
    # Until uvicorn listens to it, it waits: in the middle of anything an exit may be taken for a failure.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    with _bound(where) as bound:
        if where.uds is not None:
            say(f"Listening on the unix socket {where.uds}, for programs of this user")
            _serve(connections, where, bound, _browser_auth(where, lambda _: LOCAL))
        elif is_local:
            _serve_this_machine(connections, where, bound, ring, say=say, tells_token=tells_token)
        else:
            say(f"Listening on {_url(where, bound)}; clients need a token: farm keys add NAME")
            _serve(connections, where, bound, _browser_auth(where, ring.verify))


def _serve_this_machine(
    connections: Connections,
    where: Listening,
    bound: socket.socket,
    ring: KeyRing,
    *,
    say: Callable[[str], None],
    tells_token: bool,
) -> None:
    """Serve at a loopback address, to who has the token of this start or a key."""
    url = _url(where, bound)
    with published(connections.settings.home, url) as local:

        def verify(token: str) -> Key | None:
            if not token and not where.needs_token:
                return LOCAL
            return local.verify(token) or ring.verify(token)

        browser_auth = _browser_auth(where, verify)
        say(f"Listening on {url}" + (f", with the token {local.token}" if tells_token else ""))
        say(_where_found(connections.settings.home, local))
        if tells_token:
            code = browser_auth.sessions.invite(local.token)
            say(f"To look at runs, open {url}{ROOT}/enter?code={code} (once, within an hour)")
        _serve(connections, where, bound, browser_auth)


def _browser_auth(where: Listening, verify: Verify) -> BrowserAuth:
    return BrowserAuth(verify, shown_to=where.page_keys)


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


def _serve(
    connections: Connections, where: Listening, bound: socket.socket, browser_auth: BrowserAuth
) -> None:
    port = None if where.uds is not None else bound.getsockname()[1]
    service = application(lambda: Backend(connections))
    app = AuthMiddleware(
        service,
        hosts=allowed_hosts(port=port, names=where.names),
        browser_auth=browser_auth,
        most_bytes=where.body_mib << 20,
    )
    config = uvicorn.Config(
        app,
        access_log=False,
        server_header=False,
        log_config=None,
        lifespan="on",
        http=InTime,
        ws="none",
        timeout_graceful_shutdown=_GRACE_SECONDS,
        backlog=BACKLOG,
        ssl_certfile=where.certificate,
        ssl_keyfile=where.private_key,
    )
    _Server(config, service).run(sockets=[bound])


class _Server(uvicorn.Server):
    """Answers clients that wait with what is known when it is told to stop."""

    def __init__(self, config: uvicorn.Config, service: FastAPI) -> None:
        super().__init__(config)
        self._service = service

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Hear of SIGTERM, and begin."""
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        await super().startup(sockets)
        # What is there now stays: a search for garbage need not go through the libraries' objects each time.
        gc.collect()
        gc.freeze()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End all waits, then the server."""
        self._service.state.backend.waiters.release()
        await super().shutdown(sockets)


def _bound(where: Listening) -> AbstractContextManager[socket.socket]:
    """Give a socket for this address, or this path; raises `UsageError`."""
    return listening(where.uds) if where.uds is not None else listening_at(where.host, where.port)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
