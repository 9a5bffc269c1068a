"""Report step: ranks runs by pass@k over the problems that all of them have."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from datetime import UTC

from farm.errors import UsageError
from farm.judging.verdict import Outcome
from farm.reports.figures import PassAt, pass_at, usual_samples
from farm.reports.pools import LinePool, Samples
from farm.reports.reading import Problems, Reader, require_distinct
from farm.store.outcomes import outcomes
from farm.store.queries import Queries, StoredRun


@dataclass(frozen=True, kw_only=True, slots=True)
class Proof:
    """A proved line of a problem; `bundle` is its folder below the page, None without one."""

    problem: str
    manifest: int
    line: int
    bundle: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class RankedRun:
    """A run of the leaderboard, over the problems that all runs have.

    `date` is the day of its submission by UTC, `environments` are those its lines name. `undecided` problems
    have no proof and an unknown line. Each solved problem has a proof.
    """

    rank: int
    model: str
    run: str
    date: str
    environments: tuple[str, ...]
    samples: int
    pass_at: PassAt
    solved: int
    undecided: int
    other_problems: int
    proofs: tuple[Proof, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Leaderboard:
    """Runs, the best first, by pass@k over so many problems."""

    k: int
    problems: int
    rows: tuple[RankedRun, ...]

    def facts(self) -> dict[str, object]:
        """Return the leaderboard for scripts."""
        return {"schema": 1, **asdict(self)}

    def linked(self, bundle: Callable[[str, Proof], str | None]) -> Leaderboard:
        """Return the leaderboard with the folder that `bundle` returns for each run and proof of it."""
        rows = (
            replace(row, proofs=tuple(replace(each, bundle=bundle(row.run, each)) for each in row.proofs))
            for row in self.rows
        )
        return replace(self, rows=tuple(rows))


@dataclass(frozen=True, kw_only=True, slots=True)
class _Entry:
    run: StoredRun
    model: str
    pool: LinePool

    @property
    def solving(self) -> frozenset[int]:
        return frozenset(number for number, each in self.pool.problems.items() if each.is_solved)


def leaderboard(
    queries: Queries, runs: Sequence[StoredRun], models: Sequence[str], *, k: int | None = None
) -> Leaderboard:
    """Return the ranking of runs, whose models are called so; by default k is what all runs have samples for.

    Raises `UsageError` for a run that is given twice or has no lines, runs without a common problem, or a k
    that no problem has samples for, and `ServerDown`.
    """
    require_distinct(runs)
    reader = Reader(queries, several=True)
    entries = [
        _Entry(run=run, model=model, pool=reader.read(run)) for run, model in zip(runs, models, strict=True)
    ]
    common = _common([each.pool for each in entries])
    samples = {each.run.id: [each.pool.problems[number] for number in common] for each in entries}
    least = min(map(usual_samples, samples.values()))
    chosen = least if k is None else k
    _require_samples(samples, chosen)
    ranked = sorted((_ranked(queries, each, samples[each.run.id], chosen) for each in entries), key=_place)
    proofs = {each.run.id: _proofs(queries, each, common, reader.problems) for each in entries}
    return Leaderboard(
        k=chosen,
        problems=len(common),
        rows=tuple(
            replace(each, rank=_rank(ranked, each), proofs=tuple(proofs[each.run])) for each in ranked
        ),
    )


def _common(pools: Sequence[LinePool]) -> list[int]:
    """Return the problems that all pools have, in the order of the first."""
    shared = frozenset.intersection(*(frozenset(each.problems) for each in pools))
    if not shared:
        raise UsageError(
            "the runs have no problem that all of them have, so nothing can be ranked; a problem is known by "
            "its lines' group, or their name without one"
        )
    return sorted(shared)


def _require_samples(samples: Mapping[str, Sequence[Samples]], k: int) -> None:
    for run, problems in samples.items():
        most = max(each.judged + each.unknown for each in problems)
        if most < k:
            raise UsageError(
                f"-k {k}: no common problem has so many lines in run {run}; give at most {most}, or none"
            )


def _ranked(queries: Queries, entry: _Entry, problems: Sequence[Samples], k: int) -> RankedRun:
    run = entry.run
    return RankedRun(
        rank=0,
        model=entry.model,
        run=run.id,
        date=run.created_at.astimezone(UTC).date().isoformat(),
        environments=tuple(queries.environments_of(run.id)),
        samples=usual_samples(problems),
        pass_at=pass_at(problems, k),
        solved=sum(each.is_solved for each in problems),
        undecided=sum(not each.is_solved and not each.is_unsolved for each in problems),
        other_problems=len(entry.pool.problems) - len(problems),
        proofs=(),
    )


def _place(row: RankedRun) -> tuple[float, float, str]:
    """Return what rows are sorted by: pass@k, or its lower bound where it is not known; then their ids."""
    return -_worth(row), -row.solved, row.run


def _worth(row: RankedRun) -> float:
    found = row.pass_at
    return found.value if found.value is not None else found.at_least or 0.0


def _rank(ranked: Sequence[RankedRun], row: RankedRun) -> int:
    """Return the rank, which rows of equal figures share."""
    return 1 + next(number for number, each in enumerate(ranked) if _place(each)[:2] == _place(row)[:2])


def _proofs(queries: Queries, entry: _Entry, common: Sequence[int], problems: Problems) -> Iterator[Proof]:
    """Yield the first proof of each common problem that a run solves."""
    open_ones = set(common) & entry.solving
    with closing(outcomes(queries.engine, entry.run.id)) as lines:
        for line in lines:
            if line.verdict != Outcome.PROVED:
                continue
            number = problems.number(entry.run, line)
            if number in open_ones:
                open_ones.remove(number)
                yield Proof(problem=problems.names[number], manifest=line.manifest, line=line.line)
