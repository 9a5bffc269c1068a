"""The HTTP calls about the farm itself: metrics, environments and their declarations, health for probes."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel

from farm.declarations import MOST
from farm.service.dependencies import Reader, TheBackend
from farm.service.json_body import Json, Route
from farm.service.refusals import BUSY, READY_SECONDS, REFUSALS, Problem, Responses
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


class DeclarationShown(BaseModel):
    """A declaration: its name, its kind in Lean's words, and the module that has it."""

    name: str
    kind: str
    module: str


class DeclarationsShown(BaseModel):
    """The first declarations found, how many there are in all, and a header for programs that name them."""

    header: str
    total: int
    declarations: list[DeclarationShown]


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


@router.get("/v1/declarations", responses=REFUSALS | BUSY, response_model=DeclarationsShown)
async def find_declarations(
    backend: TheBackend,
    key: Reader,
    contains: Annotated[str, Query(min_length=1, max_length=200)],
    environment: Annotated[str | None, Query(max_length=200)] = None,
    most: Annotated[int, Query(ge=1, le=MOST)] = 20,
) -> Response:
    """Return declarations of a Lean environment whose names contain all words of a text, in any case."""
    found = await backend.declarations(contains, environment, key, most=most)
    return Json(asdict(found))


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
