"""Drop-in step, SandboxFusion: `POST /run_code` for the language lean.

Its clients take the status for the answer and look for no warning. So what is admitted is Failed here, with
Lean's warning on stdout. What was not judged in time is 504, which they ask again.
"""

from __future__ import annotations

from typing import Any, Literal

from fastapi import APIRouter, Response
from pydantic import BaseModel, Field

from farm.errors import FarmError, UsageError
from farm.service import requests
from farm.service.dependencies import TheSubmission
from farm.service.dropins.checking import Ignored, Stated, readings
from farm.service.dropins.lean_outcome import Kind, Reading, printed
from farm.service.json_body import Json, Route
from farm.service.refusals import DROPIN_REFUSALS, Problem

router = APIRouter(route_class=Route, tags=["drop-ins"], responses=DROPIN_REFUSALS)

#: Clients wait ten seconds longer than both timeouts together.
_GRACE_SECONDS = 8.0
_FILE = "main.lean"


class Run(Stated):
    """What is to be run; nothing is compiled apart, so `run_timeout` is the check's."""

    code: requests.Text
    language: str
    compile_timeout: requests.BodyTimeout = 10.0
    run_timeout: requests.BodyTimeout = 10.0
    files: dict[str, Any] = Field(default_factory=dict)
    environment: requests.Word | None = None
    stdin: Ignored = None
    fetch_files: Ignored = None
    memory_limit_MB: Ignored = None  # noqa: N815 - the clients' name


class Ended(BaseModel):
    """How a program ended."""

    status: Literal["Finished", "TimeLimitExceeded"]
    execution_time: float
    return_code: int | None
    stdout: str
    stderr: str


class Ran(BaseModel):
    """What SandboxFusion answers."""

    status: Literal["Success", "Failed", "SandboxError"]
    message: str
    compile_result: None
    run_result: Ended | None
    executor_pod_name: None
    files: dict[str, Any]


_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {"model": Ran},
    400: {"model": Ran | Problem},
    504: {"model": Ran},
}


@router.post("/run_code", responses=_ANSWERS)
async def run_code(asked: Run, submission: TheSubmission) -> Response:
    """Judge a program as SandboxFusion runs one; its language must be lean."""
    if asked.language != "lean":
        return _failure(f"this farm runs lean only, not {asked.language}", 400)
    if asked.files:
        return _failure("this farm gives a program no files beside it; send files empty", 400)
    try:
        (reading,) = await readings(
            submission,
            [asked.item(asked.code)],
            seconds=asked.compile_timeout + asked.run_timeout + _GRACE_SECONDS,
            timeout=asked.run_timeout,
            environment=asked.environment,
        )
    except UsageError as error:
        return _failure(str(error), 400)
    except FarmError as error:
        return _failure(str(error), 504)
    return _answer(reading)


def _failure(why: str, status: int) -> Response:
    return Json(_body("SandboxError", None, message=why), status_code=status)


def _answer(reading: Reading) -> Response:
    if reading.kind is Kind.UNKNOWN:
        return _failure(reading.why, 504 if reading.is_pending else 200)
    has_ended = reading.kind is not Kind.TIMEOUT
    is_good = reading.kind is Kind.SUCCESS
    result = {
        "status": "Finished" if has_ended else "TimeLimitExceeded",
        "execution_time": reading.seconds,
        "return_code": int(not is_good) if has_ended else None,
        "stdout": printed(reading.remarks, file=_FILE),
        "stderr": "",
    }
    return Json(_body("Success" if is_good else "Failed", result))


def _body(status: str, result: dict[str, Any] | None, *, message: str = "") -> dict[str, Any]:
    return {
        "status": status,
        "message": message,
        "compile_result": None,
        "run_result": result,
        "executor_pod_name": None,
        "files": {},
    }
