"""Report step: computes the figures of a pool of lines, as values for `--json` and for people. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import nlargest
from itertools import islice

from farm.judging.verdict import Outcome, Reason
from farm.reports.estimates import Kinds, ProblemKind, counted
from farm.reports.pools import Cost, LinePool, Samples
from farm.reports.statistics import all_of, mean_and_interval, pass_at_k, sizes

#: At most this many false statements are listed.
_MOST_FALSE = 1000
#: At most this many of the slowest problems are listed.
SLOWEST = 10

#: Two means of the same numbers differ by less.
_ROUNDING = 1e-9

#: The limits that can end a line, and the reasons that say so.
_ENDS = {
    "wall": Reason.WALL_LIMIT,
    "cpu": Reason.CPU_LIMIT,
    "kernel_time": Reason.KERNEL_TIME,
    "heartbeats": Reason.HEARTBEAT_LIMIT,
    "memory": Reason.MEMORY_LIMIT,
    "lean_memory": Reason.LEAN_MEMORY_LIMIT,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class VerdictShare:
    """The number and the share of lines with a verdict and reason."""

    verdict: str
    reason: str
    lines: int
    share: float


@dataclass(frozen=True, kw_only=True, slots=True)
class PassAt:
    """pass@k, with an interval, over the problems for which it is known (`farm.reports.estimates`).

    `value`, `low` and `high` are None without such a problem. `at_least` and `at_most` take the unknown
    samples as failures and as proofs, over the `problems_with_samples` that have at least k samples, judged
    or not. `all_timed_out` estimates the probability that k samples all time out, over the same problems as
    `value`.
    """

    k: int
    problems: int
    value: float | None
    low: float | None
    high: float | None
    problems_with_samples: int
    at_least: float | None
    at_most: float | None
    all_timed_out: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Unknown:
    """Lines that say nothing of their proofs, and why."""

    judge_error: int
    cancelled: int
    unfinished: int

    @property
    def lines(self) -> int:
        """All of them."""
        return self.judge_error + self.cancelled + self.unfinished


@dataclass(frozen=True, kw_only=True, slots=True)
class Timeouts:
    """The number of lines that ran out of time, and their mean share in the `problems` with a judged line.

    `all_samples` is the share of problems all of whose judged lines did.
    """

    lines: int
    problems: int
    mean_share: float | None
    all_samples: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class LimitUse:
    """The number of lines that a limit ended, and the share of the limit used by all others.

    The tenths count lines by their use: up to a tenth of the limit, up to two, and so on; None for a limit
    whose use is not known.
    """

    limit: str
    ended: int
    proved_tenths: tuple[int, ...] | None
    rejected_tenths: tuple[int, ...] | None

    @property
    def proofs_above_half(self) -> int:
        """Proofs that needed more than half of the limit."""
        return sum((self.proved_tenths or ())[5:])

    @property
    def proofs_above_four_fifths(self) -> int:
        """Proofs that needed more than four fifths of the limit."""
        return sum((self.proved_tenths or ())[8:])


@dataclass(frozen=True, kw_only=True, slots=True)
class VerdictCost:
    """Lean's time for the lines of a verdict; `checked` of them had checks of their own."""

    verdict: str
    lines: int
    checked: int
    cpu_seconds: float
    mean_cpu_seconds: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Costs:
    """Seconds that Lean took for these lines; a line that shares another one's check costs nothing."""

    cpu_seconds: float
    wall_seconds: float
    shared_lines: int
    cpu_seconds_per_proof: float | None
    cpu_seconds_per_solved_problem: float | None
    by_verdict: tuple[VerdictCost, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class SlowProblem:
    """Lean's time for the judged lines of a problem, shared checks included in all but `cpu_seconds`."""

    problem: str
    lines: int
    proved: int
    mean_seconds: float
    longest_seconds: float
    cpu_seconds: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Figures:
    """All figures of a pool of lines. Shares are from 0 to 1.

    `undecided` problems have no proof and an unknown line. `disproved` problems have a disproof: their
    statements are false, and `false_statements` names the first of them. `samples_usual` is the number of
    lines that most problems have.
    """

    lines: int
    judged: int
    proved: int
    unknown: Unknown
    proved_share: float | None
    proved_at_least: float
    proved_at_most: float
    problems: int
    solved: int
    undecided: int
    disproved: int
    false_statements: tuple[str, ...]
    samples_least: int
    samples_usual: int
    samples_most: int
    verdicts: tuple[VerdictShare, ...]
    pass_at: tuple[PassAt, ...]
    timeouts: Timeouts
    limits: tuple[LimitUse, ...]
    costs: Costs
    slowest: tuple[SlowProblem, ...]

    def at(self, k: int) -> PassAt | None:
        """Return pass@k, None where it is not among those reported."""
        return next((each for each in self.pass_at if each.k == k), None)


def figures(pool: LinePool, names: Sequence[str]) -> Figures:
    """Return the figures of a pool with at least one line; the problems' names are by their numbers."""
    lines, problems = pool.lines, pool.problems.values()
    proved = _lines_of(pool, Outcome.PROVED)
    unknown = _unknown(pool)
    sampled = Counter(each.judged + each.unknown for each in problems)
    usual = usual_samples(problems)
    judged = lines - unknown.lines
    return Figures(
        lines=lines,
        judged=judged,
        proved=proved,
        unknown=unknown,
        proved_share=proved / judged if judged else None,
        proved_at_least=proved / lines,
        proved_at_most=(proved + unknown.lines) / lines,
        problems=len(pool.problems),
        solved=sum(each.is_solved for each in problems),
        undecided=sum(not each.is_solved and not each.is_unsolved for each in problems),
        disproved=sum(each.disproved > 0 for each in problems),
        false_statements=tuple(_false(pool, names)),
        samples_least=min(sampled),
        samples_usual=usual,
        samples_most=max(sampled),
        verdicts=_verdicts(pool),
        pass_at=_pass_at(problems, sizes(max(sampled), usual)),
        timeouts=_timeouts(pool),
        limits=tuple(_limit(pool, limit) for limit in _ENDS),
        costs=_costs(pool),
        slowest=_slowest(pool, names),
    )


def usual_samples(problems: Iterable[Samples]) -> int:
    """Return the number of lines that most of these problems have, the larger one of two."""
    sampled = Counter(each.judged + each.unknown for each in problems)
    return max(sampled, key=lambda number: (sampled[number], number))


def pass_at(problems: Iterable[Samples], k: int) -> PassAt:
    """Return pass@k of these problems, of which one or more have k lines."""
    return _pass_at(problems, [k])[0]


def _lines_of(pool: LinePool, verdict: str) -> int:
    return sum(cost.lines for (found, _), cost in pool.costs.items() if found == verdict)


def _unknown(pool: LinePool) -> Unknown:
    cancelled = pool.statuses["cancelled"]
    return Unknown(
        judge_error=_lines_of(pool, Outcome.JUDGE_ERROR),
        cancelled=cancelled,
        unfinished=pool.statuses.total() - cancelled,
    )


def _verdicts(pool: LinePool) -> tuple[VerdictShare, ...]:
    order = list(Outcome)
    return tuple(
        VerdictShare(verdict=verdict, reason=reason, lines=cost.lines, share=cost.lines / pool.lines)
        for (verdict, reason), cost in sorted(
            pool.costs.items(), key=lambda item: (order.index(Outcome(item[0][0])), -item[1].lines, item[0])
        )
    )


def _pass_at(problems: Iterable[Samples], ks: Sequence[int]) -> tuple[PassAt, ...]:
    kinds: Counter[tuple[ProblemKind, ...]] = Counter((ProblemKind.of(each),) for each in problems)
    return tuple(_pass_at_one(kinds, k) for k in ks)


def _pass_at_one(kinds: Kinds, k: int) -> PassAt:
    sampled = {sides: number for sides, number in kinds.items() if sides[0].samples >= k}
    least = _mean(sampled, lambda kind: pass_at_k(kind.samples, kind.proved, k))
    most = _mean(sampled, lambda kind: pass_at_k(kind.samples, kind.proved + kind.unknown, k))
    told = _told(kinds, k)
    value = _mean(told, lambda kind: kind.pass_at(k))
    if value is not None and least is not None and value < least - _ROUNDING:
        # The excluded problems have more proofs than the others.
        told, value = {}, None
    values: Counter[float] = Counter()
    for (kind,), number in told.items():
        values[kind.pass_at(k)] += number
    judged = sum(kind.judged * number for (kind,), number in told.items())
    _, low, high = mean_and_interval(values, judged) if told else (None, None, None)
    return PassAt(
        k=k,
        problems=sum(told.values()),
        value=value,
        low=low,
        high=high,
        problems_with_samples=sum(sampled.values()),
        at_least=least,
        at_most=most,
        all_timed_out=_mean(told, lambda kind: all_of(kind.judged, kind.timeouts, k)),
    )


def _told(kinds: Kinds, k: int) -> Kinds:
    """Return the problems for pass@k; pass@1 is given even if it is too high, with a note."""
    if k > 1:
        return counted(kinds, k)
    return {sides: number for sides, number in kinds.items() if sides[0].judged}


def _mean(kinds: Kinds, worth: Callable[[ProblemKind], float]) -> float | None:
    """Return the mean over problems, None without one."""
    problems = sum(kinds.values())
    return sum(worth(kind) * number for (kind,), number in kinds.items()) / problems if problems else None


def _timeouts(pool: LinePool) -> Timeouts:
    judged = [each for each in pool.problems.values() if each.judged]
    number = len(judged)
    return Timeouts(
        lines=_lines_of(pool, Outcome.TIMEOUT),
        problems=number,
        mean_share=sum(each.timeouts / each.judged for each in judged) / number if number else None,
        all_samples=sum(each.timeouts == each.judged for each in judged) / number if number else None,
    )


def _limit(pool: LinePool, limit: str) -> LimitUse:
    ended = sum(cost.lines for (_, reason), cost in pool.costs.items() if reason == _ENDS[limit])
    tenths = {verdict: getattr(use, limit, None) for verdict, use in pool.use.items()}
    proved, rejected = tenths[Outcome.PROVED], tenths[Outcome.REJECTED]
    return LimitUse(
        limit=limit,
        ended=ended,
        proved_tenths=None if proved is None else tuple(proved),
        rejected_tenths=None if rejected is None else tuple(rejected),
    )


def _costs(pool: LinePool) -> Costs:
    by_verdict: dict[str, Cost] = {}
    for (verdict, _), cost in pool.costs.items():
        found = by_verdict.setdefault(verdict, Cost())
        found.lines += cost.lines
        found.own_lines += cost.own_lines
        found.cpu_seconds += cost.cpu_seconds
        found.wall_seconds += cost.wall_seconds
    total = sum(cost.cpu_seconds for cost in by_verdict.values())
    proved = _lines_of(pool, Outcome.PROVED)
    solved = sum(each.is_solved for each in pool.problems.values())
    return Costs(
        cpu_seconds=total,
        wall_seconds=sum(cost.wall_seconds for cost in by_verdict.values()),
        shared_lines=sum(cost.lines - cost.own_lines for cost in by_verdict.values()),
        cpu_seconds_per_proof=total / proved if proved else None,
        cpu_seconds_per_solved_problem=total / solved if solved else None,
        by_verdict=tuple(_verdict_cost(each, by_verdict[each]) for each in Outcome if each in by_verdict),
    )


def _verdict_cost(verdict: Outcome, cost: Cost) -> VerdictCost:
    return VerdictCost(
        verdict=verdict.value,
        lines=cost.lines,
        checked=cost.own_lines,
        cpu_seconds=cost.cpu_seconds,
        mean_cpu_seconds=cost.cpu_seconds / cost.own_lines if cost.own_lines else None,
    )


def _false(pool: LinePool, names: Sequence[str]) -> Iterator[str]:
    """Yield the first problems with a disproof."""
    found = (names[number] for number, each in pool.problems.items() if each.disproved)
    return islice(found, _MOST_FALSE)


def _slowest(pool: LinePool, names: Sequence[str]) -> tuple[SlowProblem, ...]:
    judged = ((each.seconds / each.judged, -number) for number, each in pool.problems.items() if each.judged)
    return tuple(
        SlowProblem(
            problem=names[-number],
            lines=pool.problems[-number].judged,
            proved=pool.problems[-number].proved,
            mean_seconds=mean,
            longest_seconds=pool.problems[-number].longest,
            cpu_seconds=pool.problems[-number].cpu_seconds,
        )
        for mean, number in nlargest(SLOWEST, judged)
    )
