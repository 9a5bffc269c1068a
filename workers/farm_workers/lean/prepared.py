"""Prepared way: a stock Lean that has imported the header before the check came, for one check each.

Such a process serves an editor (``lean --worker``): it reports all messages, but writes no module. So it
answers where Lean refuses a program, and a fresh Lean decides about all others.
"""

from __future__ import annotations

import re
from dataclasses import replace

from farm.judging.ending import Ending, ending
from farm.judging.report import Execution, Report
from farm_workers.box import once as box
from farm_workers.box.isolation import Isolation
from farm_workers.environments.lean_environment import LeanEnvironment
from farm_workers.lean.lsp import Answer
from farm_workers.lean.messages import completes, with_end_mark
from farm_workers.lean.pool import Pool
from farm_workers.lean.waiting import WaitingLean
from farm_workers.lean.way import FIRST_LOAD, PREPARED, Doubtful, Question, Reply

#: A check that takes longer than its import would have is left to a fresh Lean, which then costs little more;
#: this many seconds are always given.
_LEAST_SECONDS = 1.0
#: The command `lean` stops at its hundredth error, or at another number that is set.
_MOST_ERRORS, _SETS_MOST_ERRORS = 100, "maxErrors"
#: Options that set something; Lean as an editor's process may take others differently, such as ``-M``.
_OPTION = re.compile(r"-D[^=]+=.*")


class Prepared:
    """Gives each program to a Lean that waits for it, and takes no other answer than errors; thread-safe."""

    def __init__(self, isolation: Isolation, pool: Pool) -> None:
        self._isolation, self._pool = isolation, pool

    def compile(self, question: Question) -> Reply:
        """Return Lean's errors, if it refuses the program.

        Raises Doubtful when no process is ready, when Lean accepts the program, or for anything odd. The
        process is not used again, and another one is prepared.
        """
        _require_fitting(question)
        with self._pool.taken(question.environment, question.header) as lean:
            return self._asked(lean, question)

    def _asked(self, lean: WaitingLean, question: Question) -> Reply:
        seconds = max(_LEAST_SECONDS, lean.import_seconds)
        limits = replace(
            question.limits,
            wall_seconds=min(question.limits.wall_seconds, seconds),
            cpu_seconds=min(question.limits.cpu_seconds, seconds),
        )
        text = with_end_mark(question.program, question.mark)
        run, answer = lean.check(text, limits, question.cancelled)
        if run.box_error == box.CANCELLED:
            return Reply(report=Report(run=run, way=PREPARED))
        return _refusal(question, text, run, answer)


def _require_fitting(question: Question) -> None:
    """Raise Doubtful for a question that is not for a prepared Lean.

    The farm's own programs are to be accepted, and only a fresh Lean writes their modules.
    """
    if question.limits == FIRST_LOAD:
        raise Doubtful("a program of the farm's own")
    if not is_possible(question.environment) or _SETS_MOST_ERRORS in question.program:
        raise Doubtful("options that a prepared Lean does not take as the command does")


def is_possible(environment: LeanEnvironment) -> bool:
    """Return whether a prepared Lean takes the environment's options as the command `lean` does."""
    return all(_OPTION.fullmatch(word) and _SETS_MOST_ERRORS not in word for word in environment.lean[1:])


def _refusal(question: Question, text: str, run: Execution, answer: Answer) -> Reply:
    """Return the reply of a Lean that has read the program to its end and reports errors.

    The program could print a forged answer. That gains it nothing: every other reply, and so
    every one that is better than a refusal, is Doubtful.
    """
    if run.limit or run.box_error or run.output_cut or run.stderr or not answer.is_complete:
        raise Doubtful(f"a prepared Lean did not answer: {run.box_error or run.limit or 'it ended'}")
    stdout = answer.as_printed(text)
    if not completes(stdout, program=question.program, mark=question.mark):
        raise Doubtful("the end mark is a part of the program")
    run = replace(run, exit_status=1, signal=None, stdout=stdout, output_bytes=len(stdout))
    reply = Reply.of(question, run, PREPARED, lambda: None)
    errors = [each for each in reply.report.answer.messages if each.severity == "error"]
    if ending(reply.report) is not Ending.REFUSED or len(errors) >= _MOST_ERRORS:
        raise Doubtful("only a fresh Lean can accept a program, or stop at a limit")
    return reply
