"""Report step, tables: every table of a report, each cell as a value and as people read it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from farm.reports import words
from farm.reports.comparison import Comparison
from farm.reports.figures import Figures, LimitUse, PassAt
from farm.reports.pairs import PairedTest
from farm.reports.report import RunFigures, RunsReport


class Cell(NamedTuple):
    """A value, None for an unknown one, and its words."""

    value: str | float | None
    shown: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """A table with a word for machines and a title; the first `names` of its columns hold names.

    Shares are values from 0 to 1, times are seconds.
    """

    word: str
    title: str
    names: int
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


def tables(report: RunsReport) -> Iterator[Table]:
    """Yield the tables of a report, the most important first; none is empty."""
    total = report.total
    found = [verdicts(total), pass_at(total)]
    if len(report.runs) > 1:
        found.append(side_by_side("runs", "runs", "run", words.run_rows(report)))
        found.append(curves([(each.run.id, each.figures) for each in report.runs]))
        found.append(pairs(report.pairs))
    if report.by is not None:
        field = words.name(report.by)
        found.append(side_by_side("by", f"by {field}", field, words.value_rows(report)))
    if report.comparison is not None:
        found.append(against(report.comparison))
    found += [proofs(report.runs), limits(total), costs(total), slowest(total)]
    yield from (each for each in found if each.rows)


def verdicts(figures: Figures) -> Table:
    """Return the lines by verdict and reason, those without a verdict last."""
    rows = [(each.verdict, each.reason, each.lines) for each in figures.verdicts]
    unknown = figures.unknown
    rows += [("cancelled", "", unknown.cancelled), ("unfinished", "", unknown.unfinished)]
    return Table(
        word="verdicts",
        title="verdicts",
        names=2,
        columns=("verdict", "reason", "lines", "share"),
        rows=tuple(
            (named(verdict), named(reason), whole(lines), percent(lines / figures.lines))
            for verdict, reason, lines in rows
            if lines
        ),
    )


def pass_at(figures: Figures) -> Table:
    """Return pass@k for each k."""
    return Table(
        word="pass_at_k",
        title="pass@k over problems",
        names=0,
        columns=("k", "pass@k", "95% interval", "at least", "at most", "all k time out", "problems"),
        rows=tuple(
            (
                whole(each.k),
                percent(each.value),
                _interval(each.low, each.high),
                percent(each.at_least),
                percent(each.at_most),
                percent(each.all_timed_out),
                Cell(each.problems, words.of_problems(figures, each)),
            )
            for each in figures.pass_at
        ),
    )


def curves(runs: Sequence[tuple[str, Figures]]) -> Table:
    """Return pass@k of each run for each k: the curves of the page."""
    return Table(
        word="curves",
        title="pass@k of each run",
        names=1,
        columns=("run", "k", "pass@k", "95% interval", "at least", "at most", "problems"),
        rows=tuple(
            (
                named(name),
                whole(each.k),
                percent(each.value),
                _interval(each.low, each.high),
                percent(each.at_least),
                percent(each.at_most),
                Cell(each.problems, words.of_problems(found, each)),
            )
            for name, found in runs
            for each in found.pass_at
        ),
    )


def side_by_side(word: str, title: str, what: str, rows: Sequence[tuple[str, Figures]]) -> Table:
    """Return a row of figures for each run, or for each value of a field."""
    columns = ("lines", "judged", "proved", "problems", "solved", "pass@1", "interval", "pass@usual", "CPU")
    return Table(
        word=word,
        title=title,
        names=1,
        columns=(what, *columns),
        rows=tuple((named(name), *_beside(figures)) for name, figures in rows),
    )


def pairs(tests: Sequence[PairedTest]) -> Table:
    """Return a row for each pair of runs: the problems that one of them alone solves, and p values."""
    columns = ("problems", "both solve", "first alone", "second alone", "p", "p, corrected")
    return Table(
        word="pairs",
        title="runs two by two: McNemar's exact test, corrected by Holm's method",
        names=2,
        columns=("first", "second", *columns),
        rows=tuple(
            (
                named(each.first),
                named(each.second),
                *map(whole, (each.problems, each.both, each.only_first, each.only_second)),
                *(Cell(p, words.p_value(p)) for p in (each.p, each.adjusted)),
            )
            for each in tests
        ),
    )


def _beside(figures: Figures) -> tuple[Cell, ...]:
    counts = figures.lines, figures.judged, figures.proved, figures.problems, figures.solved
    first, usual = figures.at(1), figures.at(figures.samples_usual)
    return (
        *map(whole, counts),
        percent(first.value if first else None),
        _interval(first.low, first.high) if first else Cell(None, "–"),
        Cell(usual.value if usual else None, _usual(usual)),
        _seconds(figures.costs.cpu_seconds),
    )


def _usual(at: PassAt | None) -> str:
    return "–" if at is None else f"@{at.k}: {words.percent(at.value)}"


def against(found: Comparison) -> Table:
    """Return pass@k of both runs, and the differences."""
    return Table(
        word="against",
        title=f"against run {found.run}",
        names=0,
        columns=("k", "here", found.run, "difference (points)", "95% interval", "problems", ""),
        rows=tuple(
            (
                whole(each.k),
                percent(each.value),
                percent(each.against),
                Cell(each.difference, words.points(each.difference)),
                Cell(_bounds(each.low, each.high), words.points_interval(each.low, each.high)),
                whole(each.problems),
                named(words.verdict_of(each)),
            )
            for each in found.pass_at
        ),
    )


def limits(figures: Figures) -> Table:
    """Return how many lines each limit ended, and how many proofs came near it."""

    def above(use: LimitUse, tenths: int, count: Callable[[LimitUse], int]) -> Cell:
        known = use.proved_tenths is not None
        return Cell(count(use) if known else None, words.share_above(use, figures, tenths))

    return Table(
        word="limits",
        title="limits",
        names=1,
        columns=("limit", "lines ended", "proofs above half", "proofs above four fifths"),
        rows=tuple(
            (
                Cell(each.limit, words.LIMITS[each.limit]),
                whole(each.ended),
                above(each, 5, lambda use: use.proofs_above_half),
                above(each, 8, lambda use: use.proofs_above_four_fifths),
            )
            for each in figures.limits
        ),
    )


def costs(figures: Figures) -> Table:
    """Return the processor time by verdict."""
    return Table(
        word="cost",
        title="cost",
        names=1,
        columns=("verdict", "lines", "checked", "processor time", "per check"),
        rows=tuple(
            (
                Cell(each.verdict, words.VERDICTS[each.verdict]),
                whole(each.lines),
                whole(each.checked),
                _seconds(each.cpu_seconds),
                _seconds(each.mean_cpu_seconds),
            )
            for each in figures.costs.by_verdict
        ),
    )


def proofs(runs: Sequence[RunFigures]) -> Table:
    """Return the proofs of each run with one: their lengths, how many are distinct, and their cost."""
    lengths = ("mean characters", "median characters", "mean lines", "median lines")
    return Table(
        word="proofs",
        title="proofs",
        names=1,
        columns=(
            *("run", "proved", *lengths, "distinct", "per problem"),
            *("CPU per proof", "CPU per solved problem"),
        ),
        rows=tuple(
            (
                named(each.run.id),
                whole(found.proofs),
                tenths(found.mean_characters),
                tenths(found.median_characters),
                tenths(found.mean_lines),
                tenths(found.median_lines),
                whole(found.distinct_proofs) if found.sealed else Cell(None, "–"),
                tenths(found.distinct_per_problem),
                _seconds(each.figures.costs.cpu_seconds_per_proof),
                _seconds(each.figures.costs.cpu_seconds_per_solved_problem),
            )
            for each in runs
            if (found := each.proofs) is not None and found.proofs
        ),
    )


def tenths(number: float | None) -> Cell:
    """Return the cell of a number that is shown with one digit behind the point, None for an unknown one."""
    return Cell(number, "–" if number is None else f"{number:.1f}")


def slowest(figures: Figures) -> Table:
    """Return the slowest problems."""
    return Table(
        word="slowest",
        title="slowest problems",
        names=1,
        columns=("problem", "judged", "proved", "mean", "longest", "processor time"),
        rows=tuple(
            (
                Cell(each.problem, words.name(each.problem)),
                whole(each.lines),
                whole(each.proved),
                _seconds(each.mean_seconds),
                _seconds(each.longest_seconds),
                _seconds(each.cpu_seconds),
            )
            for each in figures.slowest
        ),
    )


def named(text: str) -> Cell:
    """Return the cell of a name."""
    return Cell(text, text)


def whole(number: int) -> Cell:
    """Return the cell of a whole number."""
    return Cell(number, words.whole(number))


def percent(share: float | None) -> Cell:
    """Return the cell of a share from 0 to 1, None for an unknown one."""
    return Cell(share, words.percent(share))


def _seconds(number: float | None) -> Cell:
    return Cell(number, words.seconds(number))


def _interval(low: float | None, high: float | None) -> Cell:
    return Cell(_bounds(low, high), words.interval(low, high))


def _bounds(low: float | None, high: float | None) -> str | None:
    """Return an interval for machines: its two ends with a space between."""
    return None if low is None or high is None else f"{low:.6g} {high:.6g}"
