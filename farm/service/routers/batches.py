"""The HTTP calls about batches, for clients: submit, look, follow the events, cancel."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel

from farm.client.results import Result
from farm.errors import ServerDown
from farm.service import requests
from farm.service.answers import Results
from farm.service.backend import Backend
from farm.service.dependencies import (
    KEY_SECONDS,
    REVOKED,
    Canceller,
    Reader,
    Submitter,
    TheBackend,
    WaitSeconds,
    is_revoked,
    wait,
)
from farm.service.event_stream import PING, PING_SECONDS, TYPE, event
from farm.service.json_body import Json, Route
from farm.service.refusals import BAD_BODY, REFUSALS, RETRY_SECONDS, Responses
from farm.service.waiters import POLL_SECONDS
from farm.store.records import Item

router = APIRouter(route_class=Route, responses=REFUSALS)

_PENDING: Responses = {202: {"model": Results, "description": "Not all items are done."}}


class Cancelled(BaseModel):
    """How many items a request has cancelled."""

    batch: str
    cancelled: int


@router.post("/v1/batches", responses=_PENDING | BAD_BODY, response_model=Results)
async def post_batch(
    request: Request, batch: requests.Batch, backend: TheBackend, key: Submitter
) -> Response:
    """Store a batch, and wait up to its `wait_seconds` for the verdicts."""
    stored = await backend.take(batch, key, traceparent=request.headers.get("traceparent"))
    unjudged = [item for item in stored.items if item not in stored.judged]
    is_connected = await wait(request, backend, unjudged, batch.wait_seconds, stored.checks)
    if not is_connected and not any(item.key for item in batch.items):
        await backend.leave(stored.id)
        # The client has gone. Reading the results would count as a request for the batch, and keep it.
        return Json({"batch": stored.id}, status_code=202)
    try:
        return _results(stored.id, await backend.results(stored.items, key.id))
    except ServerDown as error:
        # The batch is stored: a client that gave its items no keys finds it by this id alone.
        problem = {"detail": str(error), "batch": stored.id}
        return Json(problem, status_code=503, headers={"Retry-After": str(RETRY_SECONDS)})


@router.get("/v1/batches/{batch}", responses=_PENDING, response_model=Results)
async def get_batch(
    request: Request, batch: str, backend: TheBackend, key: Reader, wait_seconds: WaitSeconds = 0.0
) -> Response:
    """Return the results of a batch, after waiting up to `wait_seconds` for all of its verdicts."""
    items = await backend.items_of(batch, key.id)
    await wait(request, backend, items, wait_seconds)
    return _results(batch, await backend.results(items, key.id))


@router.get(
    "/v1/batches/{batch}/events",
    responses={200: {"content": {TYPE: {}}}},
    response_class=StreamingResponse,
)
async def events(request: Request, batch: str, backend: TheBackend, key: Reader) -> Response:
    """Stream the results of a batch as server-sent events, in the order in which the items are done."""
    items = await backend.items_of(batch, key.id)
    stream = _events(request, backend, batch, items, key.id)
    return StreamingResponse(stream, media_type=TYPE)


@router.post("/v1/batches/{batch}/cancel", responses={415: BAD_BODY[415]}, response_model=Cancelled)
async def cancel_batch(
    batch: str, cancellation: requests.Cancellation, backend: TheBackend, key: Canceller
) -> Response:
    """Cancel items of a batch, groups of them, or all."""
    return Json({"batch": batch, "cancelled": await backend.cancel(batch, key.id, cancellation)})


def _results(batch_id: str, items: list[Result]) -> Response:
    results = Results.of(batch_id, items)
    return Json(results, status_code=200 if results.done else 202)


async def _events(
    request: Request, backend: Backend, batch: str, items: list[Item], owner: str
) -> AsyncIterator[bytes]:
    waiter, unsent = backend.wait_for(items), list[Item]()
    key_checked_at = time.monotonic()
    try:
        while True:
            if time.monotonic() - key_checked_at >= KEY_SECONDS:
                if await is_revoked(request):
                    yield event("revoked", {"batch": batch, "detail": REVOKED})
                    return
                key_checked_at = time.monotonic()
            try:
                async with asyncio.timeout(KEY_SECONDS):
                    unsent = unsent or sorted(await waiter.some())
                if not unsent:
                    break
                async with asyncio.timeout(PING_SECONDS):
                    results = await backend.results(items, owner, only=unsent)
            except TimeoutError:
                yield PING
                continue
            except ServerDown:
                yield PING
                await asyncio.sleep(POLL_SECONDS)
                continue
            unsent = []
            for each in results:
                yield event("result", each)
        if waiter.pending:
            return  # the service stops: the client reconnects to another replica
        yield event("end", {"batch": batch, "done": True})
    finally:
        backend.waiters.remove(waiter)
