"""Report step: plots as SVG that stands in a page, drawn from numbers and short texts. Pure.

Colours are the page's: elements have classes, and the style sheet gives these their look. Every text goes
through an XML writer, which escapes it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from xml.etree import ElementTree as ET

#: Units across a plot: it is shown a little larger on a desk and a little smaller on a phone.
WIDTH = 420.0

_LEFT, _RIGHT, _TOP, _BOTTOM = 48.0, 22.0, 24.0, 46.0
#: Where the names in front of rows end, and how many letters fit there.
_NAMES, _LETTERS = 116.0, 15
_ROW = 30.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Caption:
    """The caption of a plot: a key that is unique on the page, a title, and a description."""

    key: str
    title: str
    description: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Point:
    """A value at a place that has a name, with the bounds of its interval and outer bounds, where known."""

    name: str
    value: float
    low: float
    high: float
    least: float | None = None
    most: float | None = None


class Drawing:
    """A plot under construction."""

    def __init__(self, height: float, caption: Caption, *, stretches: bool = False) -> None:
        key = caption.key
        self._root = ET.Element(
            "svg",
            {
                "viewBox": f"0 0 {_n(WIDTH)} {_n(height)}",
                "role": "img",
                "aria-labelledby": f"{key}-title {key}-description",
                "class": "plot",
                **({"preserveAspectRatio": "none"} if stretches else {}),
            },
        )
        for tag, words in (("title", caption.title), ("desc", caption.description)):
            suffix = "title" if tag == "title" else "description"
            ET.SubElement(self._root, tag, {"id": f"{key}-{suffix}"}).text = words

    def __str__(self) -> str:
        """Return the drawing as it stands in a page."""
        return ET.tostring(self._root, encoding="unicode")

    def rect(self, x: float, y: float, width: float, height: float, kind: str) -> None:
        """Draw a rectangle."""
        sizes = {"x": x, "y": y, "width": max(0.0, width), "height": max(0.0, height)}
        self._add("rect", kind, {**{name: _n(value) for name, value in sizes.items()}, "rx": "1.5"})

    def line(self, start: tuple[float, float], end: tuple[float, float], kind: str) -> None:
        """Draw a straight line."""
        places = {"x1": start[0], "y1": start[1], "x2": end[0], "y2": end[1]}
        self._add("line", kind, {name: _n(value) for name, value in places.items()})

    def along(self, points: Sequence[tuple[float, float]], kind: str, *, closed: bool = False) -> None:
        """Draw a line through points, or the area inside them."""
        places = " ".join(f"{_n(x)},{_n(y)}" for x, y in points)
        self._add("polygon" if closed else "polyline", kind, {"points": places})

    def dot(self, x: float, y: float, kind: str) -> None:
        """Draw a dot."""
        self._add("circle", kind, {"cx": _n(x), "cy": _n(y), "r": "4"})

    def text(self, x: float, y: float, words: str, kind: str = "label", anchor: str = "middle") -> None:
        """Write a text, at its middle, start or end."""
        place = {"x": _n(x), "y": _n(y), "text-anchor": anchor}
        self._add("text", kind, place).text = words

    def _add(self, tag: str, kind: str, attributes: dict[str, str]) -> ET.Element:
        return ET.SubElement(self._root, tag, {"class": kind, **attributes})


def stacked(parts: Sequence[tuple[str, int]], caption: Caption) -> str:
    """Return one bar of parts with a class and a number each."""
    drawing = Drawing(30.0, caption, stretches=True)
    total = sum(number for _, number in parts)
    seen = [(kind, number) for kind, number in parts if number]
    # Every part is visible, however small.
    widths = [max(3.0, WIDTH * number / total) for _, number in seen]
    scale = WIDTH / sum(widths) if widths else 1.0
    ends = accumulate(width * scale for width in widths)
    for (kind, _), width, end in zip(seen, widths, ends, strict=True):
        drawing.rect(end - width * scale + 0.75, 0, width * scale - 1.5, 30, f"fill {kind}")
    return str(drawing)


def curve(points: Sequence[Point], caption: Caption, *, axis: str) -> str:
    """Return values from 0 to 1 along places, joined by a line in a band of their intervals."""
    height = 250.0
    drawing = Drawing(height, caption)
    highest = max(max(point.high, point.most or 0.0) for point in points)
    ticks = ticks_to(highest)
    floor, reach = height - _BOTTOM, height - _BOTTOM - _TOP
    step = (WIDTH - _LEFT - _RIGHT - 30) / max(1, len(points) - 1)
    xs = [_LEFT + 15 + step * number for number in range(len(points))]
    if len(points) == 1:
        xs = [(_LEFT + WIDTH - _RIGHT) / 2]

    def y(share: float) -> float:
        return floor - reach * share / ticks[-1]

    for tick in ticks:
        drawing.line((_LEFT, y(tick)), (WIDTH - _RIGHT, y(tick)), "grid" if tick else "axis")
        drawing.text(_LEFT - 7, y(tick) + 4.5, share_label(tick), anchor="end")
    band = [(x, y(point.high)) for x, point in zip(xs, points, strict=True)]
    band += [(x, y(point.low)) for x, point in reversed(list(zip(xs, points, strict=True)))]
    drawing.along(band, "band", closed=True)
    for bound in ("least", "most"):
        values = [getattr(point, bound) for point in points]
        if None not in values:
            drawing.along([(x, y(value)) for x, value in zip(xs, values, strict=True)], "bound")
    drawing.along([(x, y(point.value)) for x, point in zip(xs, points, strict=True)], "curve")
    _curve_points(drawing, points, xs, [y(point.value) for point in points], floor)
    drawing.text((_LEFT + WIDTH - _RIGHT) / 2, height - 6, axis, "axis-name")
    return str(drawing)


def _curve_points(
    drawing: Drawing, points: Sequence[Point], xs: Sequence[float], ys: Sequence[float], floor: float
) -> None:
    dense = len(points) > 7
    for number, (point, x, y) in enumerate(zip(points, xs, ys, strict=True)):
        if len(points) == 1:
            drawing.line((x, y - 30), (x, y + 30), "quiet")
        drawing.dot(x, y, "dot")
        drawing.text(x, floor + 17, point.name)
        if not dense or number % 2 == len(points) % 2 or number == len(points) - 1:
            drawing.text(x, y - 10, f"{100 * point.value:.0f}%", "value")


def rows(points: Sequence[Point], caption: Caption, *, signed: bool = False) -> str:
    """Return a row for each value, a dot in its interval, from 0 to 1; around zero where they are signed."""
    height = _TOP + _ROW * len(points) + 26
    drawing = Drawing(height, caption)
    furthest = max(max(abs(point.low), abs(point.high)) for point in points)
    ticks = ticks_to(furthest)
    if signed:
        ticks = [-ticks[-1], 0.0, ticks[-1]]
    left, right = _NAMES + 14, WIDTH - 64

    def x(value: float) -> float:
        return left + (right - left) * (value - ticks[0]) / (ticks[-1] - ticks[0])

    floor = _TOP + _ROW * len(points)
    for tick in ticks:
        drawing.line((x(tick), _TOP - 8), (x(tick), floor), "axis" if tick == 0 else "grid")
        label = points_label(tick) if signed and tick else share_label(tick)
        drawing.text(x(tick), floor + 17, label)
    for number, point in enumerate(points):
        y = _TOP + _ROW * number + _ROW / 2 - 4
        drawing.text(_NAMES, y + 4.5, cut(point.name), "name", anchor="end")
        drawing.line((x(point.low), y), (x(point.high), y), "interval")
        drawing.dot(x(point.value), y, "dot")
        label = points_label(point.value) if signed else f"{100 * point.value:.1f}%"
        drawing.text(WIDTH - 2, y + 4.5, label, "value", anchor="end")
    return str(drawing)


def columns(
    bins: Sequence[Sequence[int]], kinds: Sequence[str], caption: Caption, *, axis: str, labels: Sequence[str]
) -> str:
    """Return a histogram: columns of parts, one above the other, with labels between the columns."""
    height = 220.0
    drawing = Drawing(height, caption)
    highest = max(max(map(sum, bins)), 1)
    ticks = whole_ticks_to(highest)
    floor, reach = height - _BOTTOM, height - _BOTTOM - _TOP
    width = (WIDTH - _LEFT - _RIGHT) / len(bins)
    for tick in ticks:
        y = floor - reach * tick / ticks[-1]
        drawing.line((_LEFT, y), (WIDTH - _RIGHT, y), "grid" if tick else "axis")
        drawing.text(_LEFT - 7, y + 4.5, short(tick), anchor="end")
    for number, parts in enumerate(bins):
        y = floor
        for part, kind in zip(parts, kinds, strict=True):
            tall = reach * part / ticks[-1]
            drawing.rect(_LEFT + width * number + 1.5, y - tall, width - 3, tall, f"fill {kind}")
            y -= tall
    for number, label in enumerate(labels):
        drawing.text(_LEFT + (WIDTH - _LEFT - _RIGHT) * number / (len(labels) - 1), floor + 17, label)
    drawing.text((_LEFT + WIDTH - _RIGHT) / 2, height - 6, axis, "axis-name")
    return str(drawing)


def bars(named: Sequence[tuple[str, str, float, str]], caption: Caption) -> str:
    """Return a bar for each name with its class, length and label."""
    drawing = Drawing(_ROW * len(named) + 4, caption)
    longest = max((length for _, _, length, _ in named), default=0.0) or 1.0
    room = WIDTH - _NAMES - 12 - 70
    for number, (name, kind, length, label) in enumerate(named):
        y = _ROW * number + 4
        drawing.text(_NAMES, y + 15, cut(name), "name", anchor="end")
        drawing.rect(_NAMES + 12, y, max(1.5, room * length / longest), _ROW - 8, f"fill {kind}")
        drawing.text(_NAMES + 20 + room * length / longest, y + 15, label, "value", anchor="start")
    return str(drawing)


def ticks_to(highest: float) -> list[float]:
    """Return round shares from 0 to the first that is not below the highest, at most six of them."""
    for step in (0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25):
        if highest <= 5 * step:
            break
    number = max(1, math.ceil(highest / step - 1e-9))
    return [round(step * each, 6) for each in range(number + 1)]


def whole_ticks_to(highest: int) -> list[int]:
    """Return round whole numbers from 0 to the first that is not below the highest, at most six of them."""
    size = 10 ** max(0, len(str(highest)) - 1)
    steps = [max(1, size * each // 10) for each in (1, 2, 5, 10, 20)]
    step = next(each for each in steps if highest <= 5 * each)
    return [step * each for each in range(math.ceil(highest / step) + 1)]


def share_label(share: float) -> str:
    """Return a share as a tick says it."""
    return f"{100 * share:.4g}%"


def points_label(difference: float) -> str:
    """Return a difference in percentage points, with its sign."""
    rounded = round(100 * difference, 1)
    return f"{'+' if rounded > 0 else '−' if rounded < 0 else '±'}{abs(rounded):.1f}"


def short(number: int) -> str:
    """Return a number as a tick says it."""
    return f"{number / 1000:g}k" if number >= 10_000 else str(number)


def cut(text: str) -> str:
    """Return a name as long as there is room for it in front of a row."""
    return text if len(text) <= _LETTERS else text[: _LETTERS - 1] + "…"


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
