"""Merges several generators for `Client`, in threads."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from typing import TypeVar

_T = TypeVar("_T")


Sources = Iterator[Callable[[], Generator[_T, None, None]]]
Heard = queue.SimpleQueue[tuple[_T] | BaseException | None]


def merged(
    sources: Sequence[Callable[[], Generator[_T, None, None]]], *, most: int
) -> Generator[_T, None, None]:
    """Yield the values of the generators as they come, running at most `most` generators at once.

    The first error ends it. The threads are daemons and stop at their next value, so an interrupted program
    does not wait for the network.
    """
    heard: Heard[_T] = queue.SimpleQueue()
    stopped = threading.Event()
    waiting, lock = iter(sources), threading.Lock()
    running = min(most, len(sources))
    for _ in range(running):
        threading.Thread(
            target=_run, args=(waiting, lock, heard, stopped), name="farm-client", daemon=True
        ).start()
    try:
        while running:
            found = heard.get()
            if found is None:
                running -= 1
            elif isinstance(found, BaseException):
                raise found
            else:
                yield found[0]
    finally:
        stopped.set()


def _run(waiting: Sources[_T], lock: threading.Lock, heard: Heard[_T], stopped: threading.Event) -> None:
    try:
        while not stopped.is_set():
            with lock:
                source = next(waiting, None)
            if source is None:
                break
            _pass_on(source, heard, stopped)
    except BaseException as error:  # noqa: BLE001 # a thread's edge: the caller's thread raises it
        heard.put(error)
    heard.put(None)


def _pass_on(
    source: Callable[[], Generator[_T, None, None]], heard: Heard[_T], stopped: threading.Event
) -> None:
    with closing(source()) as values:
        for value in values:
            heard.put((value,))
            if stopped.is_set():
                break
