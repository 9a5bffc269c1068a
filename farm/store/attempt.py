"""An attempt at a check, between the store and a worker: its claim, and its verdict or release."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from datetime import datetime

from psycopg.rows import DictRow

from farm.assembly.challenge import Challenge
from farm.assembly.negation import as_negation
from farm.characters import decoded
from farm.documents import encoded
from farm.judging.assurance import Assurance
from farm.judging.job import Candidate, Check, Disproof
from farm.judging.report import Report
from farm.judging.states import Priority
from farm.judging.verdict import Outcome, Particulars, Verdict
from farm.limits import Limits
from farm.store.candidates import challenges_of, of_columns, preamble_of
from farm.task import Kind, Task
from farm.tracing.span import trace_id

#: A lease: a check's id, the number of the attempt, and the time of the claim. Where PostgreSQL lost claims
#: in a crash, or was restored from a backup, the numbers alone may belong to another claim by now.
Hold = tuple[int, int, datetime]


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim:
    """A check that this worker holds: the programs, and the attempt under which to report the result.

    `failures` counts earlier attempts in which the farm failed. With one attempt left it is a `suspect`: it
    may be the check that crashes workers. One that is claimed `ahead` waits for a free thread of its worker.
    Its `priority` is that of its class, and it has been queued for `waited_seconds`; the `traceparent` is
    that of its run, None where the run is not traced. Its `image` is the number that it shares with checks
    that can be forked from the same image, 0 where that is unknown; its `turn` is its place in the queue of
    its `tenant`.
    """

    check_id: int
    attempt: int
    claimed_at: datetime
    failures: int
    suspect: bool
    environment: str
    check: Check
    ahead: bool = False
    priority: int = Priority.BATCH
    waited_seconds: float = 0.0
    traceparent: str | None = None
    image: int = 0
    tenant: int = 0
    turn: int = 0

    @classmethod
    def of_row(cls, row: DictRow) -> Claim:
        """Return the claim that a row of the store is."""
        return cls(
            check_id=row["id"],
            attempt=row["attempt"],
            claimed_at=row["started_at"],
            failures=row["failures"],
            suspect=row["suspect"],
            environment=row["environment"],
            check=_check(row),
            ahead=row["ahead"],
            priority=row["priority"],
            waited_seconds=row["waited_seconds"],
            traceparent=row["traceparent"],
            image=row["image"],
            tenant=row["tenant"],
            turn=row["turn"],
        )

    @property
    def hold(self) -> Hold:
        """Its lease."""
        return self.check_id, self.attempt, self.claimed_at


@dataclass(frozen=True, kw_only=True, slots=True)
class Decision:
    """A worker's result of a check: the facts, the verdict, and the environment that judged it.

    The `traceparent` is that of the check's span, None for a check that is not traced.
    """

    report: Report
    verdict: Verdict
    digest: str
    toolchain: str
    checker_version: str
    traceparent: str | None = None

    def row(self, claim: Claim) -> dict[str, object]:
        """Return the values that the store records."""
        report, verdict = self.report, self.verdict
        return {
            "id": claim.check_id,
            "attempt": claim.attempt,
            "claimed_at": claim.claimed_at.isoformat(),
            "verdict": verdict.outcome,
            "reason": verdict.reason,
            "detail": verdict.detail,
            "messages": [asdict(message) for message in report.answer.messages],
            "hits": [asdict(hit) for hit in report.hits],
            "audit": None if report.audit is None else encoded(replace(report.audit, sentence=None)),
            "goals": None if report.goals is None else [asdict(goal) for goal in report.goals],
            "statement": _statement(report, verdict),
            "trusts": report.trusts,
            "preamble": preamble_of(report.candidate, len(claim.check.candidates)),
            "wall_seconds": report.run.wall_seconds,
            "cpu_seconds": report.run.cpu_seconds,
            "peak_memory_kib": report.run.peak_memory_kib,
            "isolation": report.run.isolation,
            "digest": self.digest,
            "toolchain": self.toolchain,
            "checker_version": self.checker_version,
            "trace_id": trace_id(self.traceparent),
            "facts": encoded(Particulars.of(verdict, task=claim.check.task.kind)),
            "reproducible": verdict.reproducible,
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class Released:
    """A claim that a worker gives back, with the outcome of the attempt and whether the farm failed in it."""

    claim: Claim
    outcome: str
    detail: str
    failed: bool

    @classmethod
    def unharmed(cls, claim: Claim, why: str) -> Released:
        """Return a claim to be given back through no fault of its own."""
        return cls(claim=claim, outcome="returned", detail=why, failed=False)

    def row(self) -> dict[str, object]:
        """Return the values with which the store ends the attempt."""
        return {
            "id": self.claim.check_id,
            "attempt": self.claim.attempt,
            "claimed_at": self.claim.claimed_at.isoformat(),
            "outcome": self.outcome,
            "detail": self.detail,
            "failed": self.failed,
        }


def unread(row: DictRow, why: str) -> dict[str, object]:
    """Return the release of a claimed row that cannot be read: the check is queued again unharmed."""
    held = {"id": row["id"], "attempt": row["attempt"], "claimed_at": row["started_at"].isoformat()}
    return held | {"outcome": "returned", "detail": why, "failed": False}


def _check(row: DictRow) -> Check:
    task = Task.read(row["task"])
    return Check(
        candidates=_candidates(row, task),
        limits=Limits(
            wall_seconds=row["wall_seconds"],
            cpu_seconds=row["cpu_seconds"],
            memory_mib=row["memory_mib"],
        ),
        assurance=Assurance.stored(
            tier=row["tier"],
            native=row["native"],
            axioms=row["axioms"] if task.axioms is None else task.axioms,
            policy=row["policy"],
        ),
        goals=row["goals"],
        stop_at_error=row["stop_at_error"],
        context_end=0 if task.negates else row["context_end"],
        task=task,
    )


def _candidates(row: DictRow, task: Task) -> tuple[Candidate, ...]:
    """Return a check's candidates; of a line that allows either, the last one is a disproof."""
    stated, negation = _challenges(row, task)
    programs = of_columns("text", row)
    disproofs = {Kind.DISPROVE: len(programs), Kind.EITHER: 1}.get(task.kind, 0)
    if disproofs and (negation is None or not negation.negates):
        raise ValueError("the check has no negation")
    found = list[Candidate]()
    for left, program, spans in zip(
        range(len(programs), 0, -1), programs, of_columns("submitted", row), strict=True
    ):
        kind, challenge = (Disproof, negation) if left <= disproofs else (Candidate, stated)
        submitted = tuple((start, end) for start, end in spans)
        found.append(kind(program=decoded(program), submitted=submitted, challenge=challenge))
    return tuple(found)


def _challenges(row: DictRow, task: Task) -> tuple[Challenge | None, Challenge | None]:
    if row["challenge_text"] is None:
        return None, None
    challenge = Challenge(
        program=decoded(row["challenge_text"]), name=row["challenge_name"], context_end=row["context_end"]
    )
    return (as_negation(challenge), None) if task.negates else challenges_of(challenge, task.kind)


def _statement(report: Report, verdict: Verdict) -> str | None:
    """Return whether the statement was compared, None for a rejected proof without an audit."""
    if verdict.outcome in (Outcome.PROVED, Outcome.DISPROVED):
        return report.statement
    return None if report.audit is None else report.audit.statement
