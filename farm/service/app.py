"""Service step, the application: which address does what, and which error is which status."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Annotated, Any

from fastapi import FastAPI, Query, Request, Response
from fastapi.exception_handlers import http_exception_handler
from fastapi.exceptions import RequestValidationError
from fastapi.responses import StreamingResponse
from fastapi.telemetry import TelemetryConfig
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from farm.errors import (
    FarmError,
    Forbidden,
    ManifestError,
    OverLimit,
    QueueFull,
    ServerDown,
    UnknownRun,
    UsageError,
)
from farm.service import requests
from farm.service.answers import Result, Results
from farm.service.backend import Backend, UnknownEnvironment
from farm.service.dependencies import (
    KEY_SECONDS,
    REVOKED,
    Canceller,
    Json,
    Problem,
    Reader,
    Submitter,
    TheBackend,
    is_revoked,
    wait,
)
from farm.service.json_body import Route
from farm.service.openapi import describe
from farm.service.spelling import words_of
from farm.service.waiters import LOOK_SECONDS
from farm.store.batches import KeyReused
from farm.store.environments import UNSERVED_SECONDS
from farm.store.records import Item
from farm.version import VERSION

#: Seconds after which who was refused for want of room, or of a server, may try again.
_RETRY_SECONDS = 5
#: A PostgreSQL that takes so long to answer is taken for one that is down.
_READY_SECONDS = 5.0
#: A stream of events says something at least so often: what stands between may end silent connections.
_ALIVE_SECONDS = 15.0
_ALIVE = b": \n\n"
#: Characters of ids that an address may have: a request's first line is read whole, up to 64 KiB.
_LONGEST_IDS = 50_000
#: Faults of one request that are told.
_MOST_FAULTS = 100
_IDS = "Ids with commas between them."


class Malformed(BaseModel):
    """Which fields of a request are wrong, each with its path."""

    class Fault(BaseModel):
        """What is wrong with one field."""

        loc: list[str | int]
        msg: str
        type: str

    detail: list[Fault]


class Environment(BaseModel):
    """An environment that was declared or served."""

    name: str
    toolchain: str
    tiers: list[str]
    served: bool
    silent_seconds: float | None


class Cancelled(BaseModel):
    """How many items a request has cancelled."""

    batch: str
    cancelled: int


class Health(BaseModel):
    """One word on the health of the farm."""

    status: str


#: Its spans and logs would show bodies and errors, which quote proofs; the farm's own show neither.
_NONE_OF_FASTAPIS: TelemetryConfig = {
    "auto_configure": False,
    "logs": False,
    "metrics": False,
    "operation_spans": False,
    "tracing": False,
}

_REFUSED: dict[int | str, dict[str, Any]] = {
    400: {"model": Problem, "description": "The body is no JSON."},
    401: {"model": Problem, "description": "There is no valid token."},
    403: {"model": Problem, "description": "The key does not allow it, or a web page asks."},
    404: {"model": Problem, "description": "There is no such batch, item or environment."},
    422: {"model": Malformed, "description": "A field is wrong."},
    503: {"model": Problem, "description": "The farm cannot answer now; nothing is lost."},
}
_TAKEN: dict[int | str, dict[str, Any]] = {
    202: {"model": Results, "description": "Not all items are done."},
}
_NOT_TAKEN: dict[int | str, dict[str, Any]] = {
    408: {"model": Problem, "description": "The body did not arrive."},
    409: {"model": Problem, "description": "A key was used before, for something else."},
    413: {"model": Problem, "description": "The body is too large."},
    415: {"model": Problem, "description": "The body is not declared as JSON."},
    429: {"model": Problem, "description": "Too much waits already; nothing was accepted."},
}


def application(make_backend: Callable[[], Backend]) -> FastAPI:
    """Return the application over the backend that is made when it starts."""

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        app.state.backend = make_backend()
        yield
        await app.state.backend.close()

    app = FastAPI(
        telemetry=_NONE_OF_FASTAPIS,
        title="farm",
        version=VERSION,
        lifespan=life,
        default_response_class=Json,
        docs_url=None,  # the pages load their scripts from elsewhere
        redoc_url=None,
    )
    app.router.route_class = Route
    _add_errors(app)
    _add_unknown(app)
    _add_batches(app)
    _add_health(app)
    describe(app)
    return app


WaitSeconds = Annotated[requests.Wait, Query()]


def _add_batches(app: FastAPI) -> None:
    app.post("/v1/batches", responses=_REFUSED | _TAKEN | _NOT_TAKEN, response_model=Results)(post_batch)
    app.get("/v1/batches/{batch}", responses=_REFUSED | _TAKEN, response_model=Results)(get_batch)
    app.get(
        "/v1/batches/{batch}/events",
        responses=_REFUSED | {200: {"content": {"text/event-stream": {}}}},
        response_class=StreamingResponse,
    )(events)
    app.post(
        "/v1/batches/{batch}/cancel", responses=_REFUSED | {415: _NOT_TAKEN[415]}, response_model=Cancelled
    )(cancel_batch)
    app.get("/v1/items", responses=_REFUSED, response_model=list[Result])(get_items)
    app.get("/v1/items/{item}", responses=_REFUSED, response_model=Result)(get_item)
    app.get("/metrics", responses=_REFUSED | {200: {"content": {"text/plain": {}}}}, response_class=Response)(
        metrics
    )
    app.get("/v1/environments", responses=_REFUSED, response_model=list[Environment])(environments)


async def post_batch(
    request: Request, batch: requests.Batch, backend: TheBackend, key: Submitter
) -> Response:
    """Take a batch, and wait for its verdicts as long as it says."""
    stored = await backend.take(batch, key, traceparent=request.headers.get("traceparent"))
    waited_for = [item for item in stored.items if item not in stored.judged]
    stays = await wait(request, backend, waited_for, batch.wait_seconds, stored.checks)
    if not stays and not any(item.key for item in batch.items):
        await backend.leave(stored.id)
        # Nobody reads this. The results are not looked at: that would be asking for the batch again.
        return Json({"batch": stored.id}, status_code=202)
    try:
        return _results(stored.id, await backend.results(stored.items, key.id))
    except ServerDown as error:
        # It is stored: without its id nobody could find it again who gave no keys.
        said = {"detail": str(error), "batch": stored.id}
        return Json(said, status_code=503, headers={"Retry-After": str(_RETRY_SECONDS)})


async def get_batch(
    request: Request, batch: str, backend: TheBackend, key: Reader, wait_seconds: WaitSeconds = 0.0
) -> Response:
    """Return what is known of a batch, after waiting for all of it as long as is asked."""
    items = await backend.items_of(batch, key.id)
    await wait(request, backend, items, wait_seconds)
    return _results(batch, await backend.results(items, key.id))


async def get_items(
    request: Request,
    backend: TheBackend,
    key: Reader,
    ids: Annotated[str, Query(max_length=_LONGEST_IDS, pattern="^[0-9A-Za-z,-]*$", description=_IDS)],
    wait_seconds: WaitSeconds = 0.0,
) -> Response:
    """Return what is known of items, of whatever batches, after waiting for all of them."""
    asked = ids.split(",")
    if len(asked) > requests.MOST_ITEMS:
        raise UsageError(f"{len(asked)} ids are too many; ask for at most {requests.MOST_ITEMS}")
    items = await backend.mine(asked, key.id)
    await wait(request, backend, items, wait_seconds)
    return Json(await backend.results(items, key.id))


async def get_item(
    request: Request, item: str, backend: TheBackend, key: Reader, wait_seconds: WaitSeconds = 0.0
) -> Response:
    """Return what is known of an item, after waiting for its verdict as long as is asked."""
    items = await backend.mine([item], key.id)
    await wait(request, backend, items, wait_seconds)
    found = await backend.results(items, key.id)
    if not found:
        raise UnknownRun(f"no item has the id {item!r}")
    return Json(found[0])


async def events(request: Request, batch: str, backend: TheBackend, key: Reader) -> Response:
    """Stream the results of a batch as server-sent events, in the order in which they come."""
    items = await backend.items_of(batch, key.id)
    told = _events(request, backend, batch, items, key.id)
    return StreamingResponse(told, media_type="text/event-stream")


async def cancel_batch(
    batch: str, cancellation: requests.Cancellation, backend: TheBackend, key: Canceller
) -> Response:
    """Cancel items of a batch, groups of them, or all."""
    return Json({"batch": batch, "cancelled": await backend.cancel(batch, key.id, cancellation)})


async def environments(backend: TheBackend, _key: Reader) -> Response:
    """Return the environments that were declared or served."""
    return Json(
        [
            {
                "name": each.name,
                "toolchain": each.toolchain,
                "tiers": list(each.tiers),
                "served": each.silent_seconds <= UNSERVED_SECONDS,
                "silent_seconds": None if each.is_only_declared else round(each.silent_seconds, 3),
            }
            for each in await backend.environments()
        ]
    )


async def metrics(request: Request, backend: TheBackend, _key: Reader) -> Response:
    """Tell Prometheus what waits, runs and ends in the whole farm, as `farm metrics` does."""
    body, content_type = await backend.metrics(request.headers.get("accept", ""))
    return Response(body, headers={"Content-Type": content_type})


def _results(batch_id: str, items: list[dict[str, Any]]) -> Response:
    done = all(each["status"] in ("done", "cancelled") for each in items)
    return Json({"batch": batch_id, "done": done, "items": items}, status_code=200 if done else 202)


async def _events(
    request: Request, backend: Backend, batch: str, items: list[Item], owner: str
) -> AsyncIterator[bytes]:
    waiter, untold = backend.wait_for(items), list[Item]()
    looked_at = time.monotonic()
    try:
        while True:
            if time.monotonic() - looked_at >= KEY_SECONDS:
                if await is_revoked(request):
                    yield _event("revoked", {"batch": batch, "detail": REVOKED})
                    return
                looked_at = time.monotonic()
            try:
                async with asyncio.timeout(KEY_SECONDS):
                    untold = untold or sorted(await waiter.some())
                if not untold:
                    break
                async with asyncio.timeout(_ALIVE_SECONDS):
                    results = await backend.results(items, owner, only=untold)
            except TimeoutError:
                yield _ALIVE
                continue
            except ServerDown:
                yield _ALIVE
                await asyncio.sleep(LOOK_SECONDS)
                continue
            untold = []
            for each in results:
                yield _event("result", each)
        if waiter.pending:
            return  # the service stops: the client is to ask again
        yield _event("end", {"batch": batch, "done": True})
    finally:
        backend.waiters.remove(waiter)


def _event(kind: str, data: dict[str, Any]) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), bytes(Json(data).body))


def _add_health(app: FastAPI) -> None:
    unfit: dict[int | str, dict[str, Any]] = {503: {"model": Problem, "description": "Not now."}}

    @app.get("/health", response_model=Health)
    @app.get("/health/live", response_model=Health)
    async def live() -> Response:
        """Tell that this process answers."""
        return Json({"status": "ok"})

    @app.get("/health/ready", response_model=Health, responses=unfit)
    async def ready(backend: TheBackend) -> Response:
        """Tell whether PostgreSQL answers, so that batches can be taken."""
        await asyncio.wait_for(backend.look(), _READY_SECONDS)
        return Json({"status": "ok"})

    @app.get("/health/serving", response_model=Health, responses=unfit)
    async def serving(backend: TheBackend) -> Response:
        """Tell whether a worker serves any environment."""
        if await backend.is_served():
            return Json({"status": "ok"})
        return Json({"detail": "no worker was heard of lately; start one: farm worker"}, status_code=503)


_STATUS: tuple[tuple[type[Exception], int], ...] = (
    (ServerDown, 503),
    (QueueFull, 429),
    (OverLimit, 429),
    (Forbidden, 403),
    (KeyReused, 409),
    (UnknownRun, 404),
)


def _told(faults: Sequence[Any]) -> list[dict[str, Any]]:
    """Return the first faults of a request as they are told."""
    told = [
        {"loc": list(each["loc"]), "msg": words_of(each), "type": each["type"]}
        for each in faults[:_MOST_FAULTS]
    ]
    if untold := len(faults) - len(told):
        words = f"{untold} more faults are not told; correct these first"
        told.append({"loc": ["body"], "msg": words, "type": "more_faults"})
    return told


def _add_unknown(app: FastAPI) -> None:
    @app.exception_handler(HTTPException)
    async def unknown(request: Request, error: HTTPException) -> Response:
        if error.status_code == 404 and error.detail == "Not Found":  # the framework's own: no route
            words = (
                f"there is no address {request.url.path[:200]!r}; /openapi.json lists them, /docs shows them"
            )
            return Json({"detail": words}, status_code=404)
        return await http_exception_handler(request, error)


def _add_errors(app: FastAPI) -> None:
    @app.exception_handler(RequestValidationError)
    async def malformed(_request: Request, error: RequestValidationError) -> Response:
        return Json({"detail": _told(error.errors())}, status_code=422)

    @app.exception_handler(Exception)
    async def unforeseen(_request: Request, _error: Exception) -> Response:
        # The server logs the error itself after this.
        words = "the service failed in a way nobody foresaw; its log says more; ask again, and report it"
        return Json({"detail": words}, status_code=500)

    @app.exception_handler(TimeoutError)
    async def late(_request: Request, _error: TimeoutError) -> Response:
        return Json({"detail": f"PostgreSQL does not answer within {_READY_SECONDS:g} s"}, status_code=503)

    @app.exception_handler(ManifestError)
    async def impossible(_request: Request, error: ManifestError) -> Response:
        path = ["body", "items", (error.line or 1) - 1, *([error.field] if error.field else [])]
        words = f"{error.problem}; {error.remedy}"
        fault = {"loc": path, "msg": words, "type": "impossible"}
        return Json({"detail": [fault]}, status_code=422)

    @app.exception_handler(UsageError)
    async def misused(_request: Request, error: UsageError) -> Response:
        if isinstance(error, UnknownRun):
            said: dict[str, object] = {"detail": str(error)}
            if isinstance(error, UnknownEnvironment) and error.items:
                said["items"] = error.items
            return Json(said, status_code=404)
        fault = {"loc": ["body"], "msg": str(error), "type": "impossible"}
        return Json({"detail": [fault]}, status_code=422)

    @app.exception_handler(FarmError)
    async def failed(_request: Request, error: FarmError) -> Response:
        status = next((status for kind, status in _STATUS if isinstance(error, kind)), 500)
        seconds: int | None = _RETRY_SECONDS if status in (429, 503) else None
        said: dict[str, object] = {"detail": str(error)}
        if isinstance(error, OverLimit):
            seconds = error.retry_after
            status = 413 if seconds is None else 429
            said |= {} if error.most is None else {"most_items": error.most}
        headers = None if seconds is None else {"Retry-After": str(seconds)}
        return Json(said, status_code=status, headers=headers)
