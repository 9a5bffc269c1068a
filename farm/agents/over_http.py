"""Serves the tools over MCP's streamable HTTP transport, to clients that send a key of the farm's service.

The key of each request is that of the requests to the service, which knows its sessions, scopes and limits.
Nothing here keeps a state for a key but its connections.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import socket
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import uvicorn
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.transport_security import TransportSecuritySettings

from farm.agents.server import DEADLINE_SECONDS, server
from farm.client import AsyncClient, ClientError, Forbidden, Unauthorized

#: The path of the server, as MCP's clients expect it.
PATH = "/mcp"
#: A key is shown to the service again after this time, so a revoked one is refused soon.
_KEY_SECONDS = 60.0
#: Connections are kept for this many keys; those of the key that was used least recently go first.
_MOST_KEYS = 1024
_BEARER = re.compile(r"bearer +([A-Za-z0-9._~+/=-]{1,200})", re.ASCII | re.IGNORECASE)

_Message = MutableMapping[str, Any]
_Receive = Callable[[], Awaitable[_Message]]
_Send = Callable[[_Message], Awaitable[None]]
_App = Callable[[_Message, _Receive, _Send], Awaitable[None]]

_current: ContextVar[AsyncClient] = ContextVar("client of the current call")


def bound_to(host: str, port: int) -> socket.socket:
    """Return a socket that listens at an address; port 0 takes a free one. Raises OSError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=256)


def serve(bound: socket.socket) -> None:
    """Serve the farm at FARM_URL, or this machine's, until SIGTERM. Raises NoService."""
    keys = Keys()
    config = uvicorn.Config(
        application(keys), access_log=False, server_header=False, log_config=None, lifespan="on", ws="none"
    )
    uvicorn.Server(config).run(sockets=[bound])


def application(keys: Keys) -> _App:
    """Return the server as an ASGI application."""

    class PerKey(MCPServer[Any]):
        """A server whose calls have the client of the key in the request's headers."""

        async def call_tool(
            self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
        ) -> Any:
            headers = context.headers if context is not None else None
            key = key_in([] if headers is None else [headers.get("authorization", "")])
            if key is None:
                raise ToolError("the request has no key")
            _current.set(keys.client(key))
            return await super().call_tool(name, arguments, context)

    # The library compares Host and Origin to protect servers without keys from web pages, which have none.
    security = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    app = server(_current.get, PerKey).streamable_http_app(
        streamable_http_path=PATH, stateless_http=True, transport_security=security
    )
    return _Guard(app, keys)


def key_in(authorization: Iterable[str]) -> str | None:
    """Return the key in the only `Authorization` header of a request, None without exactly one."""
    given = list(authorization)
    found = _BEARER.fullmatch(given[0].strip(" \t")) if len(given) == 1 else None
    return None if found is None else found[1]


@dataclass(slots=True)
class _Known:
    """The client of a key, and when the service last accepted the key."""

    client: AsyncClient
    accepted_at: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Refusal:
    """The answer to a request that is not passed on."""

    status: int
    words: str


class Keys:
    """The clients of the keys that the service has accepted."""

    def __init__(self) -> None:
        self._known: OrderedDict[bytes, _Known] = OrderedDict()
        self._stranger = AsyncClient(token=secrets.token_hex(16), deadline=DEADLINE_SECONDS)

    def client(self, key: str) -> AsyncClient:
        """Return the client of a key."""
        known = self._known.get(_digest(key))
        return AsyncClient(token=key, deadline=DEADLINE_SECONDS) if known is None else known.client

    async def refusal(self, key: str | None) -> Refusal | None:
        """Return why a request with this key is refused, None if the service accepts the key."""
        if key is None:
            return Refusal(status=401, words="send a key of the farm: Authorization: Bearer KEY")
        known = self._known.get(_digest(key))
        if known is not None and time.monotonic() - known.accepted_at < _KEY_SECONDS:
            self._known.move_to_end(_digest(key))
            return None
        client = self.client(key)
        try:
            await self._require_closed()
            await _shown(client)
        except Unauthorized:
            self._known.pop(_digest(key), None)
            await client.close()
            return Refusal(status=401, words="the farm does not know this key (farm keys add NAME makes one)")
        except ClientError as error:
            if known is None:
                await client.close()
            return Refusal(status=503, words=str(error))
        self._known[_digest(key)] = _Known(client, time.monotonic())
        self._known.move_to_end(_digest(key))
        while len(self._known) > _MOST_KEYS:
            self._known.popitem(last=False)
        return None

    async def _require_closed(self) -> None:
        """Raise ClientError where the service takes any key: it would let in all who reach this server."""
        try:
            await _shown(self._stranger)
        except Unauthorized:
            return
        raise ClientError(f"the farm at {self._stranger.url} asks for no key; serve it at a port, with keys")


async def _shown(client: AsyncClient) -> None:
    """Have the service look at a client's key. Raises ClientError."""
    try:
        await client.environments()
    except Forbidden:
        return  # a key that may not read, but exists


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode()).digest()


class _Guard:
    """Passes requests with a key on, and answers the others itself."""

    def __init__(self, app: _App, keys: Keys) -> None:
        self._app, self._keys = app, keys

    async def __call__(self, scope: _Message, receive: _Receive, send: _Send) -> None:
        if scope["type"] == "http":
            given = [value.decode("latin-1") for name, value in scope["headers"] if name == b"authorization"]
            if (refused := await self._keys.refusal(key_in(given))) is not None:
                await _answer(send, refused)
                return
        await self._app(scope, receive, send)


async def _answer(send: _Send, refused: Refusal) -> None:
    body = json.dumps({"detail": refused.words}).encode("ascii")
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if refused.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
