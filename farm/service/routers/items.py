"""The HTTP calls about single items, for clients that did not keep the id of the batch."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from farm.client.results import Bundle, Result
from farm.connections import Connections
from farm.errors import UnknownRun, UsageError
from farm.runs import bundle
from farm.service import requests
from farm.service.dependencies import Reader, TheBackend, WaitSeconds, wait
from farm.service.json_body import Json, Route
from farm.service.refusals import REFUSALS
from farm.store.records import Item

router = APIRouter(route_class=Route, responses=REFUSALS)

#: Ids of one request, with commas between them. The query has at most 50 000 characters: the first line of
#: a request is read whole, up to 64 KiB.
_Ids = Annotated[
    str, Query(max_length=50_000, pattern="^[0-9A-Za-z,-]*$", description="Ids with commas between them.")
]


@router.get("/v1/items", response_model=list[Result])
async def get_items(
    request: Request, backend: TheBackend, key: Reader, ids: _Ids, wait_seconds: WaitSeconds = 0.0
) -> Response:
    """Return the results of items of any batches, after waiting up to `wait_seconds` for all verdicts."""
    item_ids = ids.split(",")
    if len(item_ids) > requests.MOST_ITEMS:
        raise UsageError(f"{len(item_ids)} ids are too many; ask for at most {requests.MOST_ITEMS}")
    items = await backend.mine(item_ids, key.id)
    await wait(request, backend, items, wait_seconds)
    return Json(await backend.results(items, key.id))


@router.get("/v1/items/{item}", response_model=Result)
async def get_item(
    request: Request, item: str, backend: TheBackend, key: Reader, wait_seconds: WaitSeconds = 0.0
) -> Response:
    """Return the result of an item, after waiting up to `wait_seconds` for its verdict."""
    items = await backend.mine([item], key.id)
    await wait(request, backend, items, wait_seconds)
    found = await backend.results(items, key.id)
    if not found:
        raise UnknownRun(f"no item has the id {item!r}")
    return Json(found[0])


@router.get("/v1/items/{item}/bundle", response_model=Bundle)
async def get_bundle(item: str, backend: TheBackend, key: Reader) -> Response:
    """Return a proved item as files that others can check without the farm, by their names.

    Status 422 says why nobody could check the item: it is not proved, or was compared with no statement.
    """
    (found,) = await backend.mine([item], key.id)
    return Json({"item": item, "files": await backend.ask(lambda farm: _texts(farm, found))})


def _texts(farm: Connections, item: Item) -> dict[str, str]:
    run, line = item
    judged, stated = farm.queries.line(run, 0, line), farm.queries.stated(run, 0, line)
    return bundle.Bundle.of(judged, stated).texts()
