"""Report step: plots curves of several runs in one figure, each with its intervals and a legend. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from farm.reports.svg import WIDTH, Caption, Drawing, Point, cut, share_label, ticks_to

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
