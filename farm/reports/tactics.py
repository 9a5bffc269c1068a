"""Report step, tactics: how many tactics the proofs of a run have, and which. Pure."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from farm.reports import words
from farm.reports.tables import Cell, Table, named, percent, tenths, whole


@dataclass(frozen=True, kw_only=True, slots=True)
class Counted:
    """The tactics of one proved program, by their first words, and how many lines it proves.

    `problem` is the reason for which they could not be counted, "" where they were.
    """

    lines: int
    words: Mapping[str, int]
    problem: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class WordUse:
    """How often tactics that begin with a word stand in the proofs of a run, and in how many of these."""

    word: str
    uses: int
    proofs: int


@dataclass(frozen=True, kw_only=True, slots=True)
class TacticFigures:
    """The tactics of the proved lines of a run.

    Means and the median are over the `proofs` that were counted, those `without_tactics` among them.
    `not_counted` are the other proved lines by their reason. `words` has the most used first.
    """

    run: str
    proofs: int
    without_tactics: int
    mean_tactics: float | None
    median_tactics: float | None
    most_tactics: int | None
    words: Sequence[WordUse]
    not_counted: Mapping[str, int]

    @classmethod
    def of(cls, run: str, found: Iterable[Counted]) -> TacticFigures:
        """Return those of a run, each program once."""
        totals, uses, proofs, not_counted = Counter[int](), Counter[str](), Counter[str](), Counter[str]()
        for each in found:
            if each.problem:
                not_counted[each.problem] += each.lines
                continue
            totals[sum(each.words.values())] += each.lines
            for word, number in each.words.items():
                uses[word] += number * each.lines
                proofs[word] += each.lines
        tactics = sorted(totals.elements())
        return cls(
            run=run,
            proofs=len(tactics),
            without_tactics=totals[0],
            mean_tactics=statistics.fmean(tactics) if tactics else None,
            median_tactics=float(statistics.median(tactics)) if tactics else None,
            most_tactics=tactics[-1] if tactics else None,
            words=[
                WordUse(word=word, uses=number, proofs=proofs[word])
                for word, number in sorted(uses.items(), key=lambda use: (-use[1], use[0]))
            ],
            not_counted=dict(not_counted),
        )


def tactic_tables(runs: Sequence[TacticFigures]) -> Iterator[Table]:
    """Yield the tables of runs: their numbers of tactics, and the tactics that they use; none is empty."""
    for table in (_numbers(runs), _words(runs)):
        if table.rows:
            yield table


def _numbers(runs: Sequence[TacticFigures]) -> Table:
    return Table(
        word="tactics",
        title="tactics of proved lines",
        names=1,
        columns=("run", "proofs", "without tactics", "mean", "median", "most"),
        rows=tuple(
            (
                named(each.run),
                whole(each.proofs),
                whole(each.without_tactics),
                tenths(each.mean_tactics),
                tenths(each.median_tactics),
                whole(each.most_tactics),
            )
            for each in runs
            if each.proofs and each.most_tactics is not None
        ),
    )


def _words(runs: Sequence[TacticFigures]) -> Table:
    return Table(
        word="words",
        title="tactics by their first words",
        names=2,
        columns=("run", "tactic", "uses", "proofs", "share of proofs"),
        rows=tuple(
            (
                named(each.run),
                Cell(use.word, words.name(use.word)),
                whole(use.uses),
                whole(use.proofs),
                percent(use.proofs / each.proofs),
            )
            for each in runs
            for use in each.words
        ),
    )
