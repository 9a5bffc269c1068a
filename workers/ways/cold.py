"""Cold way: a fresh Lean for each program, which reads all that the program imports."""

from __future__ import annotations

import os
import stat
import threading
from collections import OrderedDict
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from farm.job import Limits
from workers.box import once as box
from workers.box.isolation import Isolation
from workers.environments import LeanEnvironment
from workers.lean import MODULE, cold_command, compile_command, environment_variables, parse
from workers.ways.way import COLD, Question, Reply

#: So many headers' costs are remembered.
_MOST_HEADERS = 1000


_Key = tuple[LeanEnvironment, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Cost:
    wall_seconds: float
    cpu_seconds: float


class Cold:
    """Asks a fresh Lean each time.

    A check's time starts when its imports are read. A fresh process does not tell when that is, but the
    shortest run so far with the same header says how long it takes at most: that is added to the limits of
    time. Nothing is added for a header of which no run has ended yet.
    """

    def __init__(self, isolation: Isolation) -> None:
        self._isolation = isolation
        self._costs: OrderedDict[_Key, _Cost] = OrderedDict()
        self._lock = threading.Lock()

    def ask(self, question: Question) -> Reply:
        """Run Lean on the program to its end, or to a limit."""
        return self._ask(question, None)

    def compile(self, question: Question, workshop: Path) -> tuple[Reply, BinaryIO | None]:
        """Do the same and have the module written; return it, open, if Lean ended well and left one."""
        made = workshop / "made"
        made.mkdir()
        reply = self._ask(question, made / MODULE)
        ended_well = reply.run.exit_status == 0 and reply.run.box_error is None and reply.run.limit is None
        return reply, _opened(made / MODULE) if ended_well else None

    def _ask(self, question: Question, output: Path | None) -> Reply:
        environment = question.environment
        run = box.run(
            cold_command(environment) if output is None else compile_command(environment, output),
            isolation=self._isolation,
            stdin=question.program.encode(),
            limits=self.limits(question),
            environment=environment_variables(environment),
            visible=environment.folders,
            writable=None if output is None else output.parent,
            cancelled=question.cancelled,
        )
        if run.box_error is None and run.limit is None and run.exit_status is not None:
            self._learn(question.key, _Cost(wall_seconds=run.wall_seconds, cpu_seconds=run.cpu_seconds))
        return Reply(run=run, answer=parse(run.stdout, run.stderr, mark=question.mark), way=COLD)

    def limits(self, question: Question) -> Limits:
        """Return a question's limits with what reading its imports anew may take."""
        with self._lock:
            cost = self._costs.get(question.key)
        if cost is None:
            return question.limits
        return replace(
            question.limits,
            wall_seconds=question.limits.wall_seconds + cost.wall_seconds,
            cpu_seconds=question.limits.cpu_seconds + cost.cpu_seconds,
        )

    def _learn(self, key: _Key, cost: _Cost) -> None:
        with self._lock:
            known = self._costs.get(key)
            if known is None or cost.wall_seconds < known.wall_seconds:
                self._costs[key] = cost
            self._costs.move_to_end(key)
            if len(self._costs) > _MOST_HEADERS:
                self._costs.popitem(last=False)


def _opened(module: Path) -> BinaryIO | None:
    """Open what Lean left, if it is a plain file: a submission may have put something else there."""
    try:
        file = os.open(module, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    if stat.S_ISREG(os.fstat(file).st_mode):
        return os.fdopen(file, "rb")
    os.close(file)
    return None
