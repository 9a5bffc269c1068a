"""Benchmarks, the table: a figure with its bar and what was measured, in words or as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from rich.table import Table


@dataclass(frozen=True, kw_only=True, slots=True)
class Figure:
    """One thing measured several times; a figure without a bar is only shown.

    `at_least` and `at_most` are in `unit`; what counts is the median of `samples`.
    """

    name: str
    unit: str
    samples: tuple[float, ...]
    at_least: float | None = None
    at_most: float | None = None

    @property
    def measured(self) -> float:
        return median(self.samples)

    @property
    def bar(self) -> str:
        if self.at_least is not None:
            return f">= {_number(self.at_least)}"
        return "" if self.at_most is None else f"<= {_number(self.at_most)}"

    @property
    def holds(self) -> bool:
        low = float("-inf") if self.at_least is None else self.at_least
        high = float("inf") if self.at_most is None else self.at_most
        return low <= self.measured <= high

    def facts(self) -> dict[str, object]:
        """Return the figure for scripts."""
        return {
            "figure": self.name,
            "bar": self.bar,
            "measured": round(self.measured, 3),
            "unit": self.unit,
            "ok": self.holds,
            "samples": [round(sample, 3) for sample in self.samples],
        }


def table(figures: Sequence[Figure]) -> Table:
    """Return the figures as a table for people."""
    shown = Table("figure", "bar", "measured", "unit", "", "samples", box=None)
    for figure in figures:
        verdict = ("ok" if figure.holds else "below") if figure.bar else ""
        samples = " ".join(map(_number, figure.samples))
        shown.add_row(figure.name, figure.bar, _number(figure.measured), figure.unit, verdict, samples)
    return shown


def _number(value: float) -> str:
    return f"{value:,.0f}".replace(",", " ") if value >= 100 else f"{value:.3g}"
