"""Tactics step: counts the tactics of proved programs on this machine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice

from farm.errors import UsageError
from farm.limits import Limits
from farm.reports.tactics import Counted
from farm.store.proofs import ProvedProgram
from farm_workers.box import once as box
from farm_workers.checking.checker import Checker
from farm_workers.checking.side_by_side import side_by_side
from farm_workers.environments.lean_environment import LeanEnvironment
from farm_workers.lean.outlined import NoOutline, Outline

#: A program may take this many times the seconds of its check: this machine may be slower, and reads more.
_SLOWER = 3.0
#: Programs that are read at once, so that memory does not grow with their number.
_TOGETHER = 256


@dataclass(frozen=True, kw_only=True, slots=True)
class Counting:
    """Counts tactics, of several programs at once.

    Lean says where tactics stand. The program's own code runs in that process, so a program can lie about its
    own figures, and about no others.
    """

    checker: Checker
    environment_of: Callable[[str], LeanEnvironment]
    at_once: int

    def counted(self, programs: Iterable[ProvedProgram], done: Callable[[], None]) -> Iterator[Counted]:
        """Yield the tactics of each program, in order; `done` is called for each.

        A caller that closes the iterator early waits for no program.
        """
        todo = iter(programs)
        with side_by_side(self.at_once) as (pool, cancelled):
            while some := list(islice(todo, _TOGETHER)):
                for each in pool.map(partial(self._one, cancelled=cancelled), some):
                    done()
                    yield each

    def _one(self, program: ProvedProgram, cancelled: box.Cancelled) -> Counted:
        try:
            environment = self.environment_of(program.environment)
            outline = self.checker.outline(
                program.text, environment, limits=_limits(program), cancelled=cancelled
            )
        except (UsageError, NoOutline) as error:
            return Counted(lines=program.lines, words={}, problem=str(error))
        if any(each.failed for each in outline.commands):
            why = "Lean reports an error here: this machine's environment is another than that of the run"
            return Counted(lines=program.lines, words={}, problem=why)
        return Counted(lines=program.lines, words=_words(program, outline))


def _limits(program: ProvedProgram) -> Limits:
    own = program.limits
    return replace(own, wall_seconds=_SLOWER * own.wall_seconds, cpu_seconds=_SLOWER * own.cpu_seconds)


def _words(program: ProvedProgram, outline: Outline) -> Counter[str]:
    """Return how often the submission's own tactics begin with each word."""
    return Counter(
        step.word
        for proof in outline.proofs
        for step in proof.steps
        if any(start <= step.start < end for start, end in program.submitted)
    )
