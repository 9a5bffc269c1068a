"""The drop-in for clients of SandboxFusion: `POST /run_code` for the language lean.

These clients read the status and no warning. So an admitted program is Failed here, with Lean's warning on
stdout. A program that is not judged in time is 504, which they retry.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from fastapi import APIRouter, Response
from pydantic import BaseModel, Field

from farm.errors import FarmError, UsageError
from farm.service import exact
from farm.service.dependencies import TheSubmission
from farm.service.dropins.checking import DropinFields, Ignored, outcomes
from farm.service.dropins.lean_outcome import LeanOutcome, OutcomeKind, printed
from farm.service.json_body import Json, Route
from farm.service.refusals import DROPIN_REFUSALS, Problem, Responses

router = APIRouter(route_class=Route, tags=["drop-ins"], responses=DROPIN_REFUSALS)

#: Clients wait ten seconds longer than both timeouts together.
_GRACE_SECONDS = 8.0
_FILE = "main.lean"


class SandboxRun(DropinFields):
    """A program to run; nothing is compiled separately, so `run_timeout` is the check's timeout."""

    code: exact.Text
    language: str
    compile_timeout: exact.BodyTimeout = 10.0
    run_timeout: exact.BodyTimeout = 10.0
    files: dict[str, object] = Field(default_factory=dict)
    environment: exact.Word | None = None
    stdin: Ignored = None
    fetch_files: Ignored = None
    memory_limit_MB: Ignored = None  # noqa: N815 - the clients' name


class Ended(BaseModel):
    """The end of a program."""

    status: Literal["Finished", "TimeLimitExceeded"]
    execution_time: float
    return_code: int | None
    stdout: str
    stderr: str


class Ran(BaseModel):
    """The answer of SandboxFusion."""

    status: Literal["Success", "Failed", "SandboxError"]
    message: str
    compile_result: None
    run_result: Ended | None
    executor_pod_name: None
    files: dict[str, object]


_ANSWERS: Responses = {
    200: {"model": Ran},
    400: {"model": Ran | Problem},
    504: {"model": Ran},
}


@router.post("/run_code", responses=_ANSWERS)
async def run_code(body: SandboxRun, submission: TheSubmission) -> Response:
    """Judge a program as SandboxFusion runs one; its language must be lean."""
    if body.language != "lean":
        return _failure(f"this farm runs lean only, not {body.language}", 400)
    if body.files:
        return _failure("this farm gives a program no files beside it; send files empty", 400)
    try:
        (outcome,) = await outcomes(
            submission,
            [body.item(body.code)],
            seconds=body.compile_timeout + body.run_timeout + _GRACE_SECONDS,
            timeout=body.run_timeout,
            environment=body.environment,
        )
    except UsageError as error:
        return _failure(str(error), 400)
    except FarmError as error:
        return _failure(str(error), 504)
    return _answer(outcome)


def _failure(why: str, status: int) -> Response:
    return Json(_body("SandboxError", None, message=why), status_code=status)


def _answer(outcome: LeanOutcome) -> Response:
    if outcome.kind is OutcomeKind.UNKNOWN:
        return _failure(outcome.why, 504 if outcome.is_pending else 200)
    has_ended = outcome.kind is not OutcomeKind.TIMEOUT
    is_good = outcome.kind is OutcomeKind.SUCCESS
    result = {
        "status": "Finished" if has_ended else "TimeLimitExceeded",
        "execution_time": outcome.seconds,
        "return_code": int(not is_good) if has_ended else None,
        "stdout": printed(outcome.remarks, file=_FILE),
        "stderr": "",
    }
    return Json(_body("Success" if is_good else "Failed", result))


def _body(status: str, result: Mapping[str, object] | None, *, message: str = "") -> dict[str, object]:
    return {
        "status": status,
        "message": message,
        "compile_result": None,
        "run_result": result,
        "executor_pod_name": None,
        "files": {},
    }
