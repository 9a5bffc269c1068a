"""Leaderboard step: one page that ranks runs, each of a model, with the problems that they solved."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from datetime import datetime
from importlib import resources
from typing import NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from farm.errors import UsageError
from farm.judging.verdict import Outcome
from farm.reports import words
from farm.reports.figures import Figures
from farm.reports.reading import Problems
from farm.reports.report import RunFigures, RunsReport
from farm.store.outcomes import outcomes
from farm.store.queries import Queries, StoredRun
from farm.version import VERSION


class Place(NamedTuple):
    """A line of a run: its manifest, from 0, and its number in it."""

    manifest: int
    line: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Solved:
    """A problem that a run solved, its first proof, and the folder of that proof's bundle, if any."""

    problem: str
    place: Place
    bundle: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One model's row: its name, its run, its figures, and the problems that it solved.

    `environments` are those whose Lean judged its lines. `low` and `high` bound pass@1.
    """

    model: str
    run: str
    date: str
    tier: str
    environments: tuple[str, ...]
    k: int
    problems: int
    solved: int
    pass_at_1: float | None
    low: float | None
    high: float | None
    pass_at_k: float | None
    proofs: tuple[Solved, ...]

    @property
    def pass_at_1_shown(self) -> str:
        """pass@1 with its interval, in words."""
        return f"{words.percent(self.pass_at_1)} {words.interval(self.low, self.high)}".strip()


def rows(
    found: RunsReport,
    models: Mapping[str, str],
    environments: Mapping[str, Sequence[str]],
    solved: Mapping[str, Sequence[Solved]],
) -> list[Row]:
    """Return the rows, the best pass@1 first; the mappings are by the ids of runs."""
    made = [
        _row(each, models[each.run.id], tuple(environments[each.run.id]), tuple(solved[each.run.id]))
        for each in found.runs
    ]
    return sorted(made, key=lambda row: (-(row.pass_at_1 or 0.0), -row.solved, row.model))


def _row(found: RunFigures, model: str, environments: tuple[str, ...], solved: tuple[Solved, ...]) -> Row:
    figures: Figures = found.figures
    first, usual = figures.at(1), figures.at(figures.samples_usual)
    return Row(
        model=model,
        run=found.run.id,
        date=found.run.created_at.date().isoformat(),
        tier=found.run.tier,
        environments=environments,
        k=figures.samples_usual,
        problems=figures.problems,
        solved=figures.solved,
        pass_at_1=first.value if first else None,
        low=first.low if first else None,
        high=first.high if first else None,
        pass_at_k=usual.value if usual else None,
        proofs=solved,
    )


def solved_by(queries: Queries, run: StoredRun) -> Iterator[Solved]:
    """Yield the problems that a run solved, each with its first proof. Raises `ServerDown`."""
    problems, seen = Problems(), set[int]()
    with closing(outcomes(queries.engine, run.id)) as lines:
        for line in lines:
            number = problems.number(run, line)
            if line.verdict == Outcome.PROVED.value and number not in seen:
                seen.add(number)
                place = Place(manifest=line.manifest, line=line.line)
                yield Solved(problem=problems.names[number], place=place)


def require_common(found: RunsReport) -> None:
    """Raise UsageError for runs that share no problem: no order of them says anything."""
    apart = next((each for each in found.pairs if not each.problems), None)
    if apart is not None:
        raise UsageError(
            f"runs {apart.first} and {apart.second} have no decided problem in common; "
            "rank runs over the same problems, or wait until they are judged"
        )


def facts(made: Sequence[Row], found: RunsReport) -> dict[str, object]:
    """Return the leaderboard for scripts."""
    return {
        "schema": 1,
        "rows": [asdict(each) for each in made],
        "pairs": [asdict(each) for each in found.pairs],
        "notes": [each.sentence for each in words.notes(found)],
    }


def page(made: Sequence[Row], found: RunsReport, *, title: str, made_at: datetime) -> str:
    """Return the page: one HTML file that loads nothing."""
    environment = Environment(
        loader=PackageLoader("farm.reports", "page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    style = resources.files("farm.reports").joinpath("page", "report.css").read_text(encoding="utf-8")
    return environment.get_template("leaderboard.html").render(
        rows=made,
        report=found,
        title=title,
        words=words,
        style=Markup(style),  # noqa: S704 - the farm's own file
        style_digest=base64.b64encode(hashlib.sha256(style.encode()).digest()).decode(),
        made_at=made_at.strftime("%Y-%m-%d"),
        version=VERSION,
    )
