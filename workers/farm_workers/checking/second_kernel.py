"""Checking step, second kernel stage: has an environment's own checkers check a module after the seal."""

from __future__ import annotations

from dataclasses import replace
from typing import BinaryIO

from farm import tracing
from farm.judging.audit import Audit
from farm_workers.checking.boxed import Boxed
from farm_workers.checking.seals import Sealed
from farm_workers.environments.lean_environment import KernelChecker
from farm_workers.lean.way import Question


class SecondKernel:
    """Runs checkers of environments; thread-safe. Raises KernelLimit, and BoxFailed without an answer."""

    def __init__(self, boxed: Boxed) -> None:
        self._boxed = boxed

    def confirmed(self, sealed: Sealed, question: Question) -> Audit:
        """Return the audit of a seal, with the checkers' answers if the seal asks for that."""
        if sealed.module is None:
            return sealed.audit
        with tracing.step("farm.second_kernel"):
            second, *further = self._boxed.replays(
                sealed.module, question, question.environment.other_kernels
            )
        audit = sealed.audit
        if not all(each.accepted for each in (second, *further)):
            audit = audit.unchecked
        return replace(audit, second=second, further=tuple(further))

    def alone(self, module: BinaryIO, question: Question, checker: KernelChecker) -> Audit:
        """Return a checker's answer about a module that no seal has read."""
        (replay,) = self._boxed.replays(module.read(), question, [checker])
        return Audit(accepted=True, replay=replay)
