"""Checking step, threads: works on several things at once, and stops when the caller does."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from farm_workers.box import once as box


@contextmanager
def side_by_side(number: int) -> Iterator[tuple[ThreadPoolExecutor, box.Cancelled]]:
    """Give a pool of threads, and a function that returns whether the block was left.

    At the end of the block, as by Ctrl-C, work that has not begun is dropped, and work under way is waited
    for: checks that poll the function end soon.
    """
    left, pool = threading.Event(), ThreadPoolExecutor(number)
    try:
        yield pool, left.is_set
    finally:
        left.set()
        pool.shutdown(cancel_futures=True)
