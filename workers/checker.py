"""Check step: gives one program to Lean in a box and returns the facts."""

from __future__ import annotations

import re
import secrets
import tempfile
from collections.abc import Callable
from pathlib import Path

from farm.job import Limits
from farm.scanner import sorry_tokens
from farm.verdict import Report, judge_text
from workers import box
from workers.environments import LeanEnvironment
from workers.lean import NO_ANSWER, Answer, cold_command, environment_variables, parse, with_end_mark


def check(
    program_text: str,
    environment: LeanEnvironment,
    limits: Limits,
    cancelled: Callable[[], bool] = box.never,
) -> Report:
    """Run Lean on a program and report what happened; nothing is raised for what the program does.

    `cancelled` is asked every now and then; when it says yes, the check ends and reports a box error. Can be
    called from many threads at once.
    """
    refused = judge_text(program_text)
    run, answer = (
        _run(program_text, environment, limits, cancelled) if refused is None else (box.NOT_RUN, NO_ANSWER)
    )
    return Report(
        exit_status=run.exit_status,
        signal=run.signal,
        wall_seconds=run.wall_seconds,
        cpu_seconds=run.cpu_seconds,
        peak_memory_kib=run.peak_memory_kib,
        limit=run.limit,
        output_bytes=run.output_bytes,
        output_cut=run.output_cut,
        messages=answer.messages,
        reached_end=answer.reached_end,
        foreign_output=answer.foreign_output,
        sorry_tokens=sorry_tokens(program_text),
        box_error=run.box_error,
        isolation=run.isolation,
        environment_error=_environment_error(answer, environment, limits),
        text_error=None if refused is None else refused.detail,
    )


def _run(
    program_text: str, environment: LeanEnvironment, limits: Limits, cancelled: Callable[[], bool] = box.never
) -> tuple[box.Run, Answer]:
    mark = secrets.token_hex(16)
    run = box.run(
        cold_command(environment),
        stdin=with_end_mark(program_text, mark).encode(),
        limits=limits,
        environment=environment_variables(environment),
        folder=Path(tempfile.gettempdir()),
        cancelled=cancelled,
    )
    return run, parse(run.stdout, run.stderr, mark=mark)


#: How Lean begins to say that a module cannot be imported (``Lean.findOLean``, ``Lean.readModuleData``).
_IMPORT_FAILED = re.compile(
    r"unknown (module prefix|package) '|object file '.*' of module .* does not exist|failed to read file '",
)


def _environment_error(answer: Answer, environment: LeanEnvironment, limits: Limits) -> str | None:
    """Say what is broken when imports fail that the environment itself promises.

    A program may ask for a module that never was; then its own header is to blame. So the text of the error
    only asks the question: the environment's header, alone, answers it.
    """
    errors = [m for m in answer.messages if m.severity == "error"]
    if not errors or not _IMPORT_FAILED.match(errors[0].text):
        return None
    _, probed = _run(environment.header, environment, limits)
    found = [m for m in probed.messages if m.severity == "error"]
    return found[0].text.partition("\n")[0] if found else None
