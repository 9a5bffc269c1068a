"""Children, their side: a child answers pieces for its parent, until either of them dies.

`farm.runs.children.pool` starts it as ``python -m farm.runs.children.answering PARENT``, the parent's process
id. Its standard input has the function that makes its work and the errors to return, then pieces; its output
has their answers, or errors. All are pickled.
"""

from __future__ import annotations

import gc
import os
import pickle
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread

from farm.orphans import die_with
from farm.runs.children.pieces import ManifestPiece

# Allocations between two runs of the garbage collector: lines make no reference cycles.
_OBJECTS = 100_000


def _serve() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent gets it, and kills its children
    source, target = os.fdopen(os.dup(0), "rb"), os.dup(1)
    os.dup2(2, 1)  # text that is printed by mistake is no answer
    begin, errors = pickle.load(source)  # noqa: S301 - from the process that started this one
    answer = begin()
    gc.freeze()
    gc.set_threshold(_OBJECTS)
    answers: SimpleQueue[bytes] = SimpleQueue()
    Thread(target=_send, args=(target, answers), daemon=True).start()
    while True:
        answers.put(_answered(answer, pickle.load(source), errors))  # noqa: S301


def _answered(
    answer: Callable[[ManifestPiece], object], piece: ManifestPiece, errors: tuple[type[Exception], ...]
) -> bytes:
    try:
        message = answer(piece)
    except errors as error:
        message = error
    return pickle.dumps(message, pickle.HIGHEST_PROTOCOL)


def _send(target: int, answers: SimpleQueue[bytes]) -> None:
    """Send answers while the next piece is worked on: an answer waits for its turn to be read."""
    while True:
        rest = memoryview(answers.get())
        while rest:
            rest = rest[os.write(target, rest) :]


if __name__ == "__main__":
    die_with(int(sys.argv[1]))
    with suppress(EOFError):  # the parent is dead, and the kernel cannot signal that
        _serve()
