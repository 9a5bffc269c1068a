"""The HTTP calls about sessions, for provers: open one on a statement, step, look at states, prove, end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import asdict
from typing import Annotated, Literal

from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field, model_validator

from farm.client.results import Result
from farm.client.states import Step
from farm.errors import FarmError
from farm.runs.stepping import program_of
from farm.service import event_stream, exact, requests
from farm.service.dependencies import Reader, Submitter, TheBackend, wait
from farm.service.json_body import Json, Route
from farm.service.refusals import BAD_BODY, REFUSALS
from farm.sessions import wire
from farm.sessions.front import StepOptions

router = APIRouter(route_class=Route, responses=REFUSALS | BAD_BODY)

Tactics = Annotated[list[exact.Text], Field(min_length=1, max_length=wire.MOST_TACTICS)]


class Opening(exact.Exact):
    """What a session is opened on: a `formal_statement`, or a `program` whose sorries are the open places.

    With the `task` disprove the session is on the statement's negation. `negates` comes from lines of
    `farm submit --disprove --dry-run`.
    """

    program: exact.Text = ""
    header: exact.Text = ""
    context: exact.Text = ""
    formal_statement: exact.Text = ""
    task: Literal["prove", "disprove"] = "prove"
    negates: bool = False
    environment: exact.Word | None = None

    @model_validator(mode="after")
    def _is_possible(self) -> Opening:
        requests.require_context(self.context, self.header)
        return self


class Attempt(exact.Exact):
    """Tactics to try on a state."""

    state: exact.Word
    tactics: Tactics


class Steps(exact.Exact):
    """Tactics to try on one state, or on several; `seconds` and `heartbeats` limit each tactic.

    With `first_success` each list ends with its first tactic that does not fail.
    """

    state: exact.Word | None = None
    tactics: Tactics | None = None
    steps: Annotated[list[Attempt], Field(default_factory=list, max_length=wire.MOST_LISTS)]
    seconds: Annotated[float, Field(gt=0, le=wire.MOST_SECONDS, allow_inf_nan=False)] = wire.USUAL_SECONDS
    heartbeats: Annotated[int, Field(ge=1, le=1_000_000_000)] | None = None
    first_success: bool = False

    @model_validator(mode="after")
    def _is_one_of_two(self) -> Steps:
        single = self.state is not None and self.tactics is not None
        if single == bool(self.steps) or (self.state is None) != (self.tactics is None):
            raise ValueError("give a state and tactics, or a list of those as steps")
        return self

    @property
    def options(self) -> StepOptions:
        """The limits of each tactic."""
        return StepOptions(seconds=self.seconds, heartbeats=self.heartbeats, first_success=self.first_success)

    @property
    def attempts(self) -> Sequence[tuple[str, Sequence[str]]]:
        """The states and the tactics to try on each."""
        if self.state is not None and self.tactics is not None:
            return [(self.state, self.tactics)]
        return [(each.state, each.tactics) for each in self.steps]


class Proving(exact.Exact):
    """The states whose text is to be checked and sealed, one for each root, and the limits of that check."""

    states: Annotated[list[exact.Word], Field(min_length=1, max_length=1000)]
    timeout: exact.BodyTimeout = 60.0
    wait_seconds: requests.Wait = 120.0


class StateShown(BaseModel):
    """A state: its open goals, and the tactics that lead to it from its root."""

    id: str
    root: int
    tactics: list[str]
    goals: list[str]
    line: int = 0
    column: int = 0
    is_term: bool = False


class SessionShown(BaseModel):
    """An open session and its first states, one for each sorry."""

    id: str
    environment: str
    states: list[StateShown]


class StepShown(BaseModel):
    """The outcome of a tactic; a state without goals is no proof before it is sealed."""

    tactic: str
    outcome: str
    state: str | None
    goals: list[str]
    messages: list[str]
    message: str
    cpu_ms: float


class StepsShown(BaseModel):
    """The outcomes of each list of tactics."""

    steps: list[list[StepShown]]


class Ended(BaseModel):
    """The session that has ended."""

    id: str


@router.post("/v1/sessions", response_model=SessionShown, status_code=201)
async def open_session(opening: Opening, backend: TheBackend, key: Submitter) -> Response:
    """Open a session, and return the states at the sorries of its program."""
    program = program_of(
        program=opening.program,
        header=opening.header,
        context=opening.context,
        formal_statement=opening.formal_statement,
        task=opening.task,
    )
    item = opening.model_dump(exclude={"environment"})
    kept, roots = await backend.open_session(program, opening.environment, item, key)
    shown = {"id": kept.id, "environment": kept.environment, "states": [asdict(each) for each in roots]}
    return Json(shown, status_code=201)


@router.post(
    "/v1/sessions/{session}/steps",
    response_model=StepsShown,
    responses={200: {"content": {event_stream.TYPE: {}}}},
)
async def step(request: Request, session: str, steps: Steps, backend: TheBackend, key: Submitter) -> Response:
    """Try tactics on states, and return the outcome of each.

    A client that accepts `text/event-stream` gets an event `steps` for each list as soon as it ends, with its
    number as `list`, and `end` behind the last one; or `failed` with a `detail`.
    """
    if event_stream.TYPE not in request.headers.get("Accept", ""):
        found = await backend.step(session, steps.attempts, key, steps.options)
        return Json({"steps": [[asdict(each) for each in one] for one in found]})
    lists = backend.step_by_list(session, steps.attempts, key, steps.options)
    first = await anext(lists)  # a call that is refused has a status of its own
    return StreamingResponse(_events(first, lists), media_type=event_stream.TYPE)


async def _events(
    first: tuple[int, list[Step]], lists: AsyncGenerator[tuple[int, list[Step]]]
) -> AsyncIterator[bytes]:
    async with aclosing(lists):
        yield _event(*first)
        following = asyncio.ensure_future(anext(lists, None))
        try:
            while True:
                await asyncio.wait([following], timeout=event_stream.PING_SECONDS)
                if not following.done():
                    yield event_stream.PING
                elif (each := following.result()) is None:
                    break
                else:
                    yield _event(*each)
                    following = asyncio.ensure_future(anext(lists, None))
            yield event_stream.event("end", {})
        except FarmError as error:
            yield event_stream.event("failed", {"detail": str(error)})
        finally:
            following.cancel()
            await asyncio.wait([following])


def _event(number: int, steps: Sequence[Step]) -> bytes:
    return event_stream.event("steps", {"list": number, "steps": [asdict(each) for each in steps]})


@router.get("/v1/sessions/{session}/states/{state}", response_model=StateShown)
async def get_state(session: str, state: str, backend: TheBackend, key: Reader) -> Response:
    """Return a state of a session."""
    return Json(asdict(await backend.session_state(session, state, key)))


@router.post("/v1/sessions/{session}/prove", response_model=Result)
async def prove(
    request: Request, session: str, proving: Proving, backend: TheBackend, key: Submitter
) -> Response:
    """Have the whole text of a state checked and sealed like any proof; only the seal says `proved`."""
    environment, item = await backend.session_item(session, proving.states, key)
    batch = requests.batch_of(
        [item], {"environment": environment, "timeout": proving.timeout, "priority": "interactive"}, 0
    )
    stored = await backend.take(batch, key, traceparent=request.headers.get("traceparent"))
    unjudged = [each for each in stored.items if each not in stored.judged]
    await wait(request, backend, unjudged, proving.wait_seconds, stored.checks)
    return Json((await backend.results(stored.items, key.id))[0])


@router.delete("/v1/sessions/{session}", response_model=Ended)
async def end_session(session: str, backend: TheBackend, key: Submitter) -> Response:
    """End a session's processes, and forget its states."""
    await backend.end_session(session, key)
    return Json({"id": session})
