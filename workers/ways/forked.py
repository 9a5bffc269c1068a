"""Forked way: a fork of a Lean that has started and done nothing yet; for compiling.

Starting takes Lean's shared library longer than a small program (45 ms of 60). The header comes from a
snapshot where that is asked for again and again. Only where Lean is its library (see `workers.box.launch`).
"""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path
from typing import BinaryIO

from farm.header import brings_code
from workers import forks
from workers.box.bubblewrap import python
from workers.box.cell import BoxFailed
from workers.environments import LeanEnvironment
from workers.forks.server import PerThread, Program, ServerGone
from workers.lean import MODULE, compile_words, environment_variables, parse
from workers.ways.cold import Cold
from workers.ways.snapshot import Snapshot, is_plain
from workers.ways.way import FORKED, Doubtful, Question, Reply

#: A header that is asked for so often is worth a snapshot.
_OFTEN = 3


class Forked:
    """Asks a fork of a Lean that is ready to begin; for many threads."""

    def __init__(self, servers: PerThread, cold: Cold, snapshot: Snapshot) -> None:
        self._servers, self._cold, self._snapshot = servers, cold, snapshot
        self._lock = threading.Lock()
        self._asked: Counter[tuple[LeanEnvironment, str]] = Counter()

    def compile(self, question: Question) -> tuple[Reply, BinaryIO | None]:
        """Run Lean on the program; return what came of it, and the compiled module if it ended well.

        The module is the caller's to close. Raises Doubtful when this environment's Lean cannot be forked,
        its server ended, or the program may bring code: that gets a box of its own.
        """
        environment = question.environment
        if not environment.lean[0].endswith(".so"):
            raise Doubtful("this Lean is no shared library")
        if brings_code(question.program):
            raise Doubtful("the program may bring code of its own")
        snapshot = self._header_from(question)
        try:
            server = self._servers.get(_program(environment, self._snapshot.folder))
            run, module = server.run(
                compile_words(snapshot),
                limits=self._cold.limits(question),
                stdin=question.program.encode(),
                output=MODULE,
                cancelled=question.cancelled,
            )
        except (ServerGone, BoxFailed, OSError) as error:
            raise Doubtful(str(error)) from error
        said = parse(run.stdout, run.stderr, mark=question.mark)
        if snapshot and run.box_error is None and run.limit is None and not is_plain(run, said):
            raise Doubtful("Lean died with a snapshot, or of it")
        return Reply(run=run, answer=said, way=FORKED), module

    def _header_from(self, question: Question) -> Path | None:
        """Return the snapshot of a header that is asked for often, if there can be one."""
        with self._lock:
            self._asked[question.key] += 1
            if self._asked[question.key] < _OFTEN:
                return None
        try:
            return self._snapshot.of(question)
        except Doubtful:
            return None


def _program(environment: LeanEnvironment, snapshots: Path) -> Program:
    return Program(
        command=tuple(forks.command(python(), "lean", environment.lean)),
        variables=tuple(environment_variables(environment).items()),
        visible=(*forks.FOLDERS, *environment.folders, snapshots),
    )
