"""Tactics step: counts the tactics of proved programs on this machine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice

from farm.errors import UsageError
from farm.limits import Limits
from farm.reports.tactics import Counted
from farm.store.proofs import ProvedProgram
from farm_workers.checking.checker import Checker
from farm_workers.environments.lean_environment import LeanEnvironment
from farm_workers.lean.outlined import NoOutline, Outline

#: A program that was proved within its own limits on another machine is given more here.
_LIMITS = Limits(wall_seconds=600.0, cpu_seconds=1200.0)
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
        """Yield the tactics of each program, in order; `done` is called for each."""
        todo = iter(programs)
        with ThreadPoolExecutor(self.at_once) as pool:
            while some := list(islice(todo, _TOGETHER)):
                for each in pool.map(self._one, some):
                    done()
                    yield each

    def _one(self, program: ProvedProgram) -> Counted:
        try:
            environment = self.environment_of(program.environment)
            outline = self.checker.outline(program.text, environment, limits=_LIMITS)
        except UsageError as error:
            return Counted(lines=program.lines, words={}, problem=str(error))
        except NoOutline as error:
            return Counted(lines=program.lines, words={}, problem=str(error))
        if any(each.failed for each in outline.commands):
            why = "Lean reports an error here: this machine's environment is another than that of the run"
            return Counted(lines=program.lines, words={}, problem=why)
        return Counted(lines=program.lines, words=_words(program, outline))


def _words(program: ProvedProgram, outline: Outline) -> Counter[str]:
    """Return how often the submission's own tactics begin with each word."""
    return Counter(
        step.word
        for proof in outline.proofs
        for step in proof.steps
        if any(start <= step.start < end for start, end in program.submitted)
    )
