"""The HTTP calls about the farm itself: metrics for Prometheus, environments, and health for probes."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel

from farm.service.dependencies import Reader, TheBackend
from farm.service.json_body import Json, Route
from farm.service.refusals import READY_SECONDS, REFUSALS, Problem, Responses
from farm.store.environments import UNSERVED_SECONDS

router = APIRouter(route_class=Route)

_NOT_NOW: Responses = {503: {"model": Problem, "description": "Not now."}}


class Environment(BaseModel):
    """An environment that was declared or served."""

    name: str
    toolchain: str
    tiers: list[str]
    served: bool
    silent_seconds: float | None


class Health(BaseModel):
    """One word on the health of the farm."""

    status: str


@router.get("/metrics", responses=REFUSALS | {200: {"content": {"text/plain": {}}}}, response_class=Response)
async def metrics(request: Request, backend: TheBackend, _key: Reader) -> Response:
    """Return the metrics of the whole farm for Prometheus, the same as `farm metrics`."""
    body, content_type = await backend.metrics(request.headers.get("accept", ""))
    return Response(body, headers={"Content-Type": content_type})


@router.get("/v1/environments", responses=REFUSALS, response_model=list[Environment])
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


@router.get("/health", response_model=Health)
@router.get("/health/live", response_model=Health)
async def live() -> Response:
    """Answer 200: this process runs."""
    return Json({"status": "ok"})


@router.get("/health/ready", response_model=Health, responses=_NOT_NOW)
async def ready(backend: TheBackend) -> Response:
    """Answer 200 if PostgreSQL answers, so that the service can store batches."""
    await asyncio.wait_for(backend.look(), READY_SECONDS)
    return Json({"status": "ok"})


@router.get("/health/serving", response_model=Health, responses=_NOT_NOW)
async def serving(backend: TheBackend) -> Response:
    """Answer 200 if a worker serves any environment."""
    if await backend.is_served():
        return Json({"status": "ok"})
    return Json({"detail": "no worker was heard of lately; start one: farm worker"}, status_code=503)
