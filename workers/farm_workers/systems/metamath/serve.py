"""Metamath step, the image: a process that has read a database, and forks for every proof.

It is called as ``python -I -S -c "...; from farm_workers.systems.metamath.serve import main; main()"
WHERE USER DATABASE`` in a box, with one end of a socket as its standard input (see
`farm_workers.images.protocol`). A text is read by its fork and never here.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn, cast

from farm_workers.images import protocol
from farm_workers.images.child import Surroundings, at_the_gate, limit, read, take_descriptors
from farm_workers.images.serve import begin, give_up, recipe_of, serve
from farm_workers.systems.metamath.block import examine
from farm_workers.systems.metamath.canaries import canaries
from farm_workers.systems.metamath.database import Database, MalformedText

_NO_MEMORY = b'{"found": "limit", "limit": "memory"}'


def main() -> NoReturn:
    """Be an image, to the end."""
    where, user, path = sys.argv[1:]
    worker, _ = begin(namespaces=False)  # a fork only computes: it needs no mounts of its own
    recipe_of(worker)  # Metamath has none
    try:
        database = Database(Path(path).read_text(encoding="ascii"))
    except (MalformedText, OSError, ValueError) as error:
        give_up(worker, error)

    def work(_what: bytes, place: Surroundings, files: Sequence[int]) -> int:
        return _work(database, place, files)

    serve(worker, None, work, user=int(user), where=where)


def _work(database: Database, place: Surroundings, files: Sequence[int]) -> int:
    """Verify one proof in this process, which is to end: its answer is one JSON object on standard output."""
    if at_the_gate(place, files, protocol.TASK, list) is None:
        return 1
    asked = cast("_Asked", read(files[protocol.REQUEST]))
    take_descriptors(files, place.kept)
    limit(asked, place.data_bytes)
    if place.seal_calls:
        place.seal_calls.take()
    try:
        answer = json.dumps(_answer(database, asked)).encode()
    except MemoryError:
        answer = _NO_MEMORY
    left = memoryview(answer)
    while left:
        left = left[os.write(1, left) :]
    return 0


class _Asked(protocol.Asked, total=False):
    """The request of a verification, as JSON: of a program, or of the database's canaries."""

    challenge: str | None
    canaries: bool


def _answer(database: Database, asked: _Asked) -> object:
    if "canaries" in asked:
        return [canary._asdict() for canary in canaries(database)]
    return examine(database, asked["program"], asked["challenge"])
