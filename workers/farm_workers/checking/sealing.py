"""Checking step, seal stage: has the module of a compiled candidate audited, in a fork or in boxes."""

from __future__ import annotations

from dataclasses import replace
from typing import BinaryIO

from farm import tracing
from farm.judging.audit import MALFORMED, Audit, against
from farm.lean_text.positions import line_and_column
from farm.log import logger
from farm.task import Fills
from farm_workers.box.launch import FILE_BYTES
from farm_workers.box.refused import lacks_memory
from farm_workers.box.supervisor import BoxFailed
from farm_workers.checking.answers import asked
from farm_workers.checking.boxed import Boxed
from farm_workers.checking.challenges import Challenges
from farm_workers.checking.contexts import TIMES
from farm_workers.checking.dependencies import Dependencies
from farm_workers.checking.seals import KernelLimit, Sealable, Sealed, Seals
from farm_workers.checking.stages import AskedCandidate, Compiled
from farm_workers.images.image import ImageDied, NoImage
from farm_workers.lean.way import FORKED, NotShared, Unfit

_log = logger(__name__)

#: The audit of a program whose Lean ended well without a module. Lean writes one before it ends well, so the
#: program removed the module, or ended the process in Lean's place.
_NO_MODULE = against(
    MALFORMED,
    "The compiled module is not what Lean writes: the check left no plain file of at most "
    f"{FILE_BYTES >> 20} MiB.",
)

#: The audit of a program without a statement whose declarations a fresh Lean did not list. The program may
#: declare an example, which the module does not hold.
_NOT_LISTED = against("forgotten", "Lean left no list of what the program declares.")

#: Lean's command that drops the errors of another one, and the audit of a program without a statement that a
#: fresh Lean compiled and whose text has this token anywhere: the list lacks a declaration that failed. Only
#: a program with syntax of its own can write the command otherwise, and such a program is refused as well.
_DROPS_ERRORS = "#guard_msgs"
_MAY_DROP = against(
    "forgotten",
    f"The program mentions {_DROPS_ERRORS}, which can drop the error of a declaration, and this way of "
    "running Lean does not tell whether it does: remove it, or give the program a statement.",
)


#: The word of an audit that could not get the memory that it needs.
_LACKED_MEMORY = "kernel_memory"


def _hole(fills: Fills, program: str) -> tuple[int, int]:
    return line_and_column(fills.open(program), fills.start)


def require_memory(audit: Audit, memory_mib: int) -> None:
    """Raise BoxFailed if an audit lacked memory that this machine refuses below the limit of its check."""
    if any(each.word == _LACKED_MEMORY for each in audit.findings) and (why := lacks_memory(memory_mib)):
        raise BoxFailed(f"the module was not audited: {why}")


class Sealing:
    """Has modules audited by processes that never ran the program; thread-safe."""

    def __init__(
        self, seals: Seals, boxed: Boxed, challenges: Challenges, dependencies: Dependencies
    ) -> None:
        self._seals, self._boxed, self._challenges = seals, boxed, challenges
        self._dependencies = dependencies

    def sealed(self, compiled: Compiled, *, states: bool = False) -> Sealed:
        """Return the audit of a candidate's module, with the kernel's answer on the tier kernel.

        With `states` the program is the challenge itself, and the audit has the facts of its statement.

        Raises BadChallenge for a statement that Lean refuses, KernelLimit if audit or kernel exceed a limit,
        BoxFailed when the farm fails, and NotShared if a shared context has no image to seal below it.
        """
        reply, question = compiled.reply, compiled.candidate.question
        if reply.module is None:
            return Sealed(audit=_NO_MODULE)
        if question.keeps_examples and reply.report.way != FORKED:
            if reply.declared is None:
                return Sealed(audit=_NOT_LISTED)
            if _DROPS_ERRORS in question.program:
                return Sealed(audit=_MAY_DROP)
        sealable = self._sealable(compiled, reply.module, states=states)
        with tracing.step("farm.seal"):
            sealed = self._forked_or_boxed(sealable)
        require_memory(sealed.audit, question.limits.memory_mib)
        candidate = compiled.candidate
        if candidate.keep is not None and sealed.module is not None:
            candidate.keep(sealed.module)
        return sealed if candidate.needs_second_kernel else replace(sealed, module=None)

    def _sealable(self, compiled: Compiled, module: BinaryIO, *, states: bool) -> Sealable:
        """Return the module to seal, with its compiled statement; raises BadChallenge and BoxFailed."""
        candidate = compiled.candidate
        check, question, shared = candidate.check, candidate.question, candidate.shared
        challenge = None if states else self._statement(candidate)
        stated = check.program if check.challenge is None else check.challenge.program
        assurance, answers = candidate.assurance, asked(check.task, challenge, check.challenge)
        if check.challenge is not None and check.challenge.negates:  # the statement stands above, admitted
            assurance, answers = replace(assurance, requires_all_parts=False), None
        return Sealable(
            module=module.fileno(),
            challenge=challenge,
            stated=stated,
            assurance=assurance,
            question=question,
            context=b"" if shared is None else shared.context,
            declared=compiled.reply.declared,
            returns_module=candidate.needs_whole_module,
            task=check.task,
            answers=answers,
            states=states,
            parent=self._parent(candidate),
            hole=None if check.task.fills is None else _hole(check.task.fills, check.program),
            forbidden=() if candidate.bans is None else candidate.bans.constants,
            negates=0 if check.challenge is None else check.challenge.negates,
            table=self._dependencies.of(question.environment),
        )

    def _parent(self, candidate: AskedCandidate) -> bytes | None:
        """Return the compiled program with the hole that an answer fills, None for another candidate.

        Raises BadChallenge if Lean refuses it, and BoxFailed.
        """
        fills = candidate.check.task.fills
        if fills is None:
            return None
        return self._challenges.of_hole(fills.open(candidate.check.program), candidate.question)

    def _statement(self, candidate: AskedCandidate) -> bytes | None:
        """Return the compiled statement of a candidate, None if the line has none."""
        if candidate.shared is not None:
            return candidate.shared.challenge
        challenge = candidate.check.challenge
        return None if challenge is None else self._challenges.compiled(challenge, candidate.question)

    def _forked_or_boxed(self, sealable: Sealable) -> Sealed:
        """Seal a module in a fork; without an image, audit it in boxes unless its context is shared."""
        try:
            return self._in_time(sealable)
        except NoImage as error:
            if sealable.context:
                raise (NotShared if isinstance(error, ImageDied) else Unfit)(str(error)) from error
            _log.debug("Sealing a module in boxes: %s", error)
            return Sealed(audit=self._boxed.seal(sealable))

    def _in_time(self, sealable: Sealable) -> Sealed:
        """Seal a module; if the time limit ends the seal, add the context's sealing time and retry once.

        The limits already contain the time to compile the context. The time to seal it is measured by a seal
        of the challenge alone, which is worth its cost only after a time limit.
        """
        try:
            return self._seals.seal(sealable)
        except KernelLimit as limit:
            if not sealable.question.context_end or sealable.context or not limit.is_of_time:
                raise
            alone = self._seals.of_challenge(sealable)
            question = sealable.question.allowing(alone, TIMES)
            return self._seals.seal(replace(sealable, question=question))
