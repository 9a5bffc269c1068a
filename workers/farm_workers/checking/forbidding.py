"""Checking step, forbidden names: has a fork look them up, and read the program without running it."""

from __future__ import annotations

from dataclasses import replace

from farm.judging.ending import says_nothing
from farm.judging.report import Execution
from farm_workers.box.supervisor import BoxFailed
from farm_workers.checking.bans import Bans
from farm_workers.checking.challenges import BadTask
from farm_workers.checking.seals import Sealed
from farm_workers.checking.stages import AskedCandidate, Compiled
from farm_workers.images.image import NoImage
from farm_workers.images.protocol import Banned, ReadAsked
from farm_workers.lean.compile import LeanRunner
from farm_workers.lean.way import FORKED

_UNREAD = "Lean's parser did not get through the text before the text could change it"


class LimitReached(Exception):
    """A limit ended the reading of a program; has its run."""

    def __init__(self, run: Execution) -> None:
        super().__init__(str(run.limit))
        self.run = run


class Forbidding:
    """Compares programs with the bans of their checks; thread-safe."""

    def __init__(self, runner: LeanRunner) -> None:
        self._runner = runner

    def read(self, candidate: AskedCandidate) -> AskedCandidate:
        """Return the candidate with the bans of its check, itself if there are none.

        Raises BadTask for a name that is neither a constant nor a tactic, LimitReached, and BoxFailed
        when the farm fails or Lean cannot be forked.
        """
        if not candidate.check.task.forbid:
            return candidate
        bans = self._read(candidate)
        if bans.unknown:
            name, *more = bans.unknown
            others = f" (and {len(more)} more)" if more else ""
            raise BadTask(
                f"The line forbids `{name[:100]}`, which is neither a constant nor a tactic "
                f"where its proof stands{others}."
            )
        if not bans.of_tactics:
            return replace(candidate, bans=bans)
        submitted = _submitted(candidate)
        banned = Banned(tokens=bans.tokens, kinds=bans.kinds, submitted=submitted)
        return replace(candidate, bans=bans, question=replace(candidate.question, banned=banned))

    def _read(self, candidate: AskedCandidate) -> Bans:
        check, question = candidate.check, candidate.question
        asked = ReadAsked(
            forbid=check.task.forbid or (),
            program=check.program,
            start=check.context_end or question.header_end,
            submitted=_submitted(candidate),
            challenge=None if check.challenge is None else check.challenge.program,
        )
        try:
            run, answer = self._runner.read(question, asked)
        except NoImage as error:
            raise BoxFailed(f"forbidden names need a Lean that can be forked: {error}") from error
        if run.limit is not None:
            raise LimitReached(run)
        if answer is not None and run.exit_status == 0:
            try:
                return Bans.read(answer)
            except ValueError as error:
                raise BoxFailed(f"this Lean cannot look up forbidden names: {error}") from error
        if says_nothing(run):
            why = run.box_error or run.lacked or run.signal or run.exit_status
            raise BoxFailed(f"the program could not be read: {why}")
        names = check.task.forbid or ()
        return Bans(constants=names, tokens=names, kinds=names, unknown=(), faults=(_UNREAD,))

    def held(self, compiled: Compiled, sealed: Sealed) -> Sealed:
        """Return a sealed module with the findings of its bans. Raises BoxFailed."""
        bans, reply = compiled.candidate.bans, compiled.reply
        if bans is None:
            return sealed
        if bans.of_tactics and reply.report.way != FORKED:
            raise BoxFailed("forbidden tactics can be listed only where Lean is forked")
        audit = bans.held_against(sealed.audit, reply.uses)
        return replace(sealed, audit=audit, module=sealed.module if audit.accepted else None)


def _submitted(candidate: AskedCandidate) -> tuple[tuple[int, int], ...]:
    check = candidate.check
    return ((0, len(check.program)),) if check.submitted is None else check.submitted
