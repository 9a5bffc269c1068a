"""Preparation step, the child: blocks for the process that began it, until that has no more pieces or dies.

`farm.prepare.pool` starts it as ``python -m farm.prepare.child PARENT``, the parent's process id. On its
standard input come a `Preparer`'s arguments and then pieces, on its output go their blocks, or the error that
was found, each pickled behind its length.
"""

from __future__ import annotations

import gc
import os
import pickle
import signal
import sys

from farm.errors import FarmError
from farm.orphans import die_with
from farm.prepare.blocks import Piece, Preparer
from farm.prepare.messages import LENGTH, packed
from farm.prepare.rows import Block

# So many new objects pass between two looks for circles of dead ones, of which lines make none.
_OBJECTS = 100_000


def main() -> None:
    """Answer pieces until there are no more."""
    die_with(int(sys.argv[1]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever began it is told, and ends it
    gc.freeze()
    gc.set_threshold(_OBJECTS)
    read, write = os.dup(0), os.dup(1)
    os.dup2(2, 1)  # what is printed by mistake is no message
    options, known = pickle.loads(_received(read))  # noqa: S301 - from the process that began this one
    preparer = Preparer(options, known)
    while content := _received(read):
        piece = pickle.loads(content)  # noqa: S301
        del content
        _send(write, _answer(preparer, piece))


def _answer(preparer: Preparer, piece: Piece) -> Block | FarmError | None:
    try:
        return preparer.block(piece)
    except FarmError as error:
        return error


def _received(pipe: int) -> bytearray:
    """Return the next message; empty at the end."""
    length = _read(pipe, LENGTH.size)
    return _read(pipe, *LENGTH.unpack(length)) if length else length


def _read(pipe: int, size: int) -> bytearray:
    content = bytearray(size)
    with memoryview(content) as rest:
        filled = 0
        while filled < size:
            count = os.readv(pipe, [rest[filled:]])
            if not count:
                return bytearray()
            filled += count
    return content


def _send(pipe: int, message: object) -> None:
    rest = memoryview(packed(message))
    while rest:
        rest = rest[os.write(pipe, rest) :]


if __name__ == "__main__":
    main()
