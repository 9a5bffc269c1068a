"""Check step: gives one program to Lean, in the way that suits it, and returns the facts."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import TracebackType

from farm.challenge import Challenge, is_stated
from farm.header import brings_code, header_end, prefix_end
from farm.job import FAST, Limits
from farm.log import logger
from farm.policy import MEANING, Screen
from farm.scanner import sorry_tokens
from farm.verdict import Outcome, Report, judge, judge_text
from workers import box
from workers.box.cell import BoxFailed
from workers.box.isolation import Isolation
from workers.environments import LeanEnvironment
from workers.lean import NO_ANSWER, Answer, with_end_mark
from workers.strict import BadChallenge, Strict
from workers.ways.cold import Cold
from workers.ways.pool import Resident
from workers.ways.snapshot import Snapshot
from workers.ways.way import COLD, RESIDENT, SNAPSHOT, Doubtful, Question, Reply

_log = logger(__name__)


class Checker:
    """Checks programs on this machine; for many threads. A context manager: at its end no process is left.

    `way` is how Lean is run unless a check says otherwise: ``resident``, ``snapshot`` or ``cold``. Whatever
    it is, a program that brings code of its own gets a fresh process, and so does one that another way could
    not answer beyond doubt. `residents` bounds the resident processes kept (by default twice `concurrency`
    and one), `snapshot_mib` the snapshots in `home`.
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
        self._isolation = isolation
        self._way = way
        self._cold = Cold(isolation)
        self._snapshot = Snapshot(isolation, home / "snapshots", most_mib=snapshot_mib)
        most = 2 * concurrency + 1 if residents is None else residents
        self._resident = Resident(isolation, concurrency=concurrency, most=most)
        self._strict = Strict(isolation, self._cold, home / "strict")

    def __enter__(self) -> Checker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End every process; nothing may be checked any more."""
        self._resident.close()

    @property
    def way(self) -> str:
        """How Lean is run unless a check says otherwise."""
        return self._way

    def prewarm(self, environment: LeanEnvironment) -> None:
        """Get the environment's headers ready, in the background, where that helps."""
        if self._way == RESIDENT:
            for header in environment.headers:
                self._resident.prewarm(environment, header[: header_end(header)] + "\n")

    def check(
        self,
        program: str,
        environment: LeanEnvironment,
        limits: Limits,
        *,
        screen: Screen | None = None,
        tier: str = FAST,
        challenge: Challenge | None = None,
        cancelled: Callable[[], bool] = box.never,
        way: str | None = None,
    ) -> Report:
        """Run Lean on a program and report what happened; nothing is raised for what the program does.

        With a `screen` the program is looked at first, and not given to Lean when that rejects it. What is
        proved, and has a `challenge`, is audited when the tier is strict, and when the text leaves it open
        whether the statement still means the same. `cancelled` is asked every now and then; when it says
        yes, the check ends and reports a box error.
        """
        impossible = judge_text(program)
        if impossible is not None:
            return replace(_not_run(program), text_error=impossible.detail)
        hits, refused = ((), None) if screen is None else screen.look(program, header=environment.header)
        if refused is not None:
            return replace(_not_run(program), hits=hits, refused=refused)
        question = _question(program, environment, limits, cancelled)
        if tier == FAST or challenge is None:
            report = replace(
                self._report(program, self._ask(question, way or self._way), question), hits=hits
            )
            if challenge is None or not _is_open(challenge, program, screen, report):
                return report
        return replace(self._strictly(program, question, challenge), hits=hits)

    def _strictly(self, program: str, question: Question, challenge: Challenge) -> Report:
        """Have a fresh Lean compile the program, and its module audited when it is accepted."""

        def ask(text: str, limits: Limits) -> Question:
            return _question(text, question.environment, limits, question.cancelled)

        try:
            with self._strict.compiled(question) as (reply, module):
                report = self._report(program, reply, question)
                if judge(report).outcome is not Outcome.PROVED:
                    return report
                audit = self._strict.audit(module, challenge, question.environment, ask)
                return replace(report, audit=audit)
        except BadChallenge as error:
            return replace(report, challenge_error=str(error))
        except (BoxFailed, OSError) as error:
            run = replace(box.NOT_RUN, box_error=str(error), isolation=self._isolation.name)
            return _report(program, Reply(run=run, answer=NO_ANSWER, way=COLD))

    def _report(self, program: str, reply: Reply, question: Question) -> Report:
        broken = self._environment_error(reply, question)
        return replace(_report(program, reply), environment_error=broken)

    def _ask(self, question: Question, way: str) -> Reply:
        if way == RESIDENT and brings_code(question.program):
            way = SNAPSHOT
        try:
            if way == RESIDENT:
                return self._resident.ask(question)
            if way == SNAPSHOT:
                return self._snapshot.ask(question)
        except Doubtful as doubt:
            _log.debug("A fresh Lean is asked: %s", doubt)
        except (BoxFailed, OSError) as error:
            run = replace(box.NOT_RUN, box_error=str(error), isolation=self._isolation.name)
            return Reply(run=run, answer=NO_ANSWER, way=way)
        return self._cold.ask(question)

    def _environment_error(self, reply: Reply, question: Question) -> str | None:
        """Say what is broken when imports fail that the environment itself promises.

        A program may ask for a module that never was; then its own header is to blame. So the text of the
        error only asks the question: the environment's header, alone, answers it.
        """
        first = _first_error(reply.answer)
        if first is None or not _IMPORT_FAILED.match(first):
            return None
        environment = question.environment
        probe = _question(environment.header, environment, question.limits, question.cancelled)
        found = _first_error(self._cold.ask(probe).answer)
        return found and found.partition("\n")[0]


#: How Lean begins to say that a module cannot be imported (``Lean.findOLean``, ``Lean.readModuleData``).
_IMPORT_FAILED = re.compile(
    r"unknown (module prefix|package) '|object file '.*' of module .* does not exist|failed to read file '",
)


def _first_error(answer: Answer) -> str | None:
    return next((m.text for m in answer.messages if m.severity == "error"), None)


def _question(
    program: str, environment: LeanEnvironment, limits: Limits, cancelled: Callable[[], bool]
) -> Question:
    mark = secrets.token_hex(16)
    end = header_end(program)
    return Question(
        program=with_end_mark(program, mark),
        mark=mark,
        header_end=end,
        prefix_end=prefix_end(program, end),
        environment=environment,
        limits=limits,
        cancelled=cancelled,
    )


def _is_open(challenge: Challenge, program: str, screen: Screen | None, report: Report) -> bool:
    """Whether something is proved, and only an audit can say whether it is what the challenge asks for."""
    if judge(report).outcome is not Outcome.PROVED:
        return False
    submitted = ((0, len(program)),) if screen is None or screen.submitted is None else screen.submitted
    return any(hit.rule in MEANING for hit in report.hits) or not is_stated(challenge, program, submitted)


def _not_run(program: str) -> Report:
    return _report(program, Reply(run=box.NOT_RUN, answer=NO_ANSWER, way="none"))


def _report(program: str, reply: Reply) -> Report:
    run, answer = reply.run, reply.answer
    return Report(
        exit_status=run.exit_status,
        signal=run.signal,
        wall_seconds=run.wall_seconds,
        cpu_seconds=run.cpu_seconds,
        peak_memory_kib=run.peak_memory_kib,
        limit=run.limit,
        output_bytes=run.output_bytes,
        output_cut=run.output_cut,
        messages=answer.messages,
        reached_end=answer.reached_end,
        foreign_output=answer.foreign_output,
        sorry_tokens=sorry_tokens(program),
        box_error=run.box_error,
        isolation=run.isolation,
        way=reply.way,
        stopped_at=reply.stopped_at,
    )
