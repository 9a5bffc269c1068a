"""Metamath step, the image: a process that has read a database, and forks for every proof.

It is called as ``python -I -S -c "...; from farm_workers.metamath.serve import main; main()" NAMESPACES USER
DATABASE`` in a box, with one end of a socket as its standard input (see `farm_workers.images.order`). A text
is read by its fork and never here.
"""

from __future__ import annotations

import gc
import json
import os
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from farm_workers.box import launch
from farm_workers.images import order
from farm_workers.images.child import Place, at_the_gate, clear_away, limit, read, take_descriptors
from farm_workers.images.pages import gather
from farm_workers.images.serve import CannotFork, Server, place_of, silence
from farm_workers.metamath.block import examine
from farm_workers.metamath.canaries import canaries
from farm_workers.metamath.database import Database, MalformedText

_NO_MEMORY = b'{"found": "limit", "limit": "memory"}'


def main() -> NoReturn:
    """Be an image, to the end."""
    namespaces, user, path = sys.argv[1:]
    launch.prctl(launch.PR_SET_DUMPABLE, 0)
    launch.prctl(launch.PR_SET_NO_NEW_PRIVS, 1)
    launch.drop_bounding_set()
    with socket.socket(fileno=os.dup(0)) as worker:
        silence(0, 1)
        try:
            launch.prctl(launch.PR_SET_CHILD_SUBREAPER, 1)
            _, headers, _, _ = socket.recv_fds(worker, order.MOST_BYTES, 1)
            os.close(headers[0])  # Metamath has none
            database = _ready(Path(path))
            place = place_of(worker, None, user=int(user))
            if namespaces == "1":
                clear_away()
        except (MalformedText, CannotFork, OSError, ValueError) as error:
            worker.send(f"could not create an image of {path}: {error}".encode()[: order.MOST_BYTES])
            os._exit(1)
        silence(2)
        worker.send(order.READY)
        Server(worker, lambda _what, files: _work(database, place, files)).serve()
    os._exit(0)


def _ready(path: Path) -> Database:
    """Return the database, in memory that forks share."""
    database = Database(path.read_text(encoding="ascii"))
    gc.collect()
    gc.freeze()  # what is there stays: no fork looks through it, and copies it by that
    gc.disable()
    gather()
    return database


def _work(database: Database, place: Place, files: Sequence[int]) -> int:
    """Verify one proof in this process, which is to end: its answer is one JSON object on standard output."""
    if at_the_gate(files, order.TASK, list) is None:
        return 1
    asked = read(files[order.REQUEST])
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


def _answer(database: Database, asked: dict[str, Any]) -> object:
    if "canaries" in asked:
        return [canary._asdict() for canary in canaries(database)]
    return examine(database, asked["program"], asked["challenge"])
