"""Drop-in step, NeMo-Skills: `POST /execute` as its code sandbox has it, which NeMo-Gym asks too.

The client gives up five seconds after `timeout` and calls that a timeout of the proof. So it is answered
before; what was not judged by then, or not by the farm's fault, is 502, which the client asks again.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

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

#: The client waits five seconds longer than its timeout; one of them is for the way.
_GRACE_SECONDS = 4.0
#: Clients find errors by this folder: it is where the sandbox puts its programs.
_FILE = "/lean4/my_project/program.lean"
_CUT = "<output cut>"
#: By this word, as a whole one, clients tell what is admitted from what is proved.
_SORRY = re.compile(r"\bsorry\b")


class Execution(Stated):
    """What the sandbox is asked to run."""

    generated_code: requests.Text
    language: str = "ipython"
    timeout: requests.BodyTimeout = 30.0
    max_output_characters: Annotated[int, Field(strict=True, ge=0)] = 1000
    environment: requests.Word | None = None
    std_input: Ignored = None
    traceback_verbosity: Ignored = None
    session_id: Ignored = None


class Executed(BaseModel):
    """What the sandbox answers."""

    process_status: Literal["completed", "failed", "timeout", "error"]
    stdout: str
    stderr: str


_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {"model": Executed},
    400: {"model": Executed | Problem},
    502: {"model": Executed},
}


@router.post("/execute", responses=_ANSWERS)
async def execute(asked: Execution, submission: TheSubmission) -> Response:
    """Judge a program as NeMo-Skills' sandbox runs one; its language must be lean4."""
    if asked.language != "lean4":
        return _failure(f"this farm runs lean4 only, not {asked.language}", 400)
    try:
        (reading,) = await readings(
            submission,
            [asked.item(asked.generated_code)],
            seconds=asked.timeout + _GRACE_SECONDS,
            timeout=asked.timeout,
            environment=asked.environment,
        )
    except UsageError as error:
        return _failure(str(error), 400)
    except FarmError as error:
        return _failure(str(error), 502)
    return _answer(asked, reading)


def _failure(why: str, status: int) -> Response:
    return Json({"process_status": "error", "stdout": "", "stderr": f"{why}\n"}, status_code=status)


def _answer(asked: Execution, reading: Reading) -> Response:
    if reading.kind is Kind.UNKNOWN:
        return _failure(reading.why, 400 if reading.is_final else 502)
    if reading.kind is Kind.TIMEOUT:
        words = f"Execution timed out after {asked.timeout:g} seconds\n"
        return Json({"process_status": "timeout", "stdout": "", "stderr": words})
    stdout = _cut(reading, asked.max_output_characters)
    is_told = reading.kind is Kind.SUCCESS or (reading.kind is Kind.SORRY and _SORRY.search(stdout))
    return Json({"process_status": "completed" if is_told else "failed", "stdout": stdout, "stderr": ""})


def _cut(reading: Reading, most: int) -> str:
    text = printed(reading.remarks, file=_FILE)
    return text[:most] + _CUT if reading.is_cut or len(text) > most else text
