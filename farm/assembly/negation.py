"""Assembly step, negations: the statement that another statement is false. Pure.

Lean builds the negation: the context ends with the statement, admitted, and the new theorem says
``¬ type_of% @name``. So nothing is read as Lean would read it. A proof that uses the admitted theorem itself
rests on its sorry, which the seal finds. What Lean makes of this text depends on the text above it, so the
seal compares the compiled negation with the compiled statement (`farm_workers.audit.negation`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from farm.assembly.challenge import Challenge, challenge_to

_NAME = "negation"
# A theorem without a namespace may share its name with one of an open namespace. Then the name alone has two
# meanings, and Lean tries the second alternative.
_TEXT = "theorem {name} : ¬ type_of% (by first | exact @{of} | exact @_root_.{of} : _) := by"


class Negation(NamedTuple):
    """A context and the statement below it."""

    context: str
    formal_statement: str

    @property
    def challenge(self) -> Challenge:
        """The challenge to prove it, as `challenge_to` returns it."""
        program = f"{self.context}{self.formal_statement.removesuffix('by')}sorry\n"
        return Challenge(
            program=program, name=self.name, context_end=len(self.context), negates=len(self.context)
        )

    @property
    def name(self) -> str:
        """The name of its theorem."""
        return self.formal_statement.split()[1]


def negation_of(header: str, statement: str, context: str = "") -> Negation | None:
    """Return the negation of a statement, closed over its variables; None for one that names no theorem.

    Of a statement about every universe it says that the statement is false in every universe.
    """
    challenge = challenge_to(header, statement, context)
    return None if challenge is None else negation_to(challenge)


def negation_to(challenge: Challenge) -> Negation | None:
    """Return the negation of what a challenge states; None for one that names no theorem."""
    if not challenge.name:
        return None
    name = _NAME
    if name in challenge.program:  # a text cannot contain its own digest
        name = f"{name}_{challenge.sha256[:16]}"
    return Negation(challenge.program, _TEXT.format(name=name, of=challenge.name))


def begin_of_negation(program: str) -> int:
    """Return the offset at which the farm's own negation begins in the program of its challenge."""
    return program.rstrip("\n").rfind("\n") + 1


def as_negation(challenge: Challenge) -> Challenge:
    """Return the challenge of a line of `farm submit --disprove --dry-run`: it has to state a negation.

    The statement stands in the line's context. It is compiled with the negation, for the seal compares the
    two in one module.
    """
    return replace(challenge, context_end=0, negates=max(1, begin_of_negation(challenge.program)))
