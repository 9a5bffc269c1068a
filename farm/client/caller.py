"""The base class of both clients: their address, options and deadlines, and the arguments for httpx."""

from __future__ import annotations

import math
import platform
import ssl
import sys
from collections.abc import Callable, Generator, Iterable, Mapping
from typing import Any, TypeVar

import httpx

from farm.client import address, requests
from farm.client.errors import NoService, Refused, Unreachable
from farm.client.exchange import Call, Contact
from farm.client.requests import Item, Request, Sent
from farm.client.results import Result
from farm.client.retry import HttpReply, Lost
from farm.version import farm_version

#: An hour: a call must end even if its items are never judged.
DEADLINE_SECONDS = 3600.0
#: The deadline of an answer without a wait; the seconds of a wait are added to it.
_ANSWER_SECONDS = 30.0
_CONNECT_SECONDS = 10.0
#: Connections of one client; further calls wait for a free one.
_CONNECTIONS = 256

#: Failures without an answer; a service that restarts removes its token for a moment.
FAILURES = (httpx.RequestError, NoService)
_UNREACHED = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, NoService)
_LIMITS = httpx.Limits(max_connections=_CONNECTIONS, max_keepalive_connections=64, keepalive_expiry=30.0)
_T = TypeVar("_T")


class Caller:
    """The part of a client that sends nothing: its address, its options and its deadlines."""

    def __init__(
        self,
        url: str | None,
        token: str | None,
        *,
        deadline: float,
        batch_size: int,
        concurrency: int,
        options: Mapping[str, object],
    ) -> None:
        if not 0 < batch_size <= requests.MOST_ITEMS:
            raise ValueError(f"batch_size={batch_size}: must be between 1 and {requests.MOST_ITEMS}")
        if concurrency < 1:
            raise ValueError(f"concurrency={concurrency}: must be at least 1")
        self._address = address.find(url, token)
        self._deadline = _positive(deadline)
        self._batch_size, self._concurrency = batch_size, concurrency
        self._options = requests.checked(options)
        self._address.token()  # raises now, not at the first request
        self._reached = False
        self._contact = Contact()
        self._most_items = requests.MOST_ITEMS

    @property
    def url(self) -> str:
        """The address of the service."""
        return self._address.shown

    def _call(self, deadline: float | None = None) -> Call:
        seconds = self._deadline if deadline is None else _positive(deadline)
        return Call(
            url=self.url,
            seconds=None if math.isinf(seconds) else seconds,
            traceparent=_traceparent(),
            contact=self._contact,
        )

    def _chosen(self, options: Mapping[str, object]) -> Mapping[str, object]:
        return {**self._options, **requests.checked(options)}

    def _batches(self, items: Iterable[Item], *, size: int | None = None) -> list[Sent]:
        _require_many(items)
        return list(requests.batches(items, size=min(size or self._batch_size, self._most_items)))

    def _pieces(self, sent: Sent, refused: Refused) -> list[Sent]:
        """Return a batch in parts within the key's limit of unfinished items; raises `refused` if none fits.

        Each part is a quarter of the limit, so that the next part is taken long before the last proof ends.
        """
        most = refused.most_items
        if not most or len(sent.items) <= most:
            raise refused
        self._most_items = max(1, most // 4)
        return list(requests.pieces(sent, size=self._most_items))

    def _together(self, items: Iterable[Item]) -> Sent:
        _require_many(items)
        sent = requests.together(items)
        if not 0 < len(sent.items) <= requests.MOST_ITEMS:
            raise ValueError(f"a batch has 1 to {requests.MOST_ITEMS} items, not {len(sent.items)}")
        return sent

    def _replied(self, response: httpx.Response, body: bytes) -> HttpReply:
        self._reached = True
        return HttpReply(
            status=response.status_code,
            body=body,
            retry_after=response.headers.get("Retry-After"),
            location=response.headers.get("Location"),
        )

    def _lost(self, error: Exception) -> Lost:
        """Return the failure of a request without an answer; raises Unreachable for a wrong certificate."""
        if (fault := _certificate_fault(error)) is not None:
            raise Unreachable(
                f"the certificate of {self.url} is not accepted: {fault}. Correct FARM_URL, or set "
                "SSL_CERT_FILE to the file of the authority that signed it."
            ) from error
        # A server that accepted the connection was reached, even if its answer was lost.
        self._reached |= not isinstance(error, _UNREACHED)
        return Lost(why=str(error) or type(error).__name__, reached=self._reached)

    def _http_arguments(self, transport: type[_T]) -> dict[str, Any]:
        """Return the arguments for an httpx client of this address."""
        socket = None if self._address.socket is None else str(self._address.socket)
        return {
            "transport": transport(uds=socket, limits=_LIMITS) if self._address.local else None,  # type: ignore[call-arg]
            "limits": _LIMITS,
            "base_url": self._address.url,
            "auth": _Shown(self._authorized),
            "headers": {"User-Agent": f"farm-client/{farm_version()} python/{platform.python_version()}"},
            # A proxy from the environment must not get requests for this machine's own service.
            "trust_env": not self._address.local,
        }

    def _authorized(self, request: httpx.Request) -> httpx.Request:
        try:
            token = self._address.token()
        except NoService as error:
            if not self._reached:
                raise
            # A service removes its token when it ends, and may restart.
            raise httpx.ConnectError(str(error), request=request) from error
        if token is not None:
            request.headers["Authorization"] = f"Bearer {token}"
        return request


class _Shown(httpx.Auth):
    """Sends the token with a request, and repeats the request if the service restarted with a new token.

    A request that waits for a connection already carries the earlier token.
    """

    def __init__(self, authorized: Callable[[httpx.Request], httpx.Request]) -> None:
        self._authorized = authorized

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Yield the request, and once more if it was refused and the token has changed."""
        shown = self._authorized(request).headers.get("Authorization")
        response = yield request
        if response.status_code == 401 and self._authorized(request).headers.get("Authorization") != shown:
            yield request


def wire(request: Request, call: Call, *, silence: float | None = None) -> dict[str, Any]:
    """Return httpx's arguments for a request, with timeouts within the rest of the call's deadline."""
    left = max(0.001, call.left)
    answer = min(left, silence or request.wait_seconds + _ANSWER_SECONDS)
    return {
        "method": request.method,
        "url": request.path,
        "params": dict(request.parameters),
        "content": request.body,
        "headers": _headers(request, call),
        "timeout": httpx.Timeout(
            connect=min(left, _CONNECT_SECONDS),
            read=answer,
            write=min(left, _ANSWER_SECONDS),
            pool=None if math.isinf(left) else left,
        ),
    }


def _headers(request: Request, call: Call) -> dict[str, str]:
    typed = {} if request.body is None else {"Content-Type": "application/json"}
    return typed if call.traceparent is None else {**typed, "traceparent": call.traceparent}


def _traceparent() -> str | None:
    """Return the caller's current span in the form of W3C's header, None if there is no span.

    A program with traces has imported OpenTelemetry already; others need not install it.
    """
    current = getattr(sys.modules.get("opentelemetry.trace"), "get_current_span", None)
    span = None if current is None else current()
    if span is None or not span.is_recording():
        return None
    context = span.get_span_context()
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"


def _certificate_fault(error: BaseException | None) -> str | None:
    """Return why the TLS library refuses the service's certificate, None for another error."""
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return error.verify_message
        error = error.__cause__ or error.__context__
    return None


def placed(results: Iterable[Result]) -> list[Result]:
    """Return results in the order of their items."""
    return sorted(results, key=lambda result: result.index)


def _require_many(items: object) -> None:
    if isinstance(items, str | Mapping):
        raise TypeError("items is one item; give a list of items")


def _positive(deadline: float) -> float:
    if not deadline > 0:
        raise ValueError(f"deadline={deadline!r}: must be a number of seconds above 0")
    return deadline
