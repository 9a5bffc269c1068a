"""Work in calls of functions: a machine's speed changes how long they take, and not how many they are.

What only the processor sees, such as a search of a text by one call, is compared in time where
``FARM_TEST_GROWTH`` is set, as the long instrument ``growth`` sets it.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable
from types import FrameType

from tests.fuzz import time_bounds

#: Four times the size needs four times the calls; what is quadratic needs sixteen times as many.
_TIMES, _MOST = 4, 6
#: What is done once, whatever the size.
_AT_ALL = 200

#: Makes the work of a size: the making of its text is not counted.
Prepared = Callable[[int], Callable[[], object]]


def calls(work: Callable[[], object]) -> Counter[str]:
    """Return how often some work calls each function in this thread, those of C as well, by name."""
    found = Counter[str]()

    def count(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            found[frame.f_code.co_name] += 1
        elif event == "c_call":
            found[str(getattr(argument, "__name__", argument))] += 1

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(before)
    return found


def assert_linear(prepared: Prepared, size: int, *, timed: int) -> None:
    """Fail when a size needs many more than four times the calls of a quarter of it.

    Times are compared at the size `timed`.
    """
    if "FARM_TEST_GROWTH" in os.environ:
        time_bounds.assert_linear(prepared, timed)
        return
    prepared(1)()  # a process does some things once, such as reading its own version
    many, few = (calls(prepared(each)).total() for each in (size, size // _TIMES))
    assert many <= _MOST * few + _AT_ALL, f"{size} needs {many} calls, a quarter of it {few}"


def assert_few(prepared: Prepared, size: int, *, each: float, timed: int, times: float) -> None:
    """Fail when a text of a size needs more than `each` calls for each of its characters.

    Where times are compared, at the size `timed`, it takes at most `times` as long as a loop over them.
    """
    if "FARM_TEST_GROWTH" in os.environ:
        time_bounds.assert_quick(prepared(timed), "x" * timed, times=times)
        return
    prepared(1)()
    made = calls(prepared(size)).total()
    assert made <= each * size + _AT_ALL, f"{made} calls for {size} characters"
