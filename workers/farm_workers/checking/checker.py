"""Checking step: takes the programs of a check through the stages, and returns the facts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from farm import tracing
from farm.datasets.theorems import Extract, SourceFile
from farm.judging.audit import Audit
from farm.judging.job import Check
from farm.judging.report import Report
from farm.judging.tiers import Tier
from farm.limits import Limits
from farm.manifest.entry import Entry
from farm.task import Kind
from farm_workers.box import once as box
from farm_workers.box.isolation import Isolation
from farm_workers.box.supervisor import BoxFailed
from farm_workers.checking import unprovable
from farm_workers.checking.answers import AnswerTexts, ExpectedAnswers
from farm_workers.checking.blame import Blame
from farm_workers.checking.boxed import Boxed
from farm_workers.checking.challenges import BadChallenge, Challenges
from farm_workers.checking.compiling import Compiling
from farm_workers.checking.contexts import Contexts
from farm_workers.checking.dependencies import Dependencies
from farm_workers.checking.filling import BreaksOut, Filling
from farm_workers.checking.forbidding import Forbidding, LimitReached
from farm_workers.checking.negation import judged_as_both
from farm_workers.checking.policy import screened
from farm_workers.checking.sealing import Sealing
from farm_workers.checking.seals import Sealed, Seals
from farm_workers.checking.sharing import Sharing
from farm_workers.checking.stages import AskedCandidate, Compiled, JudgedCandidate, failed
from farm_workers.checking.statements import Statements
from farm_workers.checking.trying import Trying
from farm_workers.environments.lean_environment import KernelChecker, LeanEnvironment
from farm_workers.images.image import NoImage
from farm_workers.images.protocol import ExtractAsked, OutlineAsked
from farm_workers.lean.compile import LeanRunner
from farm_workers.lean.extracted import NoExtract, read_extract
from farm_workers.lean.outlined import NoOutline, Outline, read_outline
from farm_workers.lean.way import FIRST_LOAD, FORKED, Question
from farm_workers.sessions.sessions import Sessions

#: A context needs three images: the header's, and two forks of it, one to compile proofs and one to seal.
_IMAGES_OF_A_CONTEXT = 3


class Checker:
    """Checks programs on this machine; thread-safe. As a context manager it ends all its processes at exit.

    `way` is the default way to run Lean. The arguments are those of `farm_workers.lean.compile.LeanRunner`;
    the default number of images is `concurrency` and two more. With `share_contexts` Lean reads a context
    once for all checks that have it. `sessions` are proofs in which tactics are tried step by step.
    """

    def __init__(
        self,
        isolation: Isolation,
        *,
        home: Path,
        way: str = FORKED,
        concurrency: int = 1,
        most_images: int | None = None,
        images_mib: int = 8192,
        share_contexts: bool = True,
    ) -> None:
        self.way, self.isolation = way, isolation.name
        most = concurrency + 2 if most_images is None else most_images
        self._runner = LeanRunner(isolation, way=way, most_images=most, images_mib=images_mib)
        self.sessions = Sessions(self._runner.images, most_mib=images_mib, refusal=self._header_refusal)
        challenges, boxed = Challenges(self._runner), Boxed(isolation)
        may_share = share_contexts and most >= _IMAGES_OF_A_CONTEXT
        contexts = Contexts(self._runner, challenges, may_share=may_share)
        self._expected, self._texts = ExpectedAnswers(challenges), AnswerTexts(challenges)
        self._trying = Trying(self._program)
        self._sharing = Sharing(contexts, self._below_context)
        self._compiling = Compiling(self._runner)
        dependencies = Dependencies(isolation, home)
        self._sealing = Sealing(Seals(isolation, self._runner.images), boxed, challenges, dependencies)
        self._second_kernel = SecondKernel(boxed)
        self._forbidding = Forbidding(self._runner)
        self._filling = Filling(self._runner)
        self._blame = Blame(challenges)
        self._statements = Statements(self._compiling, self._stated, self._trying.judged)

    def __enter__(self) -> Checker:
        return self

    def __exit__(self, *_raised: object) -> None:
        self.close()

    def close(self) -> None:
        """End every process; no program may be checked after that."""
        self.sessions.close()
        self._runner.close()

    def images(self) -> list[tuple[str, int]]:
        """Return the images that can fork, as `farm_workers.images.images.Images.kept` does."""
        return self._runner.images.kept()

    def know(self, environments: Iterable[LeanEnvironment]) -> None:
        """Note environments of this machine, which messages about missing modules name."""
        self._runner.know(environments)

    def _header_refusal(self, program: str, environment: LeanEnvironment) -> str:
        return self._runner.header_refusal(Question.of(program, environment, FIRST_LOAD, box.never))

    def prewarm(self, environment: LeanEnvironment) -> None:
        """Begin to make images of the environment's headers, if Lean is forked."""
        self._runner.prewarm(environment)

    def cannot_fork(self, environment: LeanEnvironment) -> str:
        """Wait for an image of the environment's header; return why there can be none, "" if there is one."""
        return self._runner.cannot_fork(environment)

    def check(
        self,
        check: Check,
        environment: LeanEnvironment,
        *,
        cancelled: box.Cancelled = box.never,
        way: str | None = None,
        keep: Callable[[bytes], None] | None = None,
    ) -> Report:
        """Run Lean on a program and return the report; no behaviour of the program raises an exception.

        Lean does not run a program that the policy rejects. Without an assurance the report has no audit.
        `cancelled` is polled; once it returns true, the check ends and its report has a box error. `keep` is
        called with the module that the kernel was given, whole and readable by others, if a seal accepts it.

        The stages are called here and in the next methods: trying, for a statement and its negation or
        for a statement alone; policy and context; compile, seal and second kernel; blame.
        """
        candidate = AskedCandidate.of(check, environment, cancelled, way)
        if keep is not None:
            candidate = replace(candidate, keep=keep)
        if check.task.kind is Kind.STATEMENT:
            return self._statements.examined(candidate)
        return judged_as_both(self._trying.judged, candidate)

    def stated(
        self, check: Check, environment: LeanEnvironment, *, cancelled: box.Cancelled = box.never
    ) -> Report:
        """Return the report of a statement alone, with its facts if Lean accepts it; no tactic is tried."""
        return self._statements.stated(AskedCandidate.of(check, environment, cancelled, None))

    def unprovable(
        self, entry: Entry, environment: LeanEnvironment, *, cancelled: box.Cancelled = box.never
    ) -> str | None:
        """Return why no proof of a line can ever be accepted, with a remedy; None if one may be."""
        if Tier.AUDIT not in environment.tiers:
            return None
        return unprovable.why(self.check(unprovable.question(entry), environment, cancelled=cancelled))

    def extract(
        self,
        source: SourceFile,
        environment: LeanEnvironment,
        *,
        limits: Limits,
        most: int,
        modules: Sequence[str] = (),
        states: bool = False,
        costs: bool = False,
        cancelled: box.Cancelled = box.never,
    ) -> Extract:
        """Return the first `most` theorems of a file, with goals if `states`, and with their `costs`.

        Each has the constants in its proof that other `modules` of its repository declare.

        Raises NoExtract where the file's process ended before its end.
        """
        question = Question.of(source.text, environment, limits, cancelled)
        asked = ExtractAsked(
            program=source.text,
            start=question.header_end,
            modules=modules,
            most=most,
            states=states,
            costs=costs,
        )
        try:
            run, left = self._runner.extract(question, asked)
        except (NoImage, BoxFailed) as error:
            raise NoExtract(self._unforked(question, error)) from error
        if run.limit is not None or run.box_error is not None:
            raise NoExtract(f"the limit of {run.limit} was reached" if run.limit else str(run.box_error))
        return read_extract(left, source)

    def outline(
        self,
        text: str,
        environment: LeanEnvironment,
        *,
        limits: Limits,
        needs: bool = False,
        cancelled: box.Cancelled = box.never,
    ) -> Outline:
        """Return where the commands, the proofs and the tactics of a file stand; it may have errors.

        With `needs` each command has the theorems that its declarations mention.
        Raises NoOutline where the file's process did not write that.
        """
        question = Question.of(text, environment, limits, cancelled)
        asked = OutlineAsked(program=text, start=question.header_end, needs=needs)
        try:
            run, left = self._runner.outline(question, asked)
        except (NoImage, BoxFailed) as error:
            raise NoOutline(self._unforked(question, error)) from error
        if run.limit is not None or run.box_error is not None:
            raise NoOutline(f"the limit of {run.limit} was reached" if run.limit else str(run.box_error))
        return read_outline(left, text, question.header_end)

    def _unforked(self, question: Question, error: NoImage | BoxFailed) -> str:
        """Return why no fork could elaborate a file: the fault of its header, or else that of the fork."""
        refusal = self._runner.header_refusal(question) if isinstance(error, NoImage) else ""
        return refusal or f"Lean could not be forked: {error}"

    def _program(self, candidate: AskedCandidate) -> JudgedCandidate:
        """Have the policy read a program, and Lean its context."""
        read = screened(candidate)
        try:
            candidate = self._expected.added(candidate)
            if read.text_error is not None or read.refused is not None:
                return JudgedCandidate(candidate=candidate, report=self._blame.blamed(candidate, read))
            judged = self._sharing.judged(candidate)
        except (BadChallenge, BoxFailed) as error:
            return JudgedCandidate(candidate=candidate, report=failed(Report(tier=read.tier), error))
        return replace(judged, report=replace(judged.report, hits=read.hits))

    def _below_context(self, candidate: AskedCandidate) -> Report:
        """Have a program compiled and its module sealed, and its statement judged if it is refused.

        Raises NotShared if the program has to be compiled without its shared context, and BadTask.
        """
        return self._blame.blamed(candidate, self._sealed(candidate))

    def _sealed(self, candidate: AskedCandidate) -> Report:
        """Have a program compiled, and its module sealed if Lean accepts it."""
        try:
            candidate = self._filling.read(self._forbidding.read(candidate))
        except LimitReached as limit:
            return Report(run=limit.run, tier=candidate.assurance.tier)
        except BreaksOut as refused:
            return refused.report
        with self._compiling.compiled(candidate) as compiled:
            if compiled.needs_seal:
                return compiled.audited(lambda: self._audited(compiled))
            return compiled.report

    def _stated(self, compiled: Compiled) -> Audit:
        """Have the module of a statement alone sealed, for its facts."""
        sealed = self._sealing.sealed(compiled, states=True)
        return self._second_kernel.confirmed(sealed, compiled.candidate.question)

    def _audited(self, compiled: Compiled) -> Audit:
        sealed = self._forbidding.held(compiled, self._sealing.sealed(compiled))
        sealed = self._filling.held(compiled.candidate, sealed)
        sealed = self._texts.held(compiled, sealed)
        return self._second_kernel.confirmed(sealed, compiled.candidate.question)

    def ask_checker(
        self, check: Check, environment: LeanEnvironment, checker: KernelChecker, *, way: str
    ) -> Report:
        """Run Lean on a canary and return the report with the answer of one of the checkers alone."""
        candidate = AskedCandidate.of(check, environment, box.never, way)
        with self._compiling.compiled(candidate) as compiled:
            module = compiled.reply.module
            if not compiled.needs_seal or module is None:
                return compiled.report
            return compiled.audited(lambda: self._second_kernel.alone(module, candidate.question, checker))


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
