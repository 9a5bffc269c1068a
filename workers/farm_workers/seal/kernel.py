"""Seal step, kernel: looks names up in the imported environment, and has the kernel check modules in it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from farm_workers.audit.findings import ModuleFinding, Word, found
from farm_workers.audit.olean import Name
from farm_workers.binding import table
from farm_workers.binding.lean import Lean
from farm_workers.binding.objects import NOTHING, LeanError, shared
from farm_workers.replay.replay import KernelRefused, compared, replayed
from farm_workers.seal.evaluation import Compiled, evaluated
from farm_workers.seal.memory import WORDS
from farm_workers.seal.rebuild import Rebuilt

#: The most characters of the kernel's message in a report.
_MOST_CHARACTERS = 500
_LIMITS = (
    (Word.KERNEL_LIMIT, re.compile(r"^\(kernel\) deep recursion", re.M)),
    (Word.KERNEL_MEMORY, re.compile(r"^\(kernel\) excessive memory", re.M)),
    (Word.KERNEL_TIME, re.compile(r"^\(kernel\) (deterministic timeout|interrupted)", re.M)),
)


#: Prints terms of the kernel's environment, given their addresses; None for a term that cannot be printed.
Printed = Callable[[int, Sequence[int]], list[str | None]]


def not_printed(_environment: int, terms: Sequence[int]) -> list[str | None]:
    """Return None for each term: the `Printed` of a process that has no printer."""
    return [None] * len(terms)


class Imported:
    """Looks names up in an environment; the image of `rebuilt` holds the objects of these names."""

    def __init__(self, lean: Lean, environment: int, rebuilt: Rebuilt) -> None:
        self._find = lean.function(table.FIND)
        self._environment, self._image = environment, rebuilt.image

    def has(self, name: Name) -> bool:
        """Return whether the environment declares a name."""
        return self._found(name) != NOTHING

    def is_axiom(self, name: Name) -> bool:
        """Return whether the environment declares an axiom of this name."""
        found = self._found(name)
        return found != NOTHING and WORDS[WORDS[(found >> 3) + 1] >> 3] >> 56 == 0

    def _found(self, name: Name) -> int:
        return self._find(shared(self._environment), self._image.name(name))


class Checked(NamedTuple):
    """The facts of a replay, the findings against the module, and the kernel's environment, 0 without one."""

    replay: dict[str, object]
    findings: list[ModuleFinding]
    environment: int = 0


def check(
    lean: Lean, environment: int, rebuilt: Rebuilt, believed: Sequence[Name], compiled: Compiled
) -> Checked:
    """Have the kernel check all constants of a module, and evaluate the terms of the axioms in `believed`."""
    names = [rebuilt.image.names[name] for name in rebuilt.constants]
    constants = list(rebuilt.constants.values())
    try:
        after = replayed(lean, names, constants, shared(environment))
        done = compared(lean, names, constants, shared(after))
        findings = evaluated(lean, after, rebuilt, believed, compiled)
    except (KernelRefused, LeanError) as error:
        said = str(error)[:_MOST_CHARACTERS]
        word = next((word for word, pattern in _LIMITS if pattern.search(said)), Word.KERNEL)
        return Checked({"accepted": False, "said": said, "constants": 0}, [_finding(word, said)])
    return Checked({"accepted": True, "said": "", "constants": done.constants}, findings, after)


def _finding(word: Word, said: str) -> ModuleFinding:
    does = "rejects the module" if word is Word.KERNEL else "gave up on the module"
    return found(word, None, f"Lean's kernel {does}: {said}")
