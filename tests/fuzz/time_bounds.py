"""Bounds on time that hold on machines of any speed: how it grows, and how it compares with a plain loop.

The long instrument `growth` compares them.
"""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable

#: Shorter times are the machine's as much as the text's, and nobody waits for them.
_FLOOR_SECONDS = 0.02
#: Four times the text takes what is linear four times as long, and what is quadratic sixteen times.
_TIMES, _MOST = 4, 9.0
_ROUNDS = 5

#: Makes what is measured of a size: the text is made beforehand, the call reads it.
Prepared = Callable[[int], Callable[[], object]]


def assert_linear(prepared: Prepared, size: int) -> None:
    """Fail when a size takes much more than four times as long as a quarter of it, each at its best."""
    few = many = math.inf
    for nth in range(_ROUNDS):
        # Never the same text twice: what was kept of it would be measured.
        many = min(many, _seconds(prepared(size - nth * _STEP)))
        if many < _FLOOR_SECONDS:
            return
        few = min(few, _seconds(prepared(size // _TIMES - nth * _STEP)))
        if many <= _MOST * few:
            return
    raise AssertionError(f"{size} takes {many:.3f} s, a quarter of that {few:.3f} s")


#: Longer than any fragment that texts are made of.
_STEP = 64


def assert_quick(call: Callable[[], object], text: str, *, times: float) -> None:
    """Fail when a call takes so many times as long as Python does to look at each character of a text."""
    looking = call_takes = math.inf
    for _ in range(_ROUNDS):
        call_takes = min(call_takes, _seconds(call))
        looking = min(looking, _seconds(lambda: sum(map(ord, text))))
        if call_takes <= max(times * looking, _FLOOR_SECONDS):
            return
    raise AssertionError(f"it takes {call_takes:.3f} s, looking at the text {looking:.3f} s")


def _seconds(call: Callable[[], object]) -> float:
    """Return the processor time of a call."""
    gc.disable()  # as timeit does: when it collects is not the text's doing
    try:
        begun = time.process_time()
        call()
        return time.process_time() - begun
    finally:
        gc.enable()
