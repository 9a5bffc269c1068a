"""Pauses after costly work, in proportion to its duration and bounded. Pure."""

from __future__ import annotations

#: The longest pause. A server that is started again, or fails over, answers late once, which says nothing of
#: what the work costs.
MOST_SECONDS = 10.0


def pause_after(seconds: float, *, times: float, most: float = MOST_SECONDS) -> float:
    """Return the seconds to pause after work that took `seconds`: so many times as long, at most `most`."""
    return min(times * seconds, most)
