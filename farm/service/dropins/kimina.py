"""The drop-in for `kimina-client`: `POST /api/check` and `POST /verify` of a Kimina server."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Response
from fastapi.exceptions import RequestValidationError
from pydantic import AfterValidator, BaseModel, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails

from farm.service import exact, requests
from farm.service.dependencies import Submission, TheSubmission
from farm.service.dropins.checking import (
    DropinChallenge,
    DropinFields,
    Ignored,
    each_read,
    outcomes,
    problem_of,
)
from farm.service.dropins.lean_outcome import LeanOutcome, OutcomeKind, Remark, refused
from farm.service.json_body import Json, Route
from farm.service.refusals import DROPIN_REFUSALS, Problem
from farm.service.spelling import UNKNOWN_FIELD

router = APIRouter(route_class=Route, tags=["drop-ins"], responses=DROPIN_REFUSALS)

#: The published client waits 600 s for an answer by default.
_HOLD_SECONDS = 570.0
#: The largest number of snippets in one request.
_MOST_SNIPPETS = 100_000
#: The client takes an error with these words for the proof's own timeout.
_TIMED_OUT = re.compile("timed out", re.IGNORECASE)
_SEVERITIES = {"information": "info"}

_Snippets = Annotated[list[Any], Field(min_length=1, max_length=_MOST_SNIPPETS)]


def _name(value: object) -> object:
    if value is None or type(value) in (str, int, float):
        return value
    raise ValueError("give a string, a number or null")


#: The client's name of a program, which the answer repeats.
_Name = Annotated[Any, AfterValidator(_name)]


class Snippet(DropinFields):
    """A program of a batch."""

    id: _Name = ""
    code: exact.Text

    @property
    def program(self) -> str:
        """The program."""
        return str(self.code)


class OlderCode(DropinFields):
    """The same in the older form, whose program is the `proof`, or else the `code`."""

    custom_id: _Name = ""
    proof: exact.Text | None = None
    code: exact.Text | None = None

    @model_validator(mode="after")
    def _has_a_program(self) -> OlderCode:
        if self.proof is None and self.code is None:
            raise ValueError("give the program as proof, or as code")
        return self

    @property
    def program(self) -> str:
        """The program."""
        return str(self.code if self.proof is None else self.proof)


class KiminaPrograms(DropinFields):
    """A batch of programs; each is parsed separately, so that a wrong one does not affect the others.

    The challenge of the request holds for every program without one of its own.
    """

    snippets: _Snippets
    timeout: exact.BodyTimeout = 30.0
    environment: exact.Word | None = None
    debug: Ignored = None
    reuse: Ignored = None
    infotree: Ignored = None


class Verification(DropinFields):
    """The same in the older form."""

    codes: _Snippets
    timeout: exact.BodyTimeout = 300.0
    environment: exact.Word | None = None
    infotree_type: Ignored = None
    disable_cache: Ignored = None


class ReplPosition(BaseModel):
    """A place in the program: lines count from 1, columns from 0."""

    line: int
    column: int


class ReplMessage(BaseModel):
    """A message of Lean, with the field names of Lean's REPL."""

    severity: str
    pos: ReplPosition
    endPos: ReplPosition  # noqa: N815 - the clients' name
    data: str


class Admitted(BaseModel):
    """A place that is admitted without a proof."""

    pos: ReplPosition
    endPos: ReplPosition  # noqa: N815 - the clients' name
    goal: str


class Replied(BaseModel):
    """The answer of Lean's REPL."""

    env: int
    messages: list[ReplMessage]
    sorries: list[Admitted]
    time: float = 0.0


class Checked(BaseModel):
    """The outcome of a program: an `error`, or a `response`."""

    id: str | float | None
    time: float
    error: str = ""
    response: Replied | None = None


class OlderVerified(BaseModel):
    """The same in the older form."""

    custom_id: str | None
    error: str = ""
    response: Replied | None = None


class AllChecked(BaseModel):
    """The outcomes of the programs, in their order."""

    results: list[Checked]


class AllVerified(BaseModel):
    """The same in the older form."""

    results: list[OlderVerified]


@router.post("/api/check", responses={200: {"model": AllChecked}, 400: {"model": Problem}})
@router.post("/api/check/", include_in_schema=False)
async def check(body: KiminaPrograms, submission: TheSubmission) -> Response:
    """Judge programs as a Kimina server checks them."""
    results = []
    for name, outcome in await _outcomes(submission, body, Snippet, body.snippets):
        results.append({"id": name, "time": outcome.seconds, **_answer(outcome, body.timeout)})
    return Json({"results": results})


@router.post("/verify", responses={200: {"model": AllVerified}, 400: {"model": Problem}})
@router.post("/one_pass_verify_batch", include_in_schema=False)
async def verify(body: Verification, submission: TheSubmission) -> Response:
    """Judge programs as a Kimina server of the first version verifies them."""
    results = []
    for name, outcome in await _outcomes(submission, body, OlderCode, body.codes):
        answer = _answer(outcome, body.timeout, time=outcome.seconds)
        results.append({"custom_id": None if name is None else str(name), **answer})
    return Json({"results": results})


async def _outcomes(
    submission: Submission,
    body: KiminaPrograms | Verification,
    form: type[Snippet | OlderCode],
    said: Sequence[object],
) -> Iterable[tuple[object, LeanOutcome]]:
    """Return the name of each program with its outcome."""
    place, field = ("snippets", "id") if form is Snippet else ("codes", "custom_id")

    def item(number: int, each: object) -> requests.Item | LeanOutcome:
        return _item(form, each, body.challenge, ("body", place, number))

    items = await each_read(submission, said, item)
    found = await outcomes(
        submission,
        items,
        seconds=_HOLD_SECONDS,
        timeout=body.timeout,
        environment=body.environment,
    )
    names = [each.get(field, "") if isinstance(each, dict) else "" for each in said]
    return zip(names, found, strict=True)


def _item(
    form: type[Snippet | OlderCode], said: object, usual: DropinChallenge | None, place: tuple[str | int, ...]
) -> requests.Item | LeanOutcome:
    """Return the item to judge; raises `RequestValidationError` for a fault of the whole request."""
    try:
        snippet = form.model_validate(said)
    except ValidationError as error:
        if faults := [fault for fault in error.errors(include_url=False) if _is_of_the_request(fault)]:
            located = [{**fault, "loc": (*place, *fault["loc"])} for fault in faults]
            raise RequestValidationError(located) from error
        return refused(f"This is no snippet: {problem_of(error)}.")
    return snippet.item(snippet.program, usual=usual)


def _is_of_the_request(fault: ErrorDetails) -> bool:
    """Whether the client program caused this fault; no answer of a model can cause it."""
    return fault["type"] == UNKNOWN_FIELD or fault["loc"][:1] in (("id",), ("custom_id",))


def _answer(outcome: LeanOutcome, timeout: float, **more: float) -> dict[str, object]:
    """Return the answer about a program; `more` fields stand in the response of Lean, if there is one."""
    if outcome.kind is OutcomeKind.TIMEOUT:
        return {"error": f"Lean REPL command timed out in {timeout:g} seconds"}
    if outcome.kind is OutcomeKind.UNKNOWN:
        return {"error": f"server error: {_TIMED_OUT.sub('ran out of time', outcome.why)}"}
    admitted = [each for each in outcome.remarks if each.is_sorry]
    return {
        "response": {
            "env": 0,
            "messages": [_message(each) for each in outcome.remarks],
            "sorries": [] if outcome.kind is OutcomeKind.SUCCESS else [_sorry(each) for each in admitted],
            **more,
        }
    }


def _message(remark: Remark) -> dict[str, object]:
    return {
        "severity": _SEVERITIES.get(remark.severity, remark.severity),
        **_place(remark),
        "data": remark.text,
    }


def _sorry(remark: Remark) -> dict[str, object]:
    return {**_place(remark), "goal": ""}


def _place(remark: Remark) -> dict[str, object]:
    begin = {"line": remark.line, "column": remark.column}
    if remark.end_line is None or remark.end_column is None:
        return {"pos": begin, "endPos": begin}
    return {"pos": begin, "endPos": {"line": remark.end_line, "column": remark.end_column}}
