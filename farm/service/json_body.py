"""JSON bodies for the service: parses a request's, or names its fault and the place; writes an answer's."""

from __future__ import annotations

import asyncio
import codecs
import gc
import json
import math
from collections.abc import Awaitable, Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from fastapi import HTTPException, Request, Response
from fastapi.dependencies.models import Dependant
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute

from farm.documents import fields_of
from farm.service.auth.scopes import RequireScope

_REMEDY = "send one JSON object in UTF-8"
#: A body of more bytes is parsed in a thread, so that the event loop answers other requests.
_QUICK_BYTES = 256 << 10
# A thread of its own: the threads that verify tokens stay free.
_THREAD = ThreadPoolExecutor(1, thread_name_prefix="bodies")

_T = TypeVar("_T")


class Json(JSONResponse):
    """An answer of JSON in ASCII: a proof may print lone surrogates, which UTF-8 cannot hold."""

    def render(self, content: object) -> bytes:
        """Return the body."""
        text = json.dumps(content, default=fields_of, separators=(",", ":"), allow_nan=False)
        return text.encode("ascii")


class Route(APIRoute):
    """A route that checks the key's scope before it reads the body, and parses the body with `parsed`."""

    def get_route_handler(self) -> Callable[[Request], Awaitable[Response]]:  # type: ignore[override]
        """Return the function that answers a request."""
        answer = super().get_route_handler()
        required = list(_required(self.dependant))

        async def read(request: Request) -> Response:
            # FastAPI would call these only after it has parsed the body.
            for require in required:
                await require(request)
            return await answer(_Request(request.scope, request.receive))

        return read


def _required(dependant: Dependant) -> Iterator[RequireScope]:
    for each in dependant.dependencies:
        if isinstance(each.call, RequireScope):
            yield each.call
        yield from _required(each)


class _Request(Request):
    async def json(self) -> object:
        body = await self.body()
        return parsed(body) if len(body) <= _QUICK_BYTES else await aside(lambda: parsed(body))


async def aside(step: Callable[[], _T]) -> _T:
    """Return the result of a long step, run in the one thread for such steps, in the order of the calls."""
    return await asyncio.get_running_loop().run_in_executor(_THREAD, _uncollected, step)


def _uncollected(step: Callable[[], _T]) -> _T:
    """Run a step without garbage collection: JSON has no cycles, and a collection blocks every thread.

    Five million empty lists take 0.4 s without it, and 2.5 s with it.
    """
    gc.disable()
    try:
        return step()
    finally:
        gc.enable()


class UnfitJson(ValueError):
    """JSON that the service refuses: `place` is the path of the field, `kind` the type of the fault."""

    def __init__(self, place: tuple[str | int, ...], words: str, *, kind: str) -> None:
        super().__init__(words)
        self.place, self.words, self.kind = place, words, kind


def parsed(body: bytes) -> object:
    """Return the JSON of a body.

    Raises `HTTPException`, the only error that FastAPI lets through: with status 400 if the body is not
    JSON, and 422 if `strict` refuses the JSON.
    """
    try:
        # Models write lone surrogates, which some clients send as they are.
        return strict(body.removeprefix(codecs.BOM_UTF8).decode("utf-8", "surrogatepass"))
    except UnicodeDecodeError as error:
        raise _no_json(f"byte {error.start} is not UTF-8") from error
    except json.JSONDecodeError as error:
        raise _no_json(f"{error.msg} at line {error.lineno}, column {error.colno}") from error
    except RecursionError as error:
        raise _no_json("it is nested too deeply") from error
    except UnfitJson as error:
        fault = {"loc": ["body", *error.place], "msg": error.words, "type": error.kind}
        raise HTTPException(422, [fault]) from error


def strict(text: str) -> object:
    """Return the value of a JSON text in which no object has a field twice and all numbers are finite.

    Of two fields with one name Python keeps the last, other parsers the first; and JSON has no NaN, so no
    client could read it back. Raises `UnfitJson` for these, `json.JSONDecodeError` and RecursionError for a
    text that is not JSON.
    """
    odd: list[str] = []
    twice: list[tuple[dict[str, object], str]] = []

    def real(digits: str) -> float:
        number = float(digits)
        if not odd and not math.isfinite(number):
            odd.append(digits)
        return number

    def once(pairs: list[tuple[str, object]]) -> dict[str, object]:
        made = dict(pairs)
        if len(made) < len(pairs):
            # Inner objects come first, so the last one stands in no object that lost a field: it has a path.
            twice[:] = [(made, _repeated(pairs))]
        return made

    try:
        found: object = json.loads(text, parse_float=real, parse_constant=real, object_pairs_hook=once)
    except json.JSONDecodeError:
        raise
    except ValueError as error:  # Python reads integers of up to 4300 digits
        words = "an integer has too many digits; give a finite number"
        raise UnfitJson((), words, kind="finite_number") from error
    if twice:
        ((whole, name),) = twice
        place = _place(found, lambda each: each is whole)
        raise UnfitJson(
            (*place, name), f"{name[:80]!r} is given twice; keep one of the two", kind="given_twice"
        )
    if odd:
        place = _place(found, lambda each: isinstance(each, float) and not math.isfinite(each))
        words = f"{odd[0][:40]} is not a number that JSON can hold; give a finite number"
        raise UnfitJson(place, words, kind="finite_number")
    return found


def _repeated(pairs: Iterable[tuple[str, object]]) -> str:
    seen = set[str]()
    return next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]


def _no_json(why: str) -> HTTPException:
    return HTTPException(400, f"the body is no JSON: {why}; {_REMEDY}")


def _place(found: object, is_wanted: Callable[[object], bool]) -> tuple[str | int, ...]:
    """Return the path of the first value that is wanted, () for the whole or if there is no such value."""
    if is_wanted(found):
        return ()
    path: list[str | int] = []
    # An iterator for each level: a list of all remaining values would take far more memory than the body.
    levels: list[Iterator[tuple[str | int, object]]] = [iter(_members(found))]
    while levels:
        for name, each in levels[-1]:
            if is_wanted(each):
                return (*path, name)
            if isinstance(each, dict | list):
                path.append(name)
                levels.append(iter(_members(each)))
                break
        else:
            levels.pop()
            del path[-1:]
    return ()


def _members(each: object) -> Iterable[tuple[str | int, object]]:
    if isinstance(each, dict):
        return each.items()
    return enumerate(each) if isinstance(each, list) else ()
