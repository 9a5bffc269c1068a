"""Report step: builds one report on one or several runs, with all its parts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

from farm.errors import UsageError
from farm.reports.comparison import Comparison, compare
from farm.reports.figures import Figures, figures
from farm.reports.pairs import PairedTest, paired_tests
from farm.reports.pools import LinePool
from farm.reports.reading import Reader, require_distinct
from farm.store.proofs import ProofFigures, proof_figures
from farm.store.queries import Queries, StoredRun


@dataclass(frozen=True, kw_only=True, slots=True)
class RunFigures:
    """A run, and its figures; how many of its proofs rest on a sorry of the dataset, or on no statement."""

    run: StoredRun
    figures: Figures
    rests_on_sorry: int = 0
    unchecked: int = 0
    proofs: ProofFigures | None = None

    @classmethod
    def of(cls, queries: Queries, run: StoredRun, figures: Figures) -> RunFigures:
        """Return those of a run. Raises `ServerDown`."""
        tally = queries.tally(run.id)
        return cls(
            run=run,
            figures=figures,
            rests_on_sorry=tally.open_below,
            unchecked=tally.unchecked,
            proofs=proof_figures(queries.engine, run.id),
        )

    @property
    def stops_on_first_proof(self) -> bool:
        """Whether lines of a problem are cancelled once one is proved."""
        return bool(self.run.options.get("stop_on_first_proof"))


@dataclass(frozen=True, kw_only=True, slots=True)
class ValueFigures:
    """The lines with one value of a field, and their figures; the value is None for lines without it."""

    value: str | None
    figures: Figures


@dataclass(frozen=True, kw_only=True, slots=True)
class RunsReport:
    """The figures of runs: each by itself, two by two, together, split by a field, and beside another run."""

    runs: tuple[RunFigures, ...]
    total: Figures
    by: str | None = None
    values: tuple[ValueFigures, ...] = ()
    against: RunFigures | None = None
    comparison: Comparison | None = None
    pairs: tuple[PairedTest, ...] = ()

    def facts(self) -> dict[str, object]:
        """Return the report for scripts."""
        return {
            "runs": [_run_facts(each) for each in self.runs],
            "total": asdict(self.total),
            "by": None
            if self.by is None
            else {"field": self.by, "values": [asdict(each) for each in self.values]},
            "against": None
            if self.comparison is None or self.against is None
            else {**asdict(self.comparison), "figures": asdict(self.against.figures)},
            "pairs": [asdict(each) for each in self.pairs],
        }


def _run_facts(found: RunFigures) -> dict[str, object]:
    run = found.run
    return {
        "run": run.id,
        "submitted_at": run.created_at.isoformat(),
        "manifests": [str(path) for path in run.manifests],
        "tier": run.tier,
        "stops_on_first_proof": found.stops_on_first_proof,
        "rests_on_sorry": found.rests_on_sorry,
        "statement_unchecked": found.unchecked,
        "figures": asdict(found.figures),
        "proofs": None if found.proofs is None else asdict(found.proofs),
    }


def report(
    queries: Queries, runs: Sequence[StoredRun], *, by: str | None = None, against: StoredRun | None = None
) -> RunsReport:
    """Return the report on runs, all read in bounded memory.

    Raises `UsageError` when a run is given twice or has no lines, no line has the field `by`, or the run
    `against` has no problem in common; `ManifestError` when the field cannot be read any more, `ServerDown`.
    """
    require_distinct([*runs, *([against] if against else [])])
    reader = Reader(queries, by=by, several=len(runs) > 1)
    pools = [reader.read(run) for run in runs]
    reader.require_field()
    names = reader.problems.names
    beside = None if against is None else reader.read_beside(against)
    total = figures(reader.total, names)
    of_runs = [total] if len(runs) == 1 else [figures(pool, names) for pool in pools]
    return RunsReport(
        runs=tuple(RunFigures.of(queries, run, each) for run, each in zip(runs, of_runs, strict=True)),
        total=total,
        by=by,
        values=tuple(_of_values(reader, names)),
        against=None
        if against is None or beside is None
        else RunFigures.of(queries, against, figures(beside, names)),
        comparison=None
        if against is None or beside is None
        else _compared(reader.total, beside, names, against),
        pairs=paired_tests([(run.id, pool) for run, pool in zip(runs, pools, strict=True)]),
    )


def _of_values(reader: Reader, names: Sequence[str]) -> Iterator[ValueFigures]:
    """Yield the values: numbers in their order, else those with most lines first; lines without it last."""
    numbers = {value: _number(value) for value in reader.values if value is not None}
    are_numbers = None not in numbers.values()

    def place(item: tuple[str | None, LinePool]) -> tuple[bool, float, str]:
        value, pool = item
        first = numbers.get(value or "") if are_numbers else None
        return value is None, -pool.lines if first is None else first, value or ""

    for value, pool in sorted(reader.values.items(), key=place):
        yield ValueFigures(value=value, figures=figures(pool, names))


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _compared(pool: LinePool, other: LinePool, names: Sequence[str], against: StoredRun) -> Comparison:
    found = compare(pool, other, names, run=against.id)
    if found is None:
        raise UsageError(
            f"--against {against.id}: the runs have no problem in common; a problem is known by its lines' "
            "group, or their name without one"
        )
    return found
