"""Drop-in step, asking: programs of one request are taken, waited for within its time, and told of."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, TypeVar

from pydantic import Field, ValidationError, field_validator, model_validator

from farm.errors import OverLimit, QueueFull, ServerDown
from farm.log import logger
from farm.service import requests
from farm.service.bodies import aside
from farm.service.dropins.reading import Reading, read, refused
from farm.service.exchange import Exchange, wait
from farm.service.spelling import words_of
from farm.store.batches import Batch

#: Programs of one request that are read at once: more are read in a thread, others are answered meanwhile.
_QUICK = 256

_S = TypeVar("_S")
_T = TypeVar("_T")

_log = logger(__name__)


class Challenge(requests.Exact):
    """What a program shall prove: a statement, under a header or a context."""

    header: requests.Text = ""
    context: requests.Text = ""
    formal_statement: requests.Text

    @field_validator("formal_statement")
    @classmethod
    def _states_something(cls, statement: str) -> str:
        # One that is blank would be compared with nothing, and the client believe that it was.
        if not statement.strip():
            raise ValueError("the statement is blank; omit it to check the program alone")
        return statement

    @model_validator(mode="after")
    def _has_one_beginning(self) -> Challenge:
        requests.require_context(self.context, self.header)
        return self


#: A field that clients send and that changes nothing here.
Ignored = Annotated[Any, Field(description="Sent by clients of the other checker; changes nothing here.")]


class Stated(requests.Exact):
    """What every drop-in's request may say besides: the `challenge`, or its fields one by one.

    A field that no client sends is refused: it may be a misspelt `challenge`, and the client would believe
    that its statement was compared.
    """

    challenge: Challenge | None = None
    # These become the challenge; they are fields for the schema only.
    header: requests.Text | None = None
    context: requests.Text | None = None
    formal_statement: requests.Text | None = None

    @model_validator(mode="before")
    @classmethod
    def _gather(cls, said: object) -> object:
        if not isinstance(said, dict):
            return said
        fields = {name: said[name] for name in Challenge.model_fields if said.get(name) is not None}
        if fields and said.get("challenge") is not None:
            raise ValueError("give either challenge, or formal_statement with its header or context")
        return said | {"challenge": fields} if fields else said

    def item(self, program: str, *, usual: Challenge | None = None) -> requests.Item | Reading:
        """Return what is to be judged, or what to answer where there is nothing to judge.

        The program shall prove the `usual` challenge where this has none of its own.
        """
        if not program:
            return refused("The program is empty.")
        challenge = self.challenge or usual
        stated = {} if challenge is None else challenge.model_dump()
        return requests.Item(program=program, **stated)


def problem_of(error: ValidationError) -> str:
    """Return in one sentence what is wrong with a part of a request."""
    fault = error.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(map(str, fault['loc'])) or 'it'}: {words_of(fault)}"


async def each_read(exchange: Exchange, said: Sequence[_S], read: Callable[[int, _S], _T]) -> list[_T]:
    """Return what `read` makes of the number of each program of a request and what is said of it.

    Raises `OverLimit` before any is read, where the key may not submit so many now.
    """
    if said:
        exchange.desk.require_room(exchange.key, min(len(said), requests.MOST_ITEMS))

    def all_read() -> list[_T]:
        return [read(number, each) for number, each in enumerate(said)]

    return all_read() if len(said) <= _QUICK else await aside(all_read)


async def readings(
    exchange: Exchange,
    items: Sequence[requests.Item | Reading],
    *,
    seconds: float,
    **options: Any,
) -> list[Reading]:
    """Return the reading of each of these, judged within so many seconds or unknown.

    Raises what `farm.service.desk.Desk.take` does, when nothing was accepted.
    """
    asked = [item for item in items if isinstance(item, requests.Item)]
    results = iter(await judged(exchange, asked, seconds=seconds, **options))
    return [
        read(next(results), is_stated=bool(item.formal_statement))
        if isinstance(item, requests.Item)
        else item
        for item in items
    ]


async def judged(
    exchange: Exchange,
    items: Sequence[requests.Item],
    *,
    seconds: float,
    **options: Any,
) -> list[dict[str, Any]]:
    """Return the result of each item, judged within so many seconds or not; raises as `readings` does.

    What is not judged then is cancelled a little later, unless somebody asks for the same meanwhile.
    """
    until = time.monotonic() + seconds
    taken, why = await _take(exchange, items, options)
    checks = {place: check for batch in taken for place, check in batch.checks.items()}
    waited_for = [place for batch in taken for place in batch.items if place not in batch.judged]
    await wait(exchange.request, exchange.desk, waited_for, until - time.monotonic(), checks)
    found: list[dict[str, Any]] = []
    try:
        for batch in taken:
            found += await _found(exchange, batch)
    except ServerDown as error:
        why = str(error)
    return found + [_not_known(why)] * (len(items) - len(found))


async def _found(exchange: Exchange, batch: Batch) -> list[dict[str, Any]]:
    """Return the results of a batch, which nobody asks for any more."""
    known = {each["index"]: each for each in await exchange.desk.results(batch.items, exchange.key.id)}
    found = [known.get(index) or _not_known("it is gone") for index in range(len(batch.items))]
    if any(each["status"] not in ("done", "cancelled") for each in found):
        await exchange.desk.leave(batch.id)
    return found


async def _take(
    exchange: Exchange, items: Sequence[requests.Item], options: Mapping[str, Any]
) -> tuple[list[Batch], str]:
    """Return the batches that these became, and why not all of them did."""
    taken: list[Batch] = []
    for start in range(0, len(items), requests.MOST_ITEMS):
        batch = requests.Batch(items=list(items[start : start + requests.MOST_ITEMS]), **options)
        try:
            parent = exchange.request.headers.get("traceparent")
            taken.append(await exchange.desk.take(batch, exchange.key, traceparent=parent))
        except (OverLimit, QueueFull, ServerDown) as error:
            if not taken:
                raise
            _log.warning("Only %d of %d programs of a request were taken: %s", start, len(items), error)
            return taken, str(error)
    return taken, ""


def _not_known(why: str) -> dict[str, Any]:
    return {"status": "queued", "verdict": None, "reward": None, "waits_for": why}
