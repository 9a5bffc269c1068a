"""Check step: a program is given to Lean, and its compiled module to audit and kernel, as the tier asks."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from farm.assurance import Assurance
from farm.challenge import Challenge
from farm.job import Check, Limits
from farm.log import logger
from farm.scanner import sorry_tokens
from farm.tiers import Tier
from farm.verdict import Reason, Report, judge, judge_text, needs_seal
from workers import box
from workers.box.cell import BoxFailed
from workers.box.isolation import Isolation
from workers.doubt import blames_statement, screened
from workers.environments import LeanEnvironment
from workers.forks.server import PerThread
from workers.leans import Leans, not_run, report_of
from workers.strict import BadChallenge, KernelLimit, Strict
from workers.ways.forked import Forked
from workers.ways.way import COLD, RESIDENT, Question

_log = logger(__name__)

#: Axioms by which a proof rests on the compiler.
_NATIVE = ("Lean.ofReduceBool", "Lean.ofReduceNat", "Lean.trustCompiler")


class Checker:
    """Checks programs on this machine; for many threads. A context manager: at its end no process is left.

    The arguments are those of `workers.leans.Leans`; by default twice `concurrency` and one resident
    processes are kept.
    """

    def __init__(
        self,
        isolation: Isolation,
        *,
        home: Path,
        way: str = RESIDENT,
        concurrency: int = 1,
        residents: int | None = None,
        snapshot_mib: int = 8192,
    ) -> None:
        self._leans = Leans(
            isolation,
            home=home,
            way=way,
            concurrency=concurrency,
            residents=2 * concurrency + 1 if residents is None else residents,
            snapshot_mib=snapshot_mib,
        )
        self._servers = PerThread(isolation)
        self._strict = Strict(
            isolation,
            cold=self._leans.cold,
            forked=Forked(self._servers, self._leans.cold, self._leans.snapshot),
            servers=self._servers,
            folder=home / "strict",
        )

    def __enter__(self) -> Checker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End every process; nothing may be checked any more."""
        self._leans.close()
        self._servers.close()

    @property
    def way(self) -> str:
        """How Lean is run unless a check says otherwise."""
        return self._leans.way

    def prewarm(self, environment: LeanEnvironment) -> None:
        """Get the environment's headers ready, in the background, where that helps."""
        self._leans.prewarm(environment)

    def check(
        self,
        check: Check,
        environment: LeanEnvironment,
        *,
        cancelled: Callable[[], bool] = box.never,
        way: str | None = None,
    ) -> Report:
        """Run Lean on a program and report what happened; nothing is raised for what the program does.

        What the policy rejects is not given to Lean. Without an assurance Lean's bare word is reported.
        `cancelled` is asked every now and then; when it says yes, the check ends and reports a box error.
        """
        tier = check.assurance.tier if check.assurance else Tier.LEAN
        impossible = judge_text(check.program)
        if impossible is not None:
            return replace(not_run(), tier=tier, text_error=impossible.detail)
        hits, refused = screened(check, environment)
        if refused is not None:
            return replace(not_run(), tier=tier, hits=hits, refused=refused)
        question = Question.of(check.program, environment, check.limits, cancelled)
        if tier == Tier.LEAN or check.assurance is None:
            report = replace(self._leans.ask(question, way), tier=tier)
        else:
            report = self._sealed(check, check.assurance, question)
        return replace(self._with_blame(check, question, report), hits=hits)

    def _with_blame(self, check: Check, question: Question, report: Report) -> Report:
        """Return the report of what is not proved; that the statement is to blame is a problem of its own."""
        challenge, environment = check.challenge, question.environment
        if judge(report).reason is not Reason.ERROR or challenge is None or not environment.audited:
            return report
        if not blames_statement(check, challenge, report):
            return report
        try:
            self._strict.require(challenge, environment, _asker(question))
        except BadChallenge as error:
            return replace(report, challenge_error=str(error))
        except (BoxFailed, OSError) as error:
            _log.warning("It was not found out whether a statement compiles: %s", error)
        return report

    def _sealed(self, check: Check, assurance: Assurance, question: Question) -> Report:
        """Have a fresh Lean compile the program, and its module audited when nothing speaks against it."""
        report = replace(not_run(), tier=assurance.tier)
        try:
            with self._strict.compiled(question) as (reply, module):
                report = replace(self._leans.report(question, reply), tier=assurance.tier)
                if needs_seal(report, statement_has_sorry=_has_sorry(check.challenge)):
                    report = self._with_audit(report, module, check.challenge, assurance, question)
        except BadChallenge as error:
            report = replace(report, challenge_error=str(error))
        except (BoxFailed, OSError) as error:
            report = replace(report_of(self._leans.failed(error, COLD)), tier=assurance.tier)
        return report

    def _with_audit(
        self,
        report: Report,
        module: BinaryIO | None,
        challenge: Challenge | None,
        assurance: Assurance,
        question: Question,
    ) -> Report:
        """Return the report with what the audit finds and, on the tier kernel, what the kernel says."""
        environment, axioms = question.environment, _axioms(assurance)
        audit = self._strict.audit(module, challenge, axioms, environment, _asker(question))
        audit |= {"module_sha256": _sha256(module), "sealed_sha256": None, "replay": None}
        if assurance.tier == Tier.KERNEL and audit["accepted"]:
            try:
                audit["replay"] = self._strict.replay(module, environment, question.limits)
            except KernelLimit as limit:
                return replace(report, audit=audit, kernel_limit=str(limit))
        return replace(report, audit=audit)


def _has_sorry(challenge: Challenge | None) -> bool:
    """Whether a challenge holds another sorry than the one in the place of the proof."""
    return challenge is not None and len(sorry_tokens(challenge.program)) > 1


def _axioms(assurance: Assurance) -> Sequence[str]:
    return (*assurance.axioms, *_NATIVE) if assurance.native else assurance.axioms


def _sha256(module: BinaryIO | None) -> str | None:
    if module is None:
        return None
    module.seek(0)
    return hashlib.sha256(module.read()).hexdigest()


def _asker(question: Question) -> Callable[[str, Limits], Question]:
    """Return what asks the same Lean about another program."""
    return lambda text, limits: Question.of(text, question.environment, limits, question.cancelled)
