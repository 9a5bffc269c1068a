"""Challenge step: compiles the statements of datasets for audits, and caches their modules in memory."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from farm import tracing
from farm.assembly.challenge import Challenge
from farm.characters import encoded
from farm.judging import causes
from farm.judging.ending import Ending, ending
from farm.judging.messages import errors
from farm.judging.places import at_line
from farm.judging.report import Message, Report
from farm.lean_text.header import header_end
from farm.lean_text.positions import line_and_column
from farm_workers.audit.declarations import Module
from farm_workers.audit.kernel import SORRY
from farm_workers.audit.olean import Olean
from farm_workers.audit.rests import with_sorry
from farm_workers.audit.terms import Reading, Terms, mentions
from farm_workers.box.supervisor import BoxFailed
from farm_workers.cache import Cache
from farm_workers.lean.compile import LeanRunner
from farm_workers.lean.way import Question, Reply

#: The endings of a program with a hole that say nothing about it.
_OF_MACHINE = (Ending.SILENT, Ending.KILLED, Ending.LACKING, Ending.NO_THREAD)
#: The most compiled statements in the cache, and their most bytes; one takes some 10 KiB, an error far less.
_MOST, _MOST_BYTES = 25_000, 256 << 20
_REMEDY = "leave `warningAsError` out, which makes errors of the text's own sorries"
#: Turns Lean's warning about sorries off; on the line of the last import, since places are compared by lines.
_NO_WARNING = " set_option warn.sorry false"


class BadChallenge(Exception):
    """The statement cannot be compiled; the message says why in Lean's words."""


class BadTask(BadChallenge):
    """The statement lacks what the task asks about; the message is a sentence."""


class Challenges:
    """Compiles statements in the way that programs are compiled; thread-safe.

    The modules never leave the memory of this process, so no check can change them. The cache drops the least
    recently used modules, and a later request compiles them again.
    """

    def __init__(self, runner: LeanRunner) -> None:
        self._runner = runner
        self._kept: Cache[tuple[str, str], bytes | str] = Cache(most=_MOST, most_bytes=_MOST_BYTES, size=len)

    def compiled(self, challenge: Challenge, question: Question) -> bytes:
        """Return the compiled module of a statement in the environment of a question.

        Raises BadChallenge when Lean refuses the statement, and BoxFailed when the farm fails.
        """
        key = question.environment.digest, challenge.sha256
        found = self._kept.get(key)
        if found is None:
            with tracing.step("farm.challenge"):
                found = self._compiled(question, challenge, challenge.text)
            self._kept.put(key, found)
        if isinstance(found, str):
            raise BadChallenge(found)
        return found

    def of_hole(self, program: str, question: Question) -> bytes:
        """Return the compiled module of a program with a hole, within the limits of a question.

        Raises BadChallenge when Lean refuses it or exceeds a limit, and BoxFailed when the farm fails.
        """
        digest = hashlib.sha256(encoded(program)).hexdigest()
        key = question.environment.digest, f"hole {question.limits} {digest}"
        found = self._kept.get(key)
        if found is None:
            asked = replace(question.instead(program), limits=question.limits, moved=(0, 0))
            with tracing.step("farm.hole"), self._runner.compiled(asked) as reply:
                found = _of_hole(reply)
            if isinstance(found, str):
                raise BadChallenge(found)
            self._kept.put(key, found)
        return found if isinstance(found, bytes) else b""

    def read(self, challenge: Challenge, question: Question) -> bytes | None:
        """Return the module of a challenge with text that a submission had a part in; it is not cached.

        None if Lean exceeds a limit. Raises BadChallenge if Lean refuses the text, and BoxFailed when the
        farm fails.
        """
        asked = question.instead(challenge.text)
        if not question.shares_context:  # the limits have the time to read the context, if there is one
            asked = replace(asked, limits=question.limits)
        with tracing.step("farm.answer"), self._runner.compiled(asked) as reply:
            run = reply.report.run
            if run.box_error is not None:
                raise BoxFailed(f"the text of an answer was not read: {run.box_error}")
            _require_nothing_lacked(reply)
            if (refused := refusal(reply, challenge)) is not None:
                raise BadChallenge(refused)
            return None if reply.module is None else reply.module.read()

    def _compiled(self, question: Question, challenge: Challenge, text: str) -> bytes | str:
        """Return the statement's module, or Lean's first error if Lean refuses the statement.

        Where the dataset makes errors of warnings, the farm's own `sorry` must not be one: the text is
        compiled again without that warning. A sorry of the dataset stays an error, for it is one in every
        submission.
        """
        with self._runner.compiled(question.instead(text)) as reply:
            run = reply.report.run
            if not run.is_undisturbed or run.exit_status not in (0, 1):  # the statement may be sound
                why = run.box_error or run.limit or run.exit_status
                raise BoxFailed(f"the challenge was not compiled: {why}")
            _require_nothing_lacked(reply)
            refused, is_only_sorry = refusal(reply, challenge), makes_errors_of_sorries(reply.report)
            if refused is None and reply.module is not None:
                return reply.module.read()
            if refused is None:  # Lean reports why it refuses a text; a fork whose image died does not
                said = reply.report.answer.foreign_output.strip().partition("\n")[0][:200] or "nothing"
                raise BoxFailed(f"the challenge left neither a module nor an error; its output: {said}")
        quiet = without_warning(text)
        if not is_only_sorry or quiet == text:
            return refused
        again = self._compiled(question, challenge, quiet)
        most = 0 if challenge.negates else challenge.admits
        is_own = isinstance(again, bytes) and _is_open_alone(again, most)
        return again if is_own else f"{refused}; {_REMEDY}"


def _of_hole(reply: Reply) -> bytes | str:
    """Return the module of a program with a hole, or the reason for its absence."""
    run, error = reply.report.run, reply.report.answer.first_error
    if run.box_error is not None or ending(reply.report) in _OF_MACHINE:
        why = (
            run.box_error
            or run.lacked
            or f"Lean ended with {run.signal or run.exit_status} and without an error"
        )
        raise BoxFailed(f"the program with the hole was not compiled: {why}")
    if error is not None:
        found = errors(reply.report) or (error,)
        told = causes.named(found)
        words = f"{told.text.partition(chr(10))[0][:500]}{causes.counted(found)}"
        return f"the program with the hole has an error{at_line(told.line, told.column)}: {words}"
    if run.limit is not None or reply.module is None:
        return f"the program with the hole was not compiled: {run.limit or 'it left no module'}"
    return reply.module.read()


def makes_errors_of_sorries(report: Report) -> bool:
    """Return whether all of Lean's errors are warnings about sorries that the text makes errors of."""
    return report.answer.first_error is not None and not errors(report)


def _is_open_alone(module: bytes, count: int) -> bool:
    """Return whether a module has sorries in the values of some constants at most, and nowhere else."""
    found = Module(Olean(module))
    constants = list(filter(None, map(found.constant, with_sorry(found, found.names))))
    reading = Reading(found.olean, Terms())
    return len(constants) <= count and not any(mentions(reading, [each.type], SORRY) for each in constants)


def without_warning(program: str) -> str:
    """Return a program with Lean's warning about sorries turned off below its header, which keeps all lines.

    A program without a header, and one that has the option there already, stays as it is.
    """
    end = header_end(program)
    if not end or program.startswith(_NO_WARNING, end):
        return program
    return program[:end] + _NO_WARNING + program[end:]


def _require_nothing_lacked(reply: Reply) -> None:
    """Raise BoxFailed for a text that failed while the machine may have refused Lean something."""
    if ending(reply.report) is Ending.LACKING:
        raise BoxFailed(f"a text of the dataset was not compiled: {reply.report.run.lacked}")


def refusal(reply: Reply, challenge: Challenge) -> str | None:
    """Return the error about a challenge that may cause the others, None if Lean accepts the challenge."""
    report = reply.report
    if report.answer.first_error is None:
        return None
    found = errors(report) or (report.answer.first_error,)
    told = causes.named(found)
    said = f"{told.text.partition(chr(10))[0][:500]}{_where(told, challenge)}{causes.counted(found)}"
    return f"{said}. {report.remedy}" if report.remedy else said


def _where(error: Message, challenge: Challenge) -> str:
    """Return the place of an error in the line's fields, in words; "" without a place."""
    if error.line == 0:
        return ""
    ends = line_and_column(challenge.program, challenge.context_end)
    if (error.line, error.column) < ends:
        return f" (line {error.line} of the context)"
    below = line_and_column(challenge.program, len(challenge.program))
    if (error.line, error.column) >= below:
        return " (in expected_answer)"
    above = "context" if challenge.context_end else "header"
    return f" (line {error.line} of {above} and formal_statement together)"
