"""Challenge step: compiles the statements of datasets for audits, and caches their modules in memory."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from farm import tracing
from farm.assembly.challenge import Challenge
from farm.characters import encoded
from farm.judging.ending import Ending, ending
from farm.judging.report import Message
from farm.lean_text.positions import line_and_column
from farm_workers.box.supervisor import BoxFailed
from farm_workers.cache import Cache
from farm_workers.lean.compile import LeanRunner
from farm_workers.lean.way import Question, Reply

#: The endings of a program with a hole that say nothing about it.
_OF_MACHINE = (Ending.SILENT, Ending.KILLED, Ending.NO_THREAD)
#: The most compiled statements in the cache, and their most bytes; one takes some 10 KiB, an error far less.
_MOST, _MOST_BYTES = 25_000, 256 << 20


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
                found = self._compiled(question.instead(challenge.text), challenge)
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
            if (refused := refusal(reply, challenge)) is not None:
                raise BadChallenge(refused)
            return None if reply.module is None else reply.module.read()

    def _compiled(self, question: Question, challenge: Challenge) -> bytes | str:
        """Return the statement's module, or Lean's first error if Lean refuses the statement."""
        with self._runner.compiled(question) as reply:
            run = reply.report.run
            if not run.is_undisturbed or run.exit_status not in (0, 1):  # the statement may be sound
                why = run.box_error or run.limit or run.exit_status
                raise BoxFailed(f"the challenge was not compiled: {why}")
            if (refused := refusal(reply, challenge)) is not None:
                return refused
            if reply.module is None:  # Lean reports why it refuses a text; a fork whose image died does not
                said = reply.report.answer.foreign_output.strip().partition("\n")[0][:200] or "nothing"
                raise BoxFailed(f"the challenge left neither a module nor an error; its output: {said}")
            return reply.module.read()


def _of_hole(reply: Reply) -> bytes | str:
    """Return the module of a program with a hole, or the reason for its absence."""
    run, error = reply.report.run, reply.report.answer.first_error
    if run.box_error is not None or ending(reply.report) in _OF_MACHINE:
        why = run.box_error or f"Lean ended with {run.signal or run.exit_status} and without an error"
        raise BoxFailed(f"the program with the hole was not compiled: {why}")
    if error is not None:
        return f"the program with the hole has an error: {error.text.partition(chr(10))[0][:500]}"
    if run.limit is not None or reply.module is None:
        return f"the program with the hole was not compiled: {run.limit or 'it left no module'}"
    return reply.module.read()


def refusal(reply: Reply, challenge: Challenge) -> str | None:
    """Return Lean's first error about a challenge, None if it accepts the challenge."""
    error = reply.report.answer.first_error
    return None if error is None else error.text.partition("\n")[0][:500] + _where(error, challenge)


def _where(error: Message, challenge: Challenge) -> str:
    """Return the place of an error in the line's context or in its expected answer, in words; or ""."""
    ends = line_and_column(challenge.program, challenge.context_end)
    if error.line > 0 and (error.line, error.column) < ends:
        return f" (line {error.line} of the context)"
    below = line_and_column(challenge.program, len(challenge.program))
    return " (in expected_answer)" if (error.line, error.column) >= below else ""
