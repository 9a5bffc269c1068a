"""Service step, bodies: the JSON of a request, or what is wrong with it and where."""

from __future__ import annotations

import codecs
import json
import math
from collections.abc import Awaitable, Callable

from fastapi import HTTPException, Request, Response
from fastapi.routing import APIRoute

_REMEDY = "send one JSON object in UTF-8"


class Route(APIRoute):
    """A route whose body is read by `parsed`."""

    def get_route_handler(self) -> Callable[[Request], Awaitable[Response]]:  # type: ignore[override]
        """Return what answers a request."""
        answer = super().get_route_handler()

        async def read(request: Request) -> Response:
            return await answer(_Request(request.scope, request.receive))

        return read


class _Request(Request):
    async def json(self) -> object:
        return parsed(await self.body())


def parsed(body: bytes) -> object:
    """Return the JSON of a body.

    Raises `HTTPException`, the only error that FastAPI lets through: with status 400 for what is no JSON, and
    422 for numbers that JSON does not have. Python reads those, and no client could read them back.
    """
    odd: list[str] = []

    def real(digits: str) -> float:
        number = float(digits)
        if not math.isfinite(number):
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
        raise _no_number((), "an integer has too many digits") from error
    if odd:
        raise _no_number(_place(found), f"{odd[0][:40]} is not a number that JSON can hold")
    return found


def _no_json(why: str) -> HTTPException:
    return HTTPException(400, f"the body is no JSON: {why}; {_REMEDY}")


def _no_number(place: tuple[str | int, ...], why: str) -> HTTPException:
    fault = {"loc": ["body", *place], "msg": f"{why}; give a finite number", "type": "finite_number"}
    return HTTPException(422, [fault])


def _place(found: object) -> tuple[str | int, ...]:
    """Return the path of the first number that is not finite."""
    left: list[tuple[tuple[str | int, ...], object]] = [((), found)]
    while left:
        place, each = left.pop()
        if isinstance(each, float) and not math.isfinite(each):
            return place
        if isinstance(each, dict):
            left += [((*place, name), value) for name, value in reversed(each.items())]
        elif isinstance(each, list):
            left += [((*place, number), each[number]) for number in reversed(range(len(each)))]
    return ()
