"""The lines of a chaos run: programs of every worth, all cheap, one in five the same as an earlier one."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.commands import HEADER, PROGRAMS
from tests.processes import PATIENCE

#: How much memory a check of a chaos run may use. What never ends takes a third of it in its four seconds:
#: on a faster machine too, its time has to be what ends it.
MEMORY_MIB = 768

#: One line in so many repeats an earlier one's program.
_REPEATED = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class Kind:
    """A kind of program: how often it comes, its text, and what else its line says.

    That is the time it may take where that is its own, and what it has to prove where only an audit of the
    compiled program can tell that it does: such checks write to the worker's disk.
    """

    weight: int
    program: str
    timeout: float | None = None
    statement: str | None = None

    def line(self, number: int) -> dict[str, object]:
        """Return the fields of a line that has this program under a number of its own."""
        line: dict[str, object] = {"predicted_proof": HEADER + self.program.format(n=number)}
        if self.timeout is not None:
            line["timeout"] = self.timeout
        if self.statement is not None:
            line |= {"header": HEADER, "formal_statement": self.statement.format(n=number)}
        return line


_CLIMBS = """class Climbs{n} (n : Nat) where
  x : Nat
instance climb{n} (n : Nat) [Climbs{n} (Nat.succ n)] : Climbs{n} n := Climbs{n}.mk 0
set_option maxHeartbeats 1 in
theorem t{n} : Climbs{n}.x 0 = 0 := Eq.refl _
"""
_TACTICS = """theorem t{n} (p q : Prop) (h : p ∧ q) : q ∧ p := by
  constructor
  exact h.right
  exact h.left
"""
_INDIRECT = "def helper{n} : Nat := 0\n" + PROGRAMS["proved", "ok"]
_EVER_MORE = """theorem dup{n} {{p : Prop}} (h k : p) : p := h
theorem t{n} (p : Prop) : p ∨ ¬p := by
  repeat' apply dup{n}
"""

#: What comes to an end. Some proofs have a time of their own that is ample, and shorter than a worker is
#: stopped for: a worker that slept must not call them late.
KINDS = (
    Kind(weight=25, program=PROGRAMS["proved", "ok"]),
    Kind(weight=15, program=_TACTICS, timeout=5.0),
    Kind(weight=15, program=PROGRAMS["rejected", "error"]),
    Kind(weight=10, program=PROGRAMS["rejected", "has_sorry"]),
    Kind(weight=5, program=_CLIMBS),
    Kind(weight=5, program="axiom a{n} : False\ntheorem t{n} : False := a{n}\n"),
    Kind(weight=5, program="theorem t{n} : Nat.shiftLeft 1 (2 ^ 34) % 3 = 1 := by decide\n"),
    Kind(weight=8, program=_INDIRECT, statement="theorem t{n} : True := by\n"),
    Kind(weight=4, program=_INDIRECT, statement="theorem t{n} : True ∧ True := by\n"),
    Kind(weight=1, program=_EVER_MORE, timeout=30.0 * PATIENCE),
    Kind(weight=1, program="theorem t{n} : True := True.intro -- \0\n"),
)


def entries(count: int, seed: int, *, endless_seconds: float = 0.7) -> list[dict[str, object]]:
    """Return so many manifest lines, the same for the same seed; what never ends may take so long."""
    kinds = (*KINDS, Kind(weight=15, program=PROGRAMS["timeout", "wall_limit"], timeout=endless_seconds))
    return list(_entries(count, kinds, random.Random(seed)))


def _entries(count: int, kinds: Sequence[Kind], chance: random.Random) -> Iterator[dict[str, object]]:
    weights = [kind.weight for kind in kinds]
    first: list[dict[str, object]] = []
    for number in range(count):
        if first and chance.randrange(_REPEATED) == 0:
            program = chance.choice(first)
        else:
            program = chance.choices(kinds, weights)[0].line(number)
            first.append(program)
        yield {"name": f"line{number}", **program, **_others(number, chance)}


def _others(number: int, chance: random.Random) -> dict[str, object]:
    """Return fields that are none of the farm's, which it has to leave as they are."""
    return {"split": "chaos", "∀": {"order": number, "scores": [chance.random(), None, "é\n"]}}


def write(path: Path, lines: list[dict[str, object]]) -> Path:
    """Write lines to a manifest, half of them with characters escaped."""
    texts = (json.dumps(line, ensure_ascii=number % 2 == 0) for number, line in enumerate(lines))
    path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return path
