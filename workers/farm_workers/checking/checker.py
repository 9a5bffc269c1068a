"""Check step: compiles a program with Lean for the worker's loop, and seals its module as the tier asks."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from farm import tracing
from farm.assembly.challenge import Challenge
from farm.judging.assurance import Assurance
from farm.judging.audit import MALFORMED, Audit, against
from farm.judging.ending import lean_refused, needs_seal
from farm.judging.job import Check, Fallback
from farm.judging.report import Execution, Report
from farm.judging.tiers import Tier
from farm.judging.verdict import judge_text
from farm.lean_text.positions import line_and_column
from farm.lean_text.scanner import sorry_tokens
from farm.log import logger
from farm_workers.box import once as box
from farm_workers.box.isolation import Isolation
from farm_workers.box.launch import FILE_BYTES
from farm_workers.box.supervisor import BoxFailed
from farm_workers.checking.blame import blames_statement, screened
from farm_workers.checking.boxed import Boxed
from farm_workers.checking.candidates import first_stating, may_do_better
from farm_workers.checking.challenges import BadChallenge, Challenges
from farm_workers.checking.contexts import TIMES, Contexts, Shared
from farm_workers.checking.seals import KernelLimit, Sealable, Sealed, Seals
from farm_workers.environments.lean_environment import LeanEnvironment
from farm_workers.images.image import ImageDied, NoImage
from farm_workers.lean.compile import LeanRunner
from farm_workers.lean.way import FORKED, NotShared, Question, Reply, Unfit

_log = logger(__name__)


#: A context needs three images: the header's, and two forks of it, one to compile proofs and one to seal.
_IMAGES_OF_A_CONTEXT = 3


class Checker:
    """Checks programs on this machine; thread-safe. As a context manager it ends all its processes at exit.

    `way` is the default way to run Lean. The arguments are those of `farm_workers.lean.compile.LeanRunner`;
    the default number of images is `concurrency` and two more. With `share_contexts` Lean reads a context
    once for all checks that have it.
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
        snapshot_mib: int = 8192,
        share_contexts: bool = True,
    ) -> None:
        self.way, self.isolation = way, isolation.name
        most = concurrency + 2 if most_images is None else most_images
        self._runner = LeanRunner(
            isolation,
            home=home,
            way=way,
            most_images=most,
            images_mib=images_mib,
            snapshot_mib=snapshot_mib,
        )
        self._challenges = Challenges(self._runner)
        may_share = share_contexts and most >= _IMAGES_OF_A_CONTEXT
        self._contexts = Contexts(self._runner, self._challenges, may_share=may_share)
        self._seals, self._boxed = Seals(isolation, self._runner.images), Boxed(isolation)

    def __enter__(self) -> Checker:
        return self

    def __exit__(self, *_raised: object) -> None:
        self.close()

    def close(self) -> None:
        """End every process; no program may be checked after that."""
        self._runner.close()

    def images(self) -> list[tuple[str, int]]:
        """Return the images that can fork, as `farm_workers.images.images.Images.kept` does."""
        return self._runner.images.kept()

    def prewarm(self, environment: LeanEnvironment) -> None:
        """Begin to make images of the environment's headers, if Lean is forked."""
        self._runner.prewarm(environment)

    def check(
        self,
        check: Check,
        environment: LeanEnvironment,
        *,
        cancelled: Callable[[], bool] = box.never,
        way: str | None = None,
    ) -> Report:
        """Run Lean on a program and return the report; no behaviour of the program raises an exception.

        Lean does not run a program that the policy rejects. Without an assurance the report has no audit.
        After a program that was refused for text above its proof, or that proves another statement, the
        check's next program is compiled within the remaining limits. `cancelled` is polled; once it returns
        true, the check ends and its report has a box error.
        """
        counted, check, others = first_stating(check)
        report = self._judged(check, environment, cancelled, way)
        if not check.others:
            return report
        run = report.run
        for preamble, other in others:
            following = _following(check, other, report, self._reading(check, environment, cancelled, way))
            if following is None:
                break
            check, counted = following, preamble
            report = self._judged(check, environment, cancelled, way)
            run = _both(run, report.run)
        return replace(report, preamble=counted, run=run)

    def ask_checker(self, check: Check, environment: LeanEnvironment, *, way: str) -> Report:
        """Run Lean on a canary and return the report with the answer of the environment's checker alone."""
        question = Question.of(check.program, environment, check.limits, box.never)
        with self._runner.compiled(question, way) as reply:
            report = self._runner.report(question, reply)
            if not needs_seal(report) or reply.module is None:
                return report
            module = reply.module.read()
            return _answered(
                report, lambda: Audit(accepted=True, replay=self._boxed.replay(module, question))
            )

    def _judged(
        self, check: Check, environment: LeanEnvironment, cancelled: Callable[[], bool], way: str | None
    ) -> Report:
        assurance = check.assurance or Assurance(tier=Tier.LEAN)
        impossible = judge_text(check.program)
        if impossible is not None:
            return Report(tier=assurance.tier, text_error=impossible.detail, text_place=impossible.place)
        hits, refused = screened(check, environment)
        if refused is not None:
            return Report(tier=assurance.tier, hits=hits, refused=refused)
        question = _question(check, environment, cancelled)
        try:
            report = self._below_shared(check, question, assurance, way)
            if report is None:
                reading = self._contexts.reading(question, check.challenge, way)
                report = self._asked(check, question.allowing(reading, TIMES), assurance, way)
        except (BadChallenge, BoxFailed) as error:
            return _unread(error, assurance)
        return replace(report, hits=hits)

    def _below_shared(
        self, check: Check, question: Question, assurance: Assurance, way: str | None
    ) -> Report | None:
        """Return the report of a check that shares its context with others; None if it cannot.

        A second kernel is a separate program that reads whole modules, so its checks share no context.
        """
        if assurance.tier == Tier.KERNEL and question.environment.has_second_kernel:
            return None
        shared = self._contexts.shared(question, check.challenge, way)
        if shared is None:
            return None
        try:
            report = self._asked(check, replace(question, shares_context=True), assurance, way, shared)
        except Unfit as error:
            self._contexts.failed(question, error)
            return None
        except NotShared as error:
            self._contexts.suspect(question, error)
            return None
        if report.run.box_error in (None, box.CANCELLED):
            return report
        self._contexts.suspect(question, NotShared(report.run.box_error))
        return None

    def _asked(
        self,
        check: Check,
        question: Question,
        assurance: Assurance,
        way: str | None,
        shared: Shared | None = None,
    ) -> Report:
        """Have a program compiled and its module sealed, and return the report.

        `shared` holds the compiled context, if the question shares it. NotShared is raised if the program has
        to be compiled without it.
        """
        ends = line_and_column(check.program, check.context_end) if check.context_end else None
        with self._runner.compiled(question, way) as reply:
            found = self._runner.report(question, reply)
            report = replace(found, tier=assurance.tier, context_ends=ends)
            if needs_seal(report, statement_has_sorry=_has_sorry(check.challenge)):
                return self._sealed(report, reply, check, assurance, question, shared)
        if shared is not None:
            return report  # the statement was compiled with the context, so the error is not its own
        return self._with_blame(check, question, report)

    def _reading(
        self, check: Check, environment: LeanEnvironment, cancelled: Callable[[], bool], way: str | None
    ) -> Execution:
        """Return the run in which Lean read a judged check's context; zero seconds if the check read none."""
        question = _question(check, environment, cancelled)
        try:
            if self._contexts.shared(question, check.challenge, way) is not None:
                return Execution()
            return self._contexts.reading(question, check.challenge, way)
        except (BadChallenge, BoxFailed):
            return Execution()

    def _with_blame(self, check: Check, question: Question, report: Report) -> Report:
        """Return the report, with the statement's error if Lean refused the program because of that."""
        challenge = check.challenge
        if not lean_refused(report) or challenge is None or not blames_statement(check, challenge, report):
            return report
        try:
            self._challenges.compiled(challenge, question)
        except BadChallenge as error:
            return replace(report, challenge_error=str(error))
        except BoxFailed as error:  # the error may be the dataset's or the submission's
            return replace(report, run=replace(report.run, box_error=str(error)))
        return report

    def _sealed(
        self,
        report: Report,
        reply: Reply,
        check: Check,
        assurance: Assurance,
        question: Question,
        shared: Shared | None,
    ) -> Report:
        """Return the report with the audit of its module, made by processes that never ran the program."""
        if reply.module is None:
            return replace(report, audit=_NO_MODULE)
        if question.keeps_examples and reply.report.way != FORKED and reply.declared is None:
            return replace(report, audit=_NOT_LISTED)
        return _answered(
            report, lambda: self._seal(self._sealable(reply, check, assurance, question, shared))
        )

    def _sealable(
        self, reply: Reply, check: Check, assurance: Assurance, question: Question, shared: Shared | None
    ) -> Sealable:
        """Return the module to seal, with its compiled statement; raises BadChallenge and BoxFailed."""
        assert reply.module is not None  # noqa: S101 - the caller tested it
        challenge = check.challenge
        compiled = None if shared is None else shared.challenge
        if shared is None and challenge is not None:
            compiled = self._challenges.compiled(challenge, question)
        return Sealable(
            module=reply.module.fileno(),
            challenge=compiled,
            stated=check.program if challenge is None else challenge.program,
            assurance=assurance,
            question=question,
            context=b"" if shared is None else shared.context,
            accounts=question.keeps_examples,
            declared=reply.declared,
        )

    def _seal(self, sealable: Sealable) -> Audit:
        with tracing.step("farm.seal"):
            return self._audit(sealable)

    def _sealed_in_time(self, sealable: Sealable) -> Sealed:
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

    def _audit(self, sealable: Sealable) -> Audit:
        """Return the audit of a module, with the kernels' answers."""
        try:
            sealed = self._sealed_in_time(sealable)
        except NoImage as error:
            if sealable.context:
                raise (NotShared if isinstance(error, ImageDied) else Unfit)(str(error)) from error
            _log.debug("Sealing a module in boxes: %s", error)
            return self._boxed.seal(sealable)
        if sealed.module is None:
            return sealed.audit
        return replace(sealed.audit, second=self._boxed.replay(sealed.module, sealable.question))


def _question(check: Check, environment: LeanEnvironment, cancelled: Callable[[], bool]) -> Question:
    return Question.of(
        check.program,
        environment,
        check.limits,
        cancelled,
        goals=check.goals,
        context_end=check.context_end,
        keeps_examples=check.challenge is None and check.assurance is not None,
    )


def _unread(error: BadChallenge | BoxFailed, assurance: Assurance) -> Report:
    """Return the report of a check whose context Lean could not read."""
    if isinstance(error, BadChallenge):
        return Report(tier=assurance.tier, challenge_error=str(error))
    return Report(tier=assurance.tier, run=Execution(box_error=str(error)))


def _answered(report: Report, ask: Callable[[], Audit]) -> Report:
    """Return the report with the audit that `ask` returns, or with the error that it raises."""
    try:
        return replace(report, audit=ask())
    except BadChallenge as error:
        return replace(report, challenge_error=str(error))
    except KernelLimit as limit:
        return replace(report, kernel_limit=str(limit))
    except (BoxFailed, OSError) as error:
        return replace(report, run=replace(report.run, box_error=str(error)))


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

#: A check's next program is not compiled with less remaining time.
_LEAST_SECONDS = 0.1


def _both(first: Execution, last: Execution) -> Execution:
    return replace(
        last,
        wall_seconds=first.wall_seconds + last.wall_seconds,
        cpu_seconds=first.cpu_seconds + last.cpu_seconds,
    )


def _following(check: Check, other: Fallback, report: Report, reading: Execution) -> Check | None:
    """Return the check of another program, within the remaining limits; None if it is not worth compiling.

    The time to read the context does not count against the limits.
    """
    wall, cpu = (
        limit - max(0.0, spent - TIMES * read)
        for limit, spent, read in (
            (check.limits.wall_seconds, report.run.wall_seconds, reading.wall_seconds),
            (check.limits.cpu_seconds, report.run.cpu_seconds, reading.cpu_seconds),
        )
    )
    if min(wall, cpu) < _LEAST_SECONDS or not may_do_better(check, other, report):
        return None
    limits = replace(check.limits, wall_seconds=wall, cpu_seconds=cpu)
    return replace(check, program=other.program, submitted=other.submitted, limits=limits)


@functools.lru_cache(maxsize=8)  # many proofs of one statement are checked in a row
def _has_sorry(challenge: Challenge | None) -> bool:
    """Return whether a challenge has a sorry besides the one in the place of its proof."""
    return challenge is not None and len(sorry_tokens(challenge.program)) > 1
