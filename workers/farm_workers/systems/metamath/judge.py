"""Metamath step, the judge: a proof goes through the gate, the farm's verifier, and then ``metamath``."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

from farm.assembly.challenge import NOT_STATED, Challenge
from farm.errors import FarmError
from farm.judging.audit import COMPARED, UNCHECKED, Audit, Finding, Replay
from farm.judging.job import Check
from farm.judging.messages import SORRY_KIND
from farm.judging.report import Answer, Execution, Message, Report
from farm.judging.tiers import Tier
from farm.judging.verdict import Reason, judge_text
from farm.judging.words import Words
from farm.lean_text.positions import line_and_column
from farm.limits import Limits
from farm.log import logger
from farm.settings import Settings
from farm_workers import images
from farm_workers.box import launch
from farm_workers.box import once as box
from farm_workers.box.bubblewrap import python
from farm_workers.box.isolation import Isolation
from farm_workers.box.supervisor import BoxFailed, Command
from farm_workers.images.forking import forked, watched
from farm_workers.images.image import UNLIMITED, Image, NoImage, words
from farm_workers.images.images import Images, NotWanted
from farm_workers.images.recipe import Recipe
from farm_workers.systems import canaries
from farm_workers.systems.canaries import Canary
from farm_workers.systems.metamath import gate
from farm_workers.systems.metamath.block import Found
from farm_workers.systems.metamath.canaries import LABEL, CanaryBlock
from farm_workers.systems.metamath.confirm import Confirmation, Confirmer
from farm_workers.systems.metamath.environment import MetamathEnvironment

_log = logger(__name__)

#: How a proof is verified, as `Report.way` has it.
_WAY = "forked"
_WORDS = Words(
    prover="The verifier",
    kernel="The farm's verifier",
    made="the proof",
    faulty="does not fit the database",
)
#: Ample limits: a canary may have to wait until the database is read.
_CANARY_LIMITS = Limits(wall_seconds=60.0, cpu_seconds=60.0, memory_mib=1024)


class MetamathJudge:
    """Judges checks in Metamath environments; thread-safe."""

    def __init__(self, isolation: Isolation, settings: Settings, concurrency: int) -> None:
        self._isolation = isolation
        most = concurrency + 2 if settings.images is None else settings.images
        self._images = Images(isolation, metamath_image, most=most, most_mib=settings.images_mib)
        self._lock = threading.Lock()
        self._confirmers: dict[MetamathEnvironment, Confirmer] = {}

    def check(
        self, check: Check, environment: MetamathEnvironment, *, cancelled: Callable[[], bool] = box.never
    ) -> Report | Future[Report]:
        """Return the report, or its future if ``metamath`` must verify the accepted proof as well."""
        tier = Tier.KERNEL if check.assurance is None else check.assurance.tier
        base = Report(way=_WAY, tier=tier, words=_WORDS)
        if check.challenge is not None and not check.challenge.name:
            return replace(base, challenge_error=NOT_STATED, way="none")
        impossible = judge_text(check.program)
        if impossible is not None:
            place = impossible.place
            return replace(base, text_error=impossible.detail, text_place=place, way="none")
        try:
            gate.require(check.program, check.submitted or ())
        except gate.NotPassed as error:
            run = Execution(exit_status=0, isolation=self._isolation.name)
            told = _error(check.program, str(error), error.offset)
            return replace(base, run=run, answer=told, way="none")
        report = self._verified(check, environment, base, cancelled)
        if report.audit is None or not report.audit.accepted:
            return report
        return self._confirmed(report, self.confirm(check.program, environment))

    def confirm(self, program: str, environment: MetamathEnvironment) -> Future[Confirmation]:
        """Return the future result of ``metamath`` for a block that has passed the gate."""
        with self._lock:
            confirmer = self._confirmers.get(environment)
            if confirmer is None:
                confirmer = self._confirmers[environment] = Confirmer(environment, self._isolation)
        return confirmer.ask(program)

    def _verified(
        self,
        check: Check,
        environment: MetamathEnvironment,
        base: Report,
        cancelled: Callable[[], bool],
    ) -> Report:
        """Return the report of the farm's own verifier."""
        challenge = None if check.challenge is None else check.challenge.program
        request = {"program": check.program, "challenge": challenge}
        try:
            run, found = self._asked(environment, request, check.limits, cancelled)
        except NotWanted:
            run, found = Execution(box_error=box.CANCELLED, isolation=self._isolation.name), None
        except NoImage as error:
            return replace(base, environment_error=str(error), way="none")
        except (BoxFailed, OSError) as error:
            run, found = Execution(box_error=str(error), isolation=self._isolation.name), None
        report = replace(base, run=run)
        return report if found is None else _found(report, check, found)

    def _asked(
        self,
        environment: MetamathEnvironment,
        request: Mapping[str, object],
        limits: Limits,
        cancelled: Callable[[], bool],
    ) -> tuple[Execution, Any]:
        """Return a fork's run and answer, None without one. Raises BoxFailed and NoImage."""

        def begun(image: Image) -> Any:
            return image.task(request, limits)

        with forked(self._images, (environment, Recipe()), cancelled, begun) as fork:
            run = watched(fork, limits, self._isolation, cancelled)
        said, error = run.stdout, run.stderr.decode(errors="replace")
        run = replace(run, stdout=b"", stderr=b"")
        if not run.is_undisturbed or run.signal is not None:
            return run, None
        try:
            return run, json.loads(said)
        except ValueError:
            _log.warning("A verifier died: %s", error[-2000:].strip())
            return replace(
                run, box_error=f"a verifier ended with status {run.exit_status} and no answer"
            ), None

    @staticmethod
    def _confirmed(report: Report, confirmed: Future[Confirmation]) -> Future[Report]:
        """Return the report that there will be when a proof is confirmed, or is not."""
        later: Future[Report] = Future()

        def done(answered: Future[Confirmation]) -> None:
            error = answered.exception()
            if error is None:
                later.set_result(_with_second(report, answered.result()))
            else:
                later.set_result(replace(report, run=replace(report.run, box_error=str(error))))

        confirmed.add_done_callback(done)
        return later

    def prewarm(self, environment: MetamathEnvironment) -> None:
        """Begin to read the database."""
        self._images.prewarm(environment, Recipe())

    def require_sound(self, environment: MetamathEnvironment) -> None:
        """Judge canaries made from the database's assertions; raises FarmError if one verdict is wrong."""
        known = self._canaries(environment)
        unconfirmed = self._accepted_by_second(known, environment)
        canaries.require_none([*canaries.wrong(known, self, environment), *unconfirmed], environment)

    def trial(self, environment: MetamathEnvironment) -> tuple[str, ...]:
        """Judge one canary, and return a sentence for a wrong verdict."""
        return canaries.wrong(self._canaries(environment)[:1], self, environment)

    def _canaries(self, environment: MetamathEnvironment) -> list[Canary]:
        """Return the canaries of a database; raises FarmError if it gives none."""
        try:
            run, made = self._asked(environment, {"canaries": True}, _CANARY_LIMITS, box.never)
        except (NoImage, BoxFailed, OSError) as error:
            raise FarmError(f"environment {environment.name!r}: {error}") from error
        if not made:
            why = run.box_error or run.limit or "it asserts nothing that could be proved"
            raise FarmError(
                f"environment {environment.name!r}: no proof can be made with the database: {why}"
            )
        return [_canary(CanaryBlock(**each)) for each in made]

    def _accepted_by_second(self, known: Iterable[Canary], environment: MetamathEnvironment) -> Iterator[str]:
        """Yield a sentence for each wrong proof that ``metamath`` does not reject."""
        asked = [
            (canary.name, self.confirm(canary.check.program, environment))
            for canary in known
            if canary.expected is Reason.ERROR
        ]
        for name, answer in asked:
            error = answer.exception()
            if error is not None or answer.result().accepted:
                yield f"{name} was not rejected by metamath: {error or 'it was accepted'}"

    def images(self) -> list[tuple[str, int]]:
        """Return the databases that are ready to fork."""
        return self._images.kept()

    def close(self) -> None:
        """End every process; the object cannot be used afterwards."""
        with self._lock:
            confirmers = list(self._confirmers.values())
        for confirmer in confirmers:
            confirmer.close()
        self._images.close()


def _canary(block: CanaryBlock) -> Canary:
    check = Check.of(
        program=block.program,
        challenge=Challenge(program=block.challenge, name=LABEL),
        limits=_CANARY_LIMITS,
        submitted=(),
    )
    return Canary(name=block.name, check=check, expected=Reason(block.expected))


def _error(program: str, what: str, offset: int) -> Answer:
    return Answer(messages=(_message(program, "error", "", what, offset),), reached_end=True)


def _message(program: str, severity: str, kind: str, what: str, offset: int) -> Message:
    line, column = line_and_column(program, offset) if offset >= 0 else (0, 0)
    return Message(
        severity=severity, kind=kind, text=what, line=line, column=column, end_line=None, end_column=None
    )


def _found(report: Report, check: Check, found: Found) -> Report:
    """Return the report with the verifier's findings."""
    word, said, offset = found["found"], found.get("message", ""), found.get("offset", -1)
    if word == "limit":
        limit = "memory" if found["limit"] == "memory" else "cpu"
        return replace(report, run=replace(report.run, limit=limit))
    if word == "bad_challenge":
        return replace(report, challenge_error=said)
    if word == "wrong":
        return replace(report, answer=_error(check.program, said, offset))
    if word == "incomplete":
        gap = _message(check.program, "warning", SORRY_KIND, said, offset)
        return replace(report, answer=Answer(messages=(gap,), reached_end=True))
    name = check.challenge.name if check.challenge else found.get("label", "")
    is_accepted = word == "accepted"
    mismatch = Finding(word="statement_mismatch", name=name, sentence=said)
    audit = Audit(
        accepted=is_accepted,
        findings=() if is_accepted else (mismatch,),
        statement=UNCHECKED if check.challenge is None else COMPARED,
        module_sha256=hashlib.sha256(check.program.encode()).hexdigest(),
        replay=Replay(accepted=True, constants=1) if is_accepted else None,
    )
    return replace(report, answer=Answer(reached_end=True), audit=audit)


def _with_second(report: Report, confirmation: Confirmation) -> Report:
    """Return the report of an accepted proof with the result of ``metamath``."""
    if confirmation.limit is not None or report.audit is None:
        return replace(report, kernel_limit=confirmation.limit, audit=None)
    second = Replay(accepted=confirmation.accepted, said=confirmation.said, checker="metamath")
    return replace(report, audit=replace(report.audit, second=second))


_PACKAGE = Path(__file__).parent


def metamath_image(environment: MetamathEnvironment, isolation: Isolation, _recipe: Recipe) -> Command:
    """Return the command that starts the image of a database."""
    told = [*words(isolation), str(environment.database)]
    return Command(
        words=images.started(python(), "farm_workers.systems.metamath.serve", told),
        limits=UNLIMITED,
        visible=(*images.FOLDERS, _PACKAGE, environment.database),
        trusted=True,
        stack_bytes=launch.THREAD_STACK_BYTES,
    )
