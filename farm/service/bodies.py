"""Service step, bodies: the JSON of a request, or what is wrong with it and where."""

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
from fastapi.routing import APIRoute

from farm.service.may import May

_REMEDY = "send one JSON object in UTF-8"
#: A body of more bytes is parsed in a thread: other requests are answered meanwhile.
_QUICK_BYTES = 256 << 10
# One thread, and its own: those that verify tokens are never taken.
_THREAD = ThreadPoolExecutor(1, thread_name_prefix="bodies")

_T = TypeVar("_T")


class Route(APIRoute):
    """A route that reads a body only for a key that has the scope, and by `parsed`."""

    def get_route_handler(self) -> Callable[[Request], Awaitable[Response]]:  # type: ignore[override]
        """Return what answers a request."""
        answer = super().get_route_handler()
        required = list(_required(self.dependant))

        async def read(request: Request) -> Response:
            # FastAPI asks these only once it has parsed the body.
            for may in required:
                await may(request)
            return await answer(_Request(request.scope, request.receive))

        return read


def _required(dependant: Dependant) -> Iterator[May]:
    for each in dependant.dependencies:
        if isinstance(each.call, May):
            yield each.call
        yield from _required(each)


class _Request(Request):
    async def json(self) -> object:
        body = await self.body()
        return parsed(body) if len(body) <= _QUICK_BYTES else await aside(lambda: parsed(body))


async def aside(step: Callable[[], _T]) -> _T:
    """Return what a long step gives, which is done in a thread after those before it."""
    return await asyncio.get_running_loop().run_in_executor(_THREAD, _uncollected, step)


def _uncollected(step: Callable[[], _T]) -> _T:
    """Do a step without searches for garbage: JSON has no cycles, and no other thread runs in a search.

    Five million empty lists take 0.4 s so, and 2.5 s with them.
    """
    gc.disable()
    try:
        return step()
    finally:
        gc.enable()


def parsed(body: bytes) -> object:
    """Return the JSON of a body.

    Raises `HTTPException`, the only error that FastAPI lets through: with status 400 for what is no JSON, and
    422 for numbers that JSON does not have. Python reads those, and no client could read them back.
    """
    odd: list[str] = []

    def real(digits: str) -> float:
        number = float(digits)
        if not odd and not math.isfinite(number):
            odd.append(digits)
        return number

    try:
        # Not strictly: models write lone surrogates, which some clients send as they are.
        text = body.removeprefix(codecs.BOM_UTF8).decode("utf-8", "surrogatepass")
        found: object = json.loads(text, parse_float=real, parse_constant=real)
    except UnicodeDecodeError as error:
        raise _no_json(f"byte {error.start} is not UTF-8") from error
    except json.JSONDecodeError as error:
        raise _no_json(f"{error.msg} at line {error.lineno}, column {error.colno}") from error
    except RecursionError as error:
        raise _no_json("it is nested too deeply") from error
    except ValueError as error:  # Python reads integers of up to 4300 digits
        raise _no_number(("body",), "an integer has too many digits") from error
    if odd:
        raise _no_number(_place(found), f"{odd[0][:40]} is not a number that JSON can hold")
    return found


def _no_json(why: str) -> HTTPException:
    return HTTPException(400, f"the body is no JSON: {why}; {_REMEDY}")


def _no_number(place: tuple[str | int, ...], why: str) -> HTTPException:
    fault = {"loc": list(place), "msg": f"{why}; give a finite number", "type": "finite_number"}
    return HTTPException(422, [fault])


def _place(found: object) -> tuple[str | int, ...]:
    """Return the path of the first number that is not finite."""
    path: list[str | int] = []
    # Iterators, one for each level: a list of all that is left would take far more memory than the body.
    levels: list[Iterator[tuple[str | int, object]]] = [iter([("body", found)])]
    while levels:
        for name, each in levels[-1]:
            if isinstance(each, float) and not math.isfinite(each):
                return (*path, name)
            if isinstance(each, dict | list):
                path.append(name)
                levels.append(iter(_members(each)))
                break
        else:
            levels.pop()
            del path[-1:]
    return ("body",)


def _members(each: dict[str, object] | list[object]) -> Iterable[tuple[str | int, object]]:
    return each.items() if isinstance(each, dict) else enumerate(each)
