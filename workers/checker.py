"""Check step: a program is read, given to Lean, and looked at once more where that leaves anything open."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import TracebackType

from farm.assurance import FAST, GOLD
from farm.challenge import ALLOWED_AXIOMS, Challenge
from farm.job import Check, Limits
from farm.log import logger
from farm.verdict import Outcome, Reason, Report, judge, judge_text
from workers.box import once as box
from workers.box.cell import BoxFailed
from workers.box.isolation import Isolation
from workers.doubt import blames_statement, is_open, is_past_kernel, screened
from workers.environments import LeanEnvironment
from workers.forks.server import PerThread
from workers.leans import Leans, not_run, report_of
from workers.strict import BadChallenge, Strict
from workers.ways.forked import Forked
from workers.ways.way import COLD, RESIDENT, Question

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

        What the policy rejects is not given to Lean. `cancelled` is asked every now and then; when it says
        yes, the check ends and reports a box error.
        """
        impossible = judge_text(check.program)
        if impossible is not None:
            return replace(not_run(check.program), text_error=impossible.detail)
        hits, refused = screened(check, environment)
        if refused is not None:
            return replace(not_run(check.program), hits=hits, refused=refused)
        report = self._checked(check, environment, cancelled, way)
        return replace(report, hits=hits) if hits else report

    def _checked(
        self, check: Check, environment: LeanEnvironment, cancelled: Callable[[], bool], way: str | None
    ) -> Report:
        """Judge by the tier that is asked for, and what is proved once more when something is left open."""
        tier, challenge = check.assurance.tier if check.assurance else FAST, check.challenge
        question = Question.of(check.program, environment, check.limits, cancelled)
        if tier != FAST and challenge is not None:
            gold = tier == GOLD or is_past_kernel(check, environment)
            first = self._strictly(check, question, challenge, gold=gold)
        else:
            first = self._leans.ask(check.program, question, way)
        if judge(first).outcome is not Outcome.PROVED:
            return self._with_blame(check, question, first)
        if challenge is None:
            return replace(first, audit=NOTHING_TO_COMPARE)
        if not is_open(check, challenge, environment):
            return first
        if not environment.audited:
            return replace(first, audit=NOT_AUDITED)
        roomy = replace(question, limits=_roomier(check.limits))
        asked = check.assurance is not None and check.assurance.strongest == GOLD
        gold = asked or is_past_kernel(check, environment)
        return _overruling(first, self._strictly(check, roomy, challenge, gold=gold))

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

    def _strictly(self, check: Check, question: Question, challenge: Challenge, *, gold: bool) -> Report:
        """Have a fresh Lean compile the program, and its module audited when it is accepted.

        With `gold` the environment's own checker is asked as well.
        """
        try:
            with self._strict.compiled(question) as (reply, module):
                report = self._leans.report(check.program, question, reply)
                if judge(report).outcome is not Outcome.PROVED:
                    return report
                axioms = check.assurance.axioms if check.assurance else ALLOWED_AXIOMS
                audit = self._strict.audit(module, challenge, axioms, question.environment, _asker(question))
                if gold and audit["accepted"]:
                    audit = audit | {"replay": self._strict.replay(module, question.environment)}
                return replace(report, audit=audit)
        except BadChallenge as error:
            return replace(report, challenge_error=str(error))
        except (BoxFailed, OSError) as error:
            return report_of(check.program, self._leans.failed(error, COLD))


def _asker(question: Question) -> Callable[[str, Limits], Question]:
    """Return what asks the same Lean about another program."""
    return lambda text, limits: Question.of(text, question.environment, limits, question.cancelled)


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
