"""Curves of several runs in one figure: each is drawn over the same ks, and named as text."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from farm.reports.html import MOST_CURVES, Curve, curves
from farm.reports.svg import Caption, Point

CAPTION = Caption(key="k", title="t", description="d")


def curve(name: str, *values: tuple[int, float]) -> Curve:
    points = {k: Point(name=str(k), value=value, low=value - 0.1, high=value + 0.1) for k, value in values}
    return Curve(name=name, points=points)


def drawn(*found: Curve) -> list[ET.Element]:
    return list(ET.fromstring(curves(found, CAPTION, axis="k")))


def test_each_run_has_a_line_a_dot_and_an_interval_at_each_k() -> None:
    parts = drawn(curve("a", (1, 0.2), (2, 0.4), (4, 0.6)), curve("b", (1, 0.3), (4, 0.5)))
    kinds = [each.get("class") for each in parts]
    assert [kinds.count(f"spot spot-{number}") for number in (0, 1)] == [3, 2]
    assert [kinds.count(f"whisker curve-{number}") for number in (0, 1)] == [3, 2]
    assert [each.text for each in parts if each.get("class") == "name"] == ["a", "b"]


def test_a_value_is_drawn_at_its_height() -> None:
    # The highest bound is 0.5, so the axis ends at 50 %: 0.4 is at a fifth of the 190 units below the top.
    (dot,) = [each for each in drawn(curve("a", (1, 0.4))) if each.get("class") == "spot spot-0"]
    assert dot.get("cy") == f"{16 + 190 / 5:g}"


def test_names_are_text_and_more_curves_than_colours_are_left_out() -> None:
    found = [curve(f"<b>{number}", (1, 0.5)) for number in range(MOST_CURVES + 2)]
    names = [each.text for each in drawn(*found) if each.get("class") == "name"]
    assert names == [f"<b>{number}" for number in range(MOST_CURVES)]
