"""Check step: gives one program to Lean, in the way that suits it, and returns the facts."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import TracebackType

from farm.assurance import FAST, GOLD
from farm.challenge import ALLOWED_AXIOMS, Challenge, is_stated
from farm.header import brings_code, header_end, prefix_end
from farm.job import Check, Limits
from farm.log import logger
from farm.policy import Hit, Screen, refusing
from farm.scanner import sorry_tokens
from farm.verdict import Outcome, Report, judge, judge_text
from workers import box
from workers.box.cell import BoxFailed
from workers.box.isolation import Isolation
from workers.environments import LeanEnvironment
from workers.forks.server import PerThread
from workers.lean import NO_ANSWER, Answer, with_end_mark
from workers.strict import BadChallenge, Strict
from workers.ways.cold import Cold
from workers.ways.forked import Forked
from workers.ways.pool import Resident
from workers.ways.snapshot import Snapshot
from workers.ways.way import COLD, RESIDENT, SNAPSHOT, Doubtful, Question, Reply

_log = logger(__name__)


#: What stands in the place of an audit where nothing says what was to be proved.
NOTHING_TO_COMPARE = {
    "accepted": None,
    "findings": [],
    "not_checked": ["That the program proves anything in particular: the line has no formal_statement."],
}
#: And where the environment's modules cannot be audited.
NOT_AUDITED = {
    "accepted": None,
    "findings": [],
    "not_checked": ["That the program proves the line's formal_statement: nothing here can be audited."],
}


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
        self._servers = PerThread(isolation)
        self._strict = Strict(
            isolation,
            cold=self._cold,
            forked=Forked(self._servers, self._cold, self._snapshot),
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
        self._resident.close()
        self._servers.close()

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
        check: Check,
        environment: LeanEnvironment,
        *,
        cancelled: Callable[[], bool] = box.never,
        way: str | None = None,
    ) -> Report:
        """Run Lean on a program and report what happened; nothing is raised for what the program does.

        What the policy rejects is not given to Lean. `cancelled` is asked every now and then; when it says
        yes, the check ends and reports a box error.
        """
        impossible = judge_text(check.program)
        if impossible is not None:
            return replace(_not_run(check.program), text_error=impossible.detail)
        hits, refused = _looked_at(check, environment)
        if refused is not None:
            return replace(_not_run(check.program), hits=hits, refused=refused)
        return replace(self._checked(check, environment, cancelled, way or self._way), hits=hits)

    def _checked(
        self, check: Check, environment: LeanEnvironment, cancelled: Callable[[], bool], way: str
    ) -> Report:
        """Judge by the tier that is asked for, and what is proved once more when something is left open."""
        tier, challenge = check.assurance.tier if check.assurance else FAST, check.challenge
        question = question_of(check.program, environment, check.limits, cancelled)
        if tier != FAST and challenge is not None:
            gold = tier == GOLD or _is_past_kernel(check, environment)
            first = self._strictly(check, question, challenge, gold=gold)
        else:
            first = self._report(check.program, self._ask(question, way), question)
        if judge(first).outcome is not Outcome.PROVED:
            return first
        if challenge is None:
            return replace(first, audit=NOTHING_TO_COMPARE)
        if not _is_open(check, challenge, environment):
            return first
        if not environment.audited:
            return replace(first, audit=NOT_AUDITED)
        roomy = replace(question, limits=_roomier(check.limits))
        asked = check.assurance is not None and check.assurance.strongest == GOLD
        gold = asked or _is_past_kernel(check, environment)
        return _overruling(first, self._strictly(check, roomy, challenge, gold=gold))

    def _strictly(self, check: Check, question: Question, challenge: Challenge, *, gold: bool) -> Report:
        """Have a fresh Lean compile the program, and its module audited when it is accepted.

        With `gold` the environment's own checker is asked as well.
        """

        def ask(text: str, limits: Limits) -> Question:
            return question_of(text, question.environment, limits, question.cancelled)

        try:
            with self._strict.compiled(question) as (reply, module):
                report = self._report(check.program, reply, question)
                if judge(report).outcome is not Outcome.PROVED:
                    return report
                axioms = check.assurance.axioms if check.assurance else ALLOWED_AXIOMS
                audit = self._strict.audit(module, challenge, axioms, question.environment, ask)
                if gold and audit["accepted"]:
                    audit = audit | {"replay": self._strict.replay(module, question.environment)}
                return replace(report, audit=audit)
        except BadChallenge as error:
            return replace(report, challenge_error=str(error))
        except (BoxFailed, OSError) as error:
            return _report(check.program, self._failed(error, COLD))

    def _report(self, program: str, reply: Reply, question: Question) -> Report:
        broken = self._environment_error(reply, question)
        return replace(_report(program, reply), environment_error=broken)

    def _failed(self, error: Exception, way: str) -> Reply:
        run = replace(box.NOT_RUN, box_error=str(error), isolation=self._isolation.name)
        return Reply(run=run, answer=NO_ANSWER, way=way)

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
            return self._failed(error, way)
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
        probe = question_of(environment.header, environment, question.limits, question.cancelled)
        found = _first_error(self._cold.ask(probe).answer)
        return found and found.partition("\n")[0]


#: How Lean begins to say that a module cannot be imported (``Lean.findOLean``, ``Lean.readModuleData``).
_IMPORT_FAILED = re.compile(
    r"unknown (module prefix|package) '|object file '.*' of module .* does not exist|failed to read file '",
)


def _first_error(answer: Answer) -> str | None:
    return next((m.text for m in answer.messages if m.severity == "error"), None)


def question_of(
    program: str, environment: LeanEnvironment, limits: Limits, cancelled: Callable[[], bool]
) -> Question:
    """Return what is asked of Lean about a program, with an end mark that nobody can guess."""
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


def _looked_at(check: Check, environment: LeanEnvironment) -> tuple[tuple[Hit, ...], Hit | None]:
    """Return what the policy finds in a program, and the hit that rejects it, if one does."""
    if check.assurance is None:
        return (), None
    screen = Screen(policy=check.assurance.policy, submitted=check.submitted)
    hits, refused = screen.look(check.program, header=environment.header)
    can_replay = environment.checker is not None and check.challenge is not None
    if refused is None and not can_replay and (hit := screen.past_kernel(check.program)) is not None:
        hits, refused = (*hits, hit), refusing([hit])
    return hits, refused


def _is_past_kernel(check: Check, environment: LeanEnvironment) -> bool:
    """Whether a text that the policy lets pass names what takes constants past the kernel, to be replayed."""
    if check.assurance is None or environment.checker is None or not environment.audited:
        return False
    screen = Screen(policy=check.assurance.policy, submitted=check.submitted)
    return screen.past_kernel(check.program) is not None


def _is_open(check: Check, challenge: Challenge, environment: LeanEnvironment) -> bool:
    """Whether more than Lean's word is needed for what the first tier calls proved.

    So it is when the run asks for more; when only an audit can say whether what was proved is what the
    challenge asks for; and when the run lets a text pass that could prove anything.
    """
    assurance = check.assurance
    if assurance is not None and (assurance.tier != FAST or assurance.strongest != FAST):
        return assurance.strongest != assurance.tier
    if assurance is not None and (assurance.policy.is_weakened or _is_past_kernel(check, environment)):
        return True
    whole = ((0, len(check.program)),)
    return not is_stated(challenge, check.program, whole if check.submitted is None else check.submitted)


#: What a second look may take, beside twice what the first one might: it imports everything anew.
_MORE_SECONDS = 60.0


def _roomier(limits: Limits) -> Limits:
    """Return limits for a second look at what was proved within these: what it takes is not the proof's."""
    return replace(
        limits,
        wall_seconds=2 * limits.wall_seconds + _MORE_SECONDS,
        cpu_seconds=2 * limits.cpu_seconds + _MORE_SECONDS,
    )


def _overruling(first: Report, second: Report) -> Report:
    """Return what the second look found, with the time that both took."""
    return replace(
        second,
        accepted_first=True,
        wall_seconds=first.wall_seconds + second.wall_seconds,
        cpu_seconds=first.cpu_seconds + second.cpu_seconds,
    )


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
