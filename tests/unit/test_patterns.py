"""No regular expression takes much more than twice the time for a text of twice the length."""

from __future__ import annotations

import re

from tests.patterns import Pattern, patterns

#: In characters; what is slow is tried again at the longer ones.
SHORT, LONG = 1_500, 12_000
SUSPECT_SECONDS, MOST_SECONDS = 0.001, 0.1
#: Some machines count processor time in steps of this size. What is quadratic, and suspect, takes far longer.
STEP_SECONDS = 0.02


def _is_slow(pattern: Pattern, text: str) -> bool:
    """Return whether a text takes long, and one of twice the length much more than twice as long."""
    if _least(pattern, text, SUSPECT_SECONDS) < SUSPECT_SECONDS:
        return False
    long = text * (LONG // len(text))
    one = _least(pattern, long, MOST_SECONDS)
    return one >= MOST_SECONDS or _least(pattern, long * 2, 10 * MOST_SECONDS) > max(STEP_SECONDS, 3 * one)


def _least(pattern: Pattern, text: str, most: float) -> float:
    """Return the least of a few times: a busy machine is no fault of a pattern."""
    first = pattern.seconds(text, most=most)
    return (
        first
        if first < SUSPECT_SECONDS
        else min(first, *(pattern.seconds(text, most=most) for _ in range(2)))
    )


def _slow_text(pattern: Pattern) -> str | None:
    return next((text for text in pattern.texts(SHORT) if _is_slow(pattern, text)), None)


def test_every_pattern_takes_time_in_proportion_to_its_text() -> None:
    found = patterns()
    slow = {each.where: (each.compiled.pattern, text[:60]) for each in found if (text := _slow_text(each))}
    assert slow == {}
    assert len(found) > 100


def test_the_texts_find_a_pattern_that_is_cubic() -> None:
    cubic = Pattern(
        where="", compiled=re.compile(r"(?i)(term|attr)\w*elab\w*attr"), methods=frozenset({"search"})
    )
    assert _slow_text(cubic) is not None
