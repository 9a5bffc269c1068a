"""The drop-in for NeMo-Skills and NeMo-Gym: `POST /execute` of NeMo-Skills' code sandbox.

The client gives up five seconds after `timeout` and calls that a timeout of the proof. So the farm answers
earlier: 502, which the client retries, for a program that is not judged by then or that the farm failed on.
"""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Response
from pydantic import BaseModel, Field

from farm.errors import FarmError, UsageError
from farm.service import exact
from farm.service.dependencies import TheSubmission
from farm.service.dropins.checking import DropinFields, Ignored, outcomes
from farm.service.dropins.lean_outcome import LeanOutcome, OutcomeKind, bounded
from farm.service.json_body import Json, Route
from farm.service.refusals import DROPIN_REFUSALS, Problem, Responses

router = APIRouter(route_class=Route, tags=["drop-ins"], responses=DROPIN_REFUSALS)

#: The client waits five seconds longer than its timeout; one of them is for the network.
_GRACE_SECONDS = 4.0
#: Clients find errors by the path of the sandbox's programs.
_FILE = "/lean4/my_project/program.lean"
_CUT = "<output cut>"
#: The kinds of outcome that clients tell apart by the output: Lean's warning makes an admitted program of it.
_COMPLETED = frozenset({OutcomeKind.SUCCESS, OutcomeKind.SORRY})


class SandboxExecution(DropinFields):
    """A request to the sandbox."""

    generated_code: exact.Text
    language: str = "ipython"
    timeout: exact.BodyTimeout = 30.0
    max_output_characters: Annotated[int, Field(strict=True, ge=0)] = 1000
    environment: exact.Word | None = None
    std_input: Ignored = None
    traceback_verbosity: Ignored = None
    session_id: Ignored = None


class Executed(BaseModel):
    """The answer of the sandbox."""

    process_status: Literal["completed", "failed", "timeout", "error"]
    stdout: str
    stderr: str


_ANSWERS: Responses = {
    200: {"model": Executed},
    400: {"model": Executed | Problem},
    502: {"model": Executed},
}


@router.post("/execute", responses=_ANSWERS)
async def execute(body: SandboxExecution, submission: TheSubmission) -> Response:
    """Judge a program as NeMo-Skills' sandbox runs one; its language must be lean4."""
    if body.language != "lean4":
        return _failure(f"this farm runs lean4 only, not {body.language}", 400)
    try:
        (outcome,) = await outcomes(
            submission,
            [body.item(body.generated_code)],
            seconds=body.timeout + _GRACE_SECONDS,
            timeout=body.timeout,
            environment=body.environment,
        )
    except UsageError as error:
        return _failure(str(error), 400)
    except FarmError as error:
        return _failure(str(error), 502)
    return _answer(body, outcome)


def _failure(why: str, status: int) -> Response:
    return Json({"process_status": "error", "stdout": "", "stderr": f"{why}\n"}, status_code=status)


def _answer(body: SandboxExecution, outcome: LeanOutcome) -> Response:
    if outcome.kind is OutcomeKind.UNKNOWN:
        return _failure(outcome.why, 400 if outcome.is_final else 502)
    if outcome.kind is OutcomeKind.TIMEOUT:
        words = f"Execution timed out after {body.timeout:g} seconds\n"
        return Json({"process_status": "timeout", "stdout": "", "stderr": words})
    stdout, is_cut = bounded(outcome.remarks, file=_FILE, most=body.max_output_characters)
    return Json(
        {
            "process_status": "completed" if outcome.kind in _COMPLETED else "failed",
            "stdout": stdout + _CUT * (is_cut or outcome.is_cut),
            "stderr": "",
        }
    )
