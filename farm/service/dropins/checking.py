"""The checks of a drop-in's request: submits its programs, waits for a time, and returns their outcomes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, TypeVar

from pydantic import Field, ValidationError, field_validator, model_validator

from farm.client.results import Result
from farm.errors import OverLimit, QueueFull, ServerDown
from farm.log import logger
from farm.service import exact, requests
from farm.service.dependencies import Submission, wait
from farm.service.dropins.lean_outcome import LeanOutcome, read, refused
from farm.service.json_body import aside
from farm.service.spelling import words_of
from farm.store.batches import Batch

#: A request with more programs is parsed in a thread, so that the event loop answers other requests.
_QUICK = 256

_S = TypeVar("_S")
_T = TypeVar("_T")

_log = logger(__name__)


class DropinChallenge(exact.Exact):
    """The statement that a program must prove, with a header or a context before it."""

    header: exact.Text = ""
    context: exact.Text = ""
    formal_statement: exact.Text

    @field_validator("formal_statement")
    @classmethod
    def _states_something(cls, statement: str) -> str:
        # A blank statement would be compared with nothing, and the client would believe that it was.
        if not statement.strip():
            raise ValueError("the statement is blank; omit it to check the program alone")
        return statement

    @model_validator(mode="after")
    def _has_one_beginning(self) -> DropinChallenge:
        requests.require_context(self.context, self.header)
        return self


#: A field that clients of the other checker send; the farm ignores it.
Ignored = Annotated[Any, Field(description="Sent by clients of the other checker; changes nothing here.")]


class DropinFields(exact.Exact):
    """The fields that every drop-in adds to a request: the `challenge`, or its fields one by one.

    An unknown field is refused: it may be a misspelt `challenge`, and the client would believe that its
    statement was compared.
    """

    challenge: DropinChallenge | None = None
    # `_gather` moves these into the challenge; they are fields for the schema only.
    header: exact.Text | None = None
    context: exact.Text | None = None
    formal_statement: exact.Text | None = None

    @model_validator(mode="before")
    @classmethod
    def _gather(cls, said: object) -> object:
        if not isinstance(said, dict):
            return said
        fields = {name: said[name] for name in DropinChallenge.model_fields if said.get(name) is not None}
        if fields and said.get("challenge") is not None:
            raise ValueError("give either challenge, or formal_statement with its header or context")
        return said | {"challenge": fields} if fields else said

    def item(self, program: str, *, usual: DropinChallenge | None = None) -> requests.Item | LeanOutcome:
        """Return the item to judge, or at once the outcome of an empty program.

        The program must prove the `usual` challenge if this request states none.
        """
        if not program:
            return refused("The program is empty.")
        challenge = self.challenge or usual
        stated = {} if challenge is None else challenge.model_dump()
        return requests.Item(program=program, **stated)


def problem_of(error: ValidationError) -> str:
    """Return the first fault in a part of a request, as one sentence."""
    fault = error.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(map(str, fault['loc'])) or 'it'}: {words_of(fault)}"


async def each_read(submission: Submission, said: Sequence[_S], read: Callable[[int, _S], _T]) -> list[_T]:
    """Return `read(number, part)` for each program's part of a request.

    Raises `OverLimit` before any is read, if the key may not submit that number of programs now.
    """
    if said:
        await submission.backend.require_room(submission.key, min(len(said), requests.MOST_ITEMS))

    def read_all() -> list[_T]:
        return [read(number, each) for number, each in enumerate(said)]

    return read_all() if len(said) <= _QUICK else await aside(read_all)


async def outcomes(
    submission: Submission, items: Sequence[requests.Item | LeanOutcome], *, seconds: float, **options: Any
) -> list[LeanOutcome]:
    """Return the outcome of each item, unknown if it is not judged within `seconds`.

    Raises the errors of `farm.service.backend.Backend.take` if nothing was accepted.
    """
    askable = [item for item in items if isinstance(item, requests.Item)]
    results = iter(await judged(submission, askable, seconds=seconds, **options))
    return [
        read(next(results), is_stated=bool(item.formal_statement))
        if isinstance(item, requests.Item)
        else item
        for item in items
    ]


async def judged(
    submission: Submission, items: Sequence[requests.Item], *, seconds: float, **options: Any
) -> list[Result]:
    """Return the result of each item after at most `seconds`; raises the errors of `outcomes`.

    Items that are not judged then are cancelled a minute later, unless a client asks for the same ones.
    """
    until = time.monotonic() + seconds
    taken, why = await _take(submission, items, options)
    checks = {place: check for batch in taken for place, check in batch.checks.items()}
    waited_for = [place for batch in taken for place in batch.items if place not in batch.judged]
    await wait(submission.request, submission.backend, waited_for, until - time.monotonic(), checks)
    found: list[Result] = []
    try:
        for batch in taken:
            found += await _found(submission, batch)
    except ServerDown as error:
        why = str(error)
    return found + [_not_known(why)] * (len(items) - len(found))


async def _found(submission: Submission, batch: Batch) -> list[Result]:
    """Return the results of a batch, and leave the rest of it to be cancelled."""
    known = {each.index: each for each in await submission.backend.results(batch.items, submission.key.id)}
    found = [known.get(index) or _not_known("it is gone") for index in range(len(batch.items))]
    if any(not each.over for each in found):
        await submission.backend.leave(batch.id)
    return found


async def _take(
    submission: Submission, items: Sequence[requests.Item], options: Mapping[str, Any]
) -> tuple[list[Batch], str]:
    """Return the stored batches of these items, and why some items were not stored."""
    taken: list[Batch] = []
    for start in range(0, len(items), requests.MOST_ITEMS):
        batch = requests.Batch(items=list(items[start : start + requests.MOST_ITEMS]), **options)
        try:
            parent = submission.request.headers.get("traceparent")
            taken.append(await submission.backend.take(batch, submission.key, traceparent=parent))
        except (OverLimit, QueueFull, ServerDown) as error:
            if not taken:
                raise
            _log.warning("Only %d of %d programs of a request were taken: %s", start, len(items), error)
            return taken, str(error)
    return taken, ""


def _not_known(why: str) -> Result:
    return Result(index=0, status="queued", waits_for=why)
