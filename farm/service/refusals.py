"""The service's refusals, for clients: which error is which HTTP status, and the body that explains it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fastapi import Request, Response
from fastapi.exception_handlers import http_exception_handler
from fastapi.exceptions import RequestValidationError
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
from farm.service.backend import UnknownEnvironment
from farm.service.json_body import Json
from farm.service.spelling import words_of
from farm.store.batches import KeyReused

Responses = dict[int | str, dict[str, Any]]

#: `Retry-After` in seconds for a request that is refused because the queue is full or a server is down.
RETRY_SECONDS = 5
#: `/health/ready` reports PostgreSQL as down when it takes longer than this.
READY_SECONDS = 5.0
#: An answer lists at most this number of faults.
_MOST_FAULTS = 100


class Problem(BaseModel):
    """Why a request was refused, and how to correct it.

    `batch` is the id of a batch that was stored nevertheless; `items` are the indexes, from 0, of the items
    at fault; `most_items` is how many items the key may have unfinished.
    """

    detail: str
    batch: str | None = None
    items: list[int] | None = None
    most_items: int | None = None


class Malformed(BaseModel):
    """Which fields of a request are wrong, each with its path."""

    class Fault(BaseModel):
        """The path of one field, and why its value is refused."""

        loc: list[str | int]
        msg: str
        type: str

    detail: list[Fault]


#: The refusals of every call that needs a token.
REFUSALS: Responses = {
    400: {"model": Problem, "description": "The body is no JSON."},
    401: {"model": Problem, "description": "There is no valid token."},
    403: {"model": Problem, "description": "The key does not allow it, or a web page asks."},
    404: {"model": Problem, "description": "There is no such batch, item or environment."},
    422: {"model": Malformed, "description": "A field is wrong."},
    503: {"model": Problem, "description": "The farm cannot answer now; nothing is lost."},
}
#: That of a call that takes a worker's time, besides.
BUSY: Responses = {
    429: {"model": Problem, "description": "Too much waits already; nothing was accepted."},
}
#: Those of a call that submits a batch, besides.
BAD_BODY: Responses = {
    408: {"model": Problem, "description": "The body did not arrive."},
    409: {"model": Problem, "description": "A key was used before, for something else."},
    413: {"model": Problem, "description": "The body is too large."},
    415: {"model": Problem, "description": "The body is not declared as JSON."},
    **BUSY,
}
#: Those of a drop-in, before its handler can answer in the words of its own clients.
DROPIN_REFUSALS: Responses = {
    400: {"description": "The request cannot be judged."},
    401: {"model": Problem, "description": "There is no valid token."},
    403: {"model": Problem, "description": "The key does not allow it, or a web page asks."},
    404: {"model": Problem, "description": "There is no such environment."},
    408: {"model": Problem, "description": "The body did not arrive."},
    413: {"model": Problem, "description": "The body is too large."},
    415: {"model": Problem, "description": "The body is not declared as JSON."},
    429: {"model": Problem, "description": "Too much waits already; nothing was accepted."},
    502: {"description": "The farm failed, or was not done in time."},
    503: {"model": Problem, "description": "The farm cannot answer now, or was not done in time."},
    504: {"description": "The farm was not done in time."},
}
_STATUS: tuple[tuple[type[Exception], int], ...] = (
    (ServerDown, 503),
    (QueueFull, 429),
    (OverLimit, 429),
    (Forbidden, 403),
    (KeyReused, 409),
)


async def _http(request: Request, error: HTTPException) -> Response:
    if error.status_code == 404 and error.detail == "Not Found":  # the framework's own: no route
        words = f"there is no address {request.url.path[:200]!r}; /openapi.json lists them, /docs shows them"
        return Json({"detail": words}, status_code=404)
    return await http_exception_handler(request, error)


async def _malformed(_request: Request, error: RequestValidationError) -> Response:
    return Json({"detail": _faults(error.errors())}, status_code=422)


def _faults(found: Sequence[Any]) -> list[dict[str, object]]:
    """Return the first faults of a request as `Malformed` has them, and a last one that counts the rest."""
    faults = [
        {"loc": list(each["loc"]), "msg": words_of(each), "type": each["type"]}
        for each in found[:_MOST_FAULTS]
    ]
    if rest := len(found) - len(faults):
        words = f"{rest} more faults are not listed; correct these first"
        faults.append({"loc": ["body"], "msg": words, "type": "more_faults"})
    return faults


async def _unexpected(_request: Request, _error: Exception) -> Response:
    # The server logs the error itself after this.
    words = "the service failed unexpectedly; report it with the error in its log, and try again"
    return Json({"detail": words}, status_code=500)


async def _late(_request: Request, _error: TimeoutError) -> Response:
    return Json({"detail": f"PostgreSQL does not answer within {READY_SECONDS:g} s"}, status_code=503)


async def _manifest(_request: Request, error: ManifestError) -> Response:
    field = [error.field] if error.field else []
    return _impossible(["body", "items", (error.line or 1) - 1, *field], f"{error.problem}; {error.remedy}")


async def _unknown(_request: Request, error: UnknownRun) -> Response:
    problem: dict[str, object] = {"detail": str(error)}
    if isinstance(error, UnknownEnvironment) and error.items:
        problem["items"] = error.items
    return Json(problem, status_code=404)


async def _usage(_request: Request, error: UsageError) -> Response:
    return _impossible(["body"], str(error))


def _impossible(path: list[str | int], words: str) -> Response:
    return Json({"detail": [{"loc": path, "msg": words, "type": "impossible"}]}, status_code=422)


async def _failed(_request: Request, error: FarmError) -> Response:
    status = next((status for kind, status in _STATUS if isinstance(error, kind)), 500)
    seconds: int | None = RETRY_SECONDS if status in (429, 503) else None
    problem: dict[str, object] = {"detail": str(error)}
    if isinstance(error, OverLimit):
        seconds = error.retry_after
        status = 413 if seconds is None else 429
        problem |= {} if error.most is None else {"most_items": error.most}
    headers = None if seconds is None else {"Retry-After": str(seconds)}
    return Json(problem, status_code=status, headers=headers)


#: The answer of the application to each error, by the class of the error.
HANDLERS: dict[int | type[Exception], Any] = {
    HTTPException: _http,
    RequestValidationError: _malformed,
    Exception: _unexpected,
    TimeoutError: _late,
    ManifestError: _manifest,
    UnknownRun: _unknown,
    UsageError: _usage,
    FarmError: _failed,
}
