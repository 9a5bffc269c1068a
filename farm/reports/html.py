"""Report step: renders the report as one HTML page without network access or scripts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from markupsafe import Markup

from farm.reports import svg, words
from farm.reports.comparison import Comparison
from farm.reports.figures import Figures
from farm.reports.rendering import rendered
from farm.reports.report import RunFigures, RunsReport
from farm.reports.svg import WIDTH, Caption, Drawing, Point, cut, share_label, ticks_to
from farm.reports.tables import proofs

#: The most rows of a long table, rows of a plot and flipped names on the page; `--json` has all.
MOST_ROWS, MOST_PLOTTED, MOST_NAMES = 100, 12, 60


def page(report: RunsReport, *, made_at: datetime) -> str:
    """Return the page; all foreign text in it is escaped."""
    return rendered(
        "report.html",
        report=report,
        total=report.total,
        words=words,
        plots={key: Markup(plot) for key, plot in _plots(report).items()},  # noqa: S704 - escaped by the writer
        made_at=made_at.strftime("%Y-%m-%d %H:%M %Z"),
        proofs=proofs(report.runs),
        most_rows=MOST_ROWS,
        most_names=MOST_NAMES,
        most_curves=MOST_CURVES,
    )


def _plots(report: RunsReport) -> dict[str, str]:
    total = report.total
    plots = {"verdicts": _verdicts(total), "use": _use(total), "costs": _costs(total)}
    if any(at.value is not None for at in total.pass_at):
        plots["pass_at"] = _pass_at(total)
    if len(report.runs) > 1:
        plots["curves"] = _curves(report.runs)
        plots["runs"] = _side_by_side("runs", "run", words.run_rows(report))
    if report.values:
        plots["values"] = _side_by_side("values", words.name(report.by), words.value_rows(report))
    if report.comparison is not None and any(not each.is_of_few for each in report.comparison.pass_at):
        plots["against"] = _against(report.comparison)
    return plots


def _verdicts(total: Figures) -> str:
    parts = verdict_parts(total)
    seen = ", ".join(f"{words.VERDICTS[kind]} {words.whole(number)}" for kind, number in parts if number)
    caption = Caption(key="verdicts", title="Lines by verdict", description=f"One bar of all lines: {seen}.")
    return svg.stacked(parts, caption)


def verdict_parts(total: Figures) -> list[tuple[str, int]]:
    """Return how many lines have each verdict, or why they have none, in the order of the bar."""
    lines = dict.fromkeys(words.VERDICTS, 0)
    for each in total.verdicts:
        lines[each.verdict] += each.lines
    lines["cancelled"], lines["unfinished"] = total.unknown.cancelled, total.unknown.unfinished
    return list(lines.items())


def _pass_at(total: Figures) -> str:
    is_bounded = total.unknown.lines > 0
    points = [
        Point(
            name=words.whole(at.k),
            value=at.value,
            low=at.low,
            high=at.high,
            least=at.at_least if is_bounded else None,
            most=at.at_most if is_bounded else None,
        )
        for at in total.pass_at
        if at.value is not None and at.low is not None and at.high is not None
    ]
    seen = ", ".join(f"pass@{point.name} {words.percent(point.value)}" for point in points)
    bounds = " Dashed lines: unknown samples taken as failures and as proofs." if is_bounded else ""
    caption = Caption(
        key="pass-at", title="pass@k", description=f"{seen}, in a band of 95% intervals.{bounds}"
    )
    return svg.curve(points, caption, axis="k samples of a problem")


def _curves(runs: Sequence[RunFigures]) -> str:
    """Return pass@k of each run in one figure, "" without a curve."""
    found = [Curve(name=each.run.id, points=_by_k(each.figures)) for each in runs]
    known = [each for each in found if each.points]
    if not known:
        return ""
    seen = "; ".join(
        f"run {each.name}: "
        + ", ".join(f"pass@{point.name} {words.percent(point.value)}" for point in each.points.values())
        for each in known[:MOST_CURVES]
    )
    caption = Caption(key="curves", title="pass@k of each run", description=f"{seen}, with 95% intervals.")
    return curves(known, caption, axis="k samples of a problem")


def _by_k(figures: Figures) -> dict[int, Point]:
    return {
        at.k: Point(name=words.whole(at.k), value=at.value, low=at.low, high=at.high)
        for at in figures.pass_at
        if at.value is not None and at.low is not None and at.high is not None
    }


def _side_by_side(key: str, what: str, named: Sequence[tuple[str, Figures]]) -> str:
    points = []
    for name, figures in named[:MOST_PLOTTED]:
        first = figures.at(1)
        if first and first.value is not None and first.low is not None and first.high is not None:
            points.append(Point(name=name, value=first.value, low=first.low, high=first.high))
    if not points:
        return ""
    seen = ", ".join(f"{point.name} {words.percent(point.value)}" for point in points)
    caption = Caption(key=key, title=f"pass@1 by {what}", description=f"With 95% intervals: {seen}.")
    return svg.rows(points, caption)


def _against(found: Comparison) -> str:
    points = [
        Point(name=f"pass@{each.k}", value=each.difference, low=each.low, high=each.high)
        for each in found.pass_at
        if each.low is not None and each.high is not None
    ]
    seen = ", ".join(f"{point.name} {words.points(point.value)}" for point in points)
    caption = Caption(
        key="against",
        title=f"Difference from run {found.run} in percentage points",
        description=f"With 95% intervals: {seen}.",
    )
    return svg.rows(points, caption, signed=True)


def _use(total: Figures) -> str:
    wall = total.limits[0]
    proved, rejected = wall.proved_tenths or (), wall.rejected_tenths or ()
    caption = Caption(
        key="use",
        title="Lines by the share of the wall time limit that they used",
        description="Per tenth of the limit: proofs "
        + ", ".join(map(words.whole, proved))
        + "; rejected lines "
        + ", ".join(map(words.whole, rejected))
        + ".",
    )
    bins = list(zip(proved, rejected, strict=True))
    labels = [f"{20 * each}%" for each in range(6)]
    return svg.columns(
        bins, ("proved", "rejected"), caption, axis="share of the wall time limit", labels=labels
    )


def _costs(total: Figures) -> str:
    named = [
        (words.VERDICTS[each.verdict], each.verdict, each.cpu_seconds, words.seconds(each.cpu_seconds))
        for each in total.costs.by_verdict
    ]
    seen = ", ".join(f"{name} {label}" for name, _, _, label in named)
    caption = Caption(key="costs", title="Processor time by verdict", description=f"{seen}.")
    return svg.bars(named, caption)


#: At most this many curves: the style sheet has a colour and a dash for each.
MOST_CURVES = 6

_LEFT, _RIGHT, _TOP, _REACH = 48.0, 22.0, 16.0, 190.0
#: How far apart the intervals of two curves stand at one place, and how much a row of the legend takes.
_APART, _ROW, _IN_A_ROW = 6.0, 22.0, 2


@dataclass(frozen=True, kw_only=True, slots=True)
class Curve:
    """A name, and the values by k."""

    name: str
    points: dict[int, Point]


def curves(found: Sequence[Curve], caption: Caption, *, axis: str) -> str:
    """Return up to `MOST_CURVES` curves over the same ks, the places of equal distance."""
    shown = found[:MOST_CURVES]
    ks = sorted({k for each in shown for k in each.points})
    rows = -(-len(shown) // _IN_A_ROW)
    floor = _TOP + _REACH
    drawing = Drawing(floor + 46 + _ROW * rows, caption)
    ticks = ticks_to(max(point.high for each in shown for point in each.points.values()))
    step = (WIDTH - _LEFT - _RIGHT - 40) / max(1, len(ks) - 1)
    places = {k: _LEFT + 20 + step * number for number, k in enumerate(ks)}
    _draw_axes(drawing, ticks, places, floor)
    for number, each in enumerate(shown):
        aside = _APART * (number - (len(shown) - 1) / 2)
        _draw_curve(drawing, each, number, {k: x + aside for k, x in places.items()}, ticks[-1])
        left = _LEFT + (WIDTH - _LEFT) / _IN_A_ROW * (number % _IN_A_ROW)
        y = floor + 52 + _ROW * (number // _IN_A_ROW)
        drawing.line((left, y - 5), (left + 26, y - 5), f"curve curve-{number}")
        drawing.text(left + 32, y, cut(each.name), "name", anchor="start")
    drawing.text((_LEFT + WIDTH - _RIGHT) / 2, floor + 34, axis, "axis-name")
    return str(drawing)


def _draw_axes(drawing: Drawing, ticks: Sequence[float], places: dict[int, float], floor: float) -> None:
    for tick in ticks:
        y = _y(tick, ticks[-1])
        drawing.line((_LEFT, y), (WIDTH - _RIGHT, y), "grid" if tick else "axis")
        drawing.text(_LEFT - 7, y + 4.5, share_label(tick), anchor="end")
    for k, x in places.items():
        drawing.text(x, floor + 17, str(k))


def _draw_curve(drawing: Drawing, curve: Curve, number: int, xs: dict[int, float], highest: float) -> None:
    known = sorted(curve.points.items())
    for k, point in known:
        drawing.line(
            (xs[k], _y(point.low, highest)), (xs[k], _y(point.high, highest)), f"whisker curve-{number}"
        )
    drawing.along([(xs[k], _y(point.value, highest)) for k, point in known], f"curve curve-{number}")
    for k, point in known:
        drawing.dot(xs[k], _y(point.value, highest), f"spot spot-{number}")


def _y(share: float, highest: float) -> float:
    return _TOP + _REACH * (1 - share / highest)
