"""Image step, the wire: the messages between a worker and an image, or a cell of it.

Both use sockets that keep messages apart (SOCK_SEQPACKET). The worker's first message to an image is `RECIPE`
with the header's file; the image answers `READY`, or the reason why it cannot serve. An image that is forked
from another gets no recipe: the order to its parent carries its input. From then on the worker sends orders,
one byte and file descriptors, and the image answers nothing: the cell's own socket is among the descriptors.
On it the cell sends `READY` (with its folder), receives `GO`, and reports its end; in place of either it
sends `FAILED` and a reason. So no data of a check is ever in the memory of the image.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from typing import TypedDict

from farm_workers.audit.answers import AnswersAsked

RECIPE, CHECK, SEAL, TASK = b"r", b"c", b"s", b"t"
#: Orders to fork an image that reads more: a context, or a context's compiled module.
ON_CONTEXT, ON_MODULE = b"C", b"M"
#: The order to fork a session, which holds states of proofs.
SESSION = b"S"
#: The orders that run untrusted code, in a cell.
IN_CELLS = frozenset({CHECK, ON_CONTEXT, SESSION})
READY, GO, FAILED = b"ready", b"go", b"failed: "
#: Written by a seal before it calls the kernel: white space, which may precede its answer in JSON.
KERNEL_ASKED = b"\n"
MOST_BYTES, MOST_FILES = 1 << 16, 16

#: The kinds of a fork's place: a cell with namespaces of its own; or a folder that the worker passes, with
#: Landlock's rules that refuse signals to others, with those of older kernels, or without any.
CELLS, SCOPES, WALLS, FOLDERS = "cells", "scopes", "walls", "folders"

#: The descriptors of an order, in this order; those behind them are files by which a fork joins its control
#: group.
SOCKET, REQUEST, STDOUT, STDERR, FOLDER, RULES = range(6)
#: For a seal, the module, the challenge, the module of a program with a hole, the file that the sealed module
#: is written to and the table of dependencies stand where a check has its folder. The request says which of
#: the last four are meant; any file may be in the place of another.
#: A task, which only computes, has none of these. Behind the folder of a cell are Landlock's rules for it, or
#: /dev/null. An image has its own socket to the worker behind those, or behind its module and the table of
#: dependencies.
MODULE, CHALLENGE, PARENT, SEALED, TABLE = 4, 5, 6, 7, 8
TABLE_OF_IMAGE, IMAGE = 5, 6
FIRST_DOOR = {CHECK: 6, SEAL: 9, TASK: 4, ON_CONTEXT: 7, ON_MODULE: 7, SESSION: 7}

#: The parts of its module that a check writes: all; the constants that the context does not declare; the
#: same, and the context's own module.
ALL, REST, APART = "all", "rest", "apart"
#: The files that a check writes to its folder: its module, its context's, and goals, if requested.
MODULE_NAME, CONTEXT_NAME, GOALS_NAME = "Module.olean", "Context.olean", "goals.jsonl"
#: The files with the answer of a reading, also of an answer in its hole, and with the forbidden tactics that
#: Lean ran.
READING_NAME, BANNED_NAME = "reading.json", "banned.json"
#: How an answer fits into its hole: as one sequence of tactics; not, because Lean's parser refuses the
#: program with it, or reads the text around it in another way; or the parser reads no part of the program
#: there.
FITS, UNREADABLE, BREAKS_OUT, NO_HOLE = "fits", "unreadable", "breaks out", "no hole"
#: The file with the declarations of an extracted file.
EXTRACTED_NAME = "extracted.jsonl"
#: The file with the outline of a file.
OUTLINE_NAME = "outline.json"


class SealAsked(TypedDict, total=False):
    """The fields of `farm_workers.seal.SealRequest` that a worker sets, as JSON."""

    target: str | None
    ends: Sequence[int] | None
    axioms: Sequence[str]
    forbidden: Sequence[str]
    native: bool
    parts_from: Sequence[int] | None
    permitted: Sequence[str]
    statement_from: Sequence[int] | None
    lists: bool
    answers: AnswersAsked | None
    hole: Sequence[int] | None
    hole_below: Sequence[int] | None
    accounts: bool
    declared: Sequence[str] | None
    replay: bool
    negates: Sequence[int] | None
    permits_library: bool


class ReadAsked(TypedDict):
    """The request of a reading: the names that the check forbids, and its program.

    The submission begins at `start` or later, in the spans `submitted`, all of them offsets in code points.
    `challenge` is the program with the statement alone, if there is one.
    """

    forbid: Sequence[str]
    program: str
    start: int
    submitted: Sequence[Sequence[int]]
    challenge: str | None


class FillAsked(TypedDict):
    """The request to read an answer in its hole: the program with the answer, and the draft with the hole.

    `answer` and `hole` are the spans in which the two differ; the context, or else the header, ends at
    `start` in both. All are offsets in code points.
    """

    program: str
    draft: str
    start: int
    answer: Sequence[int]
    hole: Sequence[int]


class ExtractAsked(TypedDict):
    """The request of an extraction: a file's text, the end of its header in code points, and what is wanted.

    `modules` are those of the repository; `most` is the most theorems that are extracted; with `states`, each
    has the goals around its tactics; with `costs`, the time and the heartbeats of its command.
    """

    program: str
    start: int
    modules: Sequence[str]
    most: int
    states: bool
    costs: bool


class OutlineAsked(TypedDict):
    """The request of an outline: a file's text, and the end of its header in code points.

    With `needs` each command has the theorems that its declarations mention.
    """

    program: str
    start: int
    needs: bool


class Banned(TypedDict):
    """First tokens of tactics and kinds of syntax that the `submitted` spans of a program must not use."""

    tokens: Sequence[str]
    kinds: Sequence[str]
    submitted: Sequence[Sequence[int]]


class Asked(TypedDict, total=False):
    """The request of a fork, as JSON: the limits of every fork, then the fields of a check and of a seal.

    With `examples` the module holds declarations that Lean would forget, named by their lines; `moved` is the
    line from which on the names tell a smaller number, and by how much it is smaller.
    `goals` are the limits within which goals are written: seconds of wall and of processor time. With
    `stop_at_error` the worker ends the fork at an error, so messages are to come early.
    """

    cpu_seconds: int
    memory_bytes: int
    tasks: int
    program: str
    mark: str
    module: str
    writes: str
    context: str
    examples: bool
    moved: Sequence[int]
    stop_at_error: bool
    goals: Sequence[float] | None
    reading: ReadAsked
    filling: FillAsked
    extracting: ExtractAsked
    outline: OutlineAsked
    banned: Banned | None
    with_sealed: bool
    with_challenge: bool
    with_parent: bool
    with_table: bool
    request: SealAsked


def tell(asker: int, error: OSError) -> None:
    """Report that there is no fork, and the reason; `asker` is the socket of its order."""
    with contextlib.suppress(OSError):  # the worker is gone
        os.write(asker, FAILED + f"{type(error).__name__}: {error}".encode()[:1000])
