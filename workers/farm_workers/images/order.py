"""Image step, the wire: what a worker and an image, or a cell of it, say to each other.

Both speak over sockets that keep messages apart (SOCK_SEQPACKET). The worker's first message to an image is
`RECIPE` with the header's file; the image answers `READY`, or why it cannot serve. One that is forked from
another gets no recipe: what it is to read is in the order to that one. From then on the worker sends orders,
one byte and file descriptors, and the image answers nothing: the cell's own socket is among the descriptors,
and over that the cell says `READY` (with its folder), is told `GO`, and says at its end what became of it; in
place of either it says that it `FAILED`, and why. So nothing that belongs to one check is ever in the memory
of the image.
"""

from __future__ import annotations

import contextlib
import os

RECIPE, CHECK, SEAL, TASK = b"r", b"c", b"s", b"t"
#: Orders to fork an image that reads on: a context, or the module that one was compiled to.
ON_CONTEXT, ON_MODULE = b"C", b"M"
#: What runs a stranger's code, and does so in a cell.
IN_CELLS = frozenset({CHECK, ON_CONTEXT})
READY, GO, FAILED = b"ready", b"go", b"failed: "
#: What a seal writes before it asks the kernel: white space, which may stand before its answer in JSON.
KERNEL_ASKED = b"\n"
MOST_BYTES, MOST_FILES = 1 << 16, 16

#: The descriptors of an order, in this order; what follows them are doors of a control group.
SOCKET, REQUEST, STDOUT, STDERR, FOLDER = range(5)
#: For a seal, the module, the challenge and the file that the sealed module is written to stand where a check
#: has its folder. The request says which of the last two are meant; any file may be in the place of another.
#: A task, which only computes, has none of these. An image has its own socket to the worker behind its folder
#: or its module.
MODULE, CHALLENGE, SEALED = 4, 5, 6
IMAGE = 5
FIRST_DOOR = {CHECK: 5, SEAL: 7, TASK: 4, ON_CONTEXT: 6, ON_MODULE: 6}

#: What a check is to write of its module: all; what the context does not declare; the same, and the context's
#: own module.
ALL, REST, APART = "all", "rest", "apart"
#: What a check leaves in its folder: its module, its context's, and goals, where it is asked for them.
MODULE_NAME, CONTEXT_NAME, GOALS_NAME = "Module.olean", "Context.olean", "goals.jsonl"


def tell(asker: int, error: OSError) -> None:
    """Say that there is no fork, and why; `asker` is the socket of its order."""
    with contextlib.suppress(OSError):  # nobody waits any more
        os.write(asker, FAILED + f"{type(error).__name__}: {error}".encode()[:1000])
