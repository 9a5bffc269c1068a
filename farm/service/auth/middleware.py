"""The ASGI middleware before the service: checks origin, token and size of a request before it is parsed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from functools import partial
from typing import Any

from starlette.routing import Match

from farm.errors import ServerDown
from farm.log import logger
from farm.service.auth.browser import BrowserAuth, is_page
from farm.service.auth.origins import Refusal, page_refusal, refusal
from farm.service.auth.tokens import presented
from farm.service.protocol import HEAD_TOO_LARGE, MOST_HEAD_BYTES
from farm.service.unpacking import UnfitPacking, UnknownPacking, Unpacking, unpacking

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

_log = logger(__name__)

#: Addresses that answer without a token.
OPEN = ("/health", "/health/live", "/health/ready", "/health/serving")

_AMBIGUOUS = "the request has both Content-Length and Transfer-Encoding; send one of them"
#: A request is refused when nothing more of its incomplete body has arrived for this time, and when the body
#: takes longer than this time and that for its bytes at this rate.
SILENT_SECONDS, LEAST_BYTES_A_SECOND = 60.0, 1024
_TOO_LATE = (
    "the body did not arrive: the client sent nothing for {:g} s, or less than {} bytes a second after that "
    "time; send the request again"
)
_TOO_LARGE = "the body has more than {} bytes; send fewer items at once"


class AuthMiddleware:
    """An ASGI application in front of the service that answers requests without access itself.

    It puts into a request's state `key`, the API key of its token, and `key_again`, which looks the key up
    once more. A request for the page gets `browsers` instead, which signs browsers in by cookie; an API
    call never reads cookies.
    """

    def __init__(self, app: App, *, hosts: frozenset[str], browsers: BrowserAuth, most_bytes: int) -> None:
        self._app, self._hosts, self._browsers, self._most_bytes = app, hosts, browsers, most_bytes

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] == "http" and _is_ambiguous(scope["headers"]):
            await _answer(send, Refusal(status=400, words=_AMBIGUOUS))
            return
        if scope["type"] == "http" and _head_bytes(scope) > MOST_HEAD_BYTES:
            await _answer(send, Refusal(status=431, words=HEAD_TOO_LARGE))
            return
        if scope["type"] == "lifespan" or (scope["type"] == "http" and scope["path"] in OPEN):
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        refused = await self._refusal(scope)
        if refused is not None:
            await _answer(send, refused)
            return
        try:
            packed = unpacking(scope["headers"])
        except UnknownPacking as error:
            await _answer(send, Refusal(status=415, words=str(error)))
            return
        await self._pass(scope, receive, send, packed)

    async def _refusal(self, scope: Message) -> Refusal | None:
        headers = scope["headers"]
        if is_page(scope["path"]):
            scope.setdefault("state", {})["browsers"] = self._browsers
            return page_refusal(scope["method"], scope["scheme"], headers, hosts=self._hosts)
        refused = refusal(scope["method"], scope["scheme"], headers, hosts=self._hosts)
        if refused and not (refused.status == 415 and self._is_unknown(scope)):
            return refused
        token = presented([value.decode("latin-1") for name, value in headers if name == b"authorization"])
        try:
            key = await self._browsers.key(token or "")
        except ServerDown as error:
            return Refusal(status=503, words=str(error))
        except Exception:  # noqa: BLE001 # the edge: no framework stands before this to answer
            _log.exception("A token could not be verified")
            return Refusal(status=500, words="the token could not be verified; the service's log says why")
        if key is None:
            words = "no valid token; send Authorization: Bearer TOKEN (farm keys add NAME makes one)"
            return Refusal(status=401, words=words)
        scope.setdefault("state", {}).update(key=key, key_again=partial(self._browsers.key, token or ""))
        sizes = [value for name, value in headers if name == b"content-length"]
        if any(not size.isdigit() or int(size) > self._most_bytes for size in sizes):
            return Refusal(status=413, words=_TOO_LARGE.format(self._most_bytes))
        return None

    def _is_unknown(self, scope: Message) -> bool:
        """Whether the service has no such address or method: it answers 404 or 405, whatever the body."""
        routes = getattr(self._app, "routes", ())
        return bool(routes) and all(route.matches(scope)[0] is not Match.FULL for route in routes)

    async def _pass(self, scope: Message, receive: Receive, send: Send, packed: Unpacking | None) -> None:
        """Pass a request on; refuse it later if its body gets too large, stops arriving or is no gzip."""
        left, is_whole, is_answered = self._most_bytes, False, False
        until = asyncio.get_running_loop().time() + SILENT_SECONDS
        refused: Refusal | None = None

        async def receiving() -> Message:
            nonlocal left, is_whole, refused, until
            now = asyncio.get_running_loop().time()
            try:
                async with asyncio.timeout_at(None if is_whole else min(until, now + SILENT_SECONDS)):
                    message = await receive()
                until += len(message.get("body", b"")) / LEAST_BYTES_A_SECOND
                is_whole = not message.get("more_body", False)
                if packed is not None and message["type"] == "http.request":
                    message["body"] = await packed.piece(message.get("body", b""), left, is_last=is_whole)
            except TimeoutError:
                refused = Refusal(status=408, words=_TOO_LATE.format(SILENT_SECONDS, LEAST_BYTES_A_SECOND))
            except UnfitPacking as error:
                refused = Refusal(status=400, words=str(error))
            else:
                left -= len(message.get("body", b""))
                if left >= 0:
                    return message
                refused = Refusal(status=413, words=_TOO_LARGE.format(self._most_bytes))
            # The service takes this for a client that has gone, and sends no answer of its own.
            return {"type": "http.disconnect"}

        async def sending(message: Message) -> None:
            nonlocal is_answered
            if refused is None:
                await send(message)
            elif not is_answered:
                is_answered = True
                await _answer(send, refused)

        await self._app(scope, receiving, sending)


def _head_bytes(scope: Message) -> int:
    """Return the size of a request's head, which the parser does not limit where it arrives at once."""
    target = len(scope["raw_path"]) + len(scope["query_string"])
    return target + sum(len(name) + len(value) for name, value in scope["headers"])


def _is_ambiguous(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Whether a proxy and the service may disagree where the body ends (request smuggling).

    See https://www.rfc-editor.org/rfc/rfc9112#section-6.1.
    """
    return {b"content-length", b"transfer-encoding"} <= {name for name, _ in headers}


async def _answer(send: Send, refused: Refusal) -> None:
    body = json.dumps({"detail": refused.words}).encode("ascii")
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if refused.status in (400, 408, 431):
        headers.append((b"connection", b"close"))
    if refused.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if refused.status == 503:
        headers.append((b"retry-after", b"5"))
    await send({"type": "http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
