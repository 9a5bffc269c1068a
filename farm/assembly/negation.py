"""Assembly step, negations: the statement that another statement is false. Pure.

Lean builds the negation: the context ends with the statement, admitted, and the new theorem says
``¬ type_of% @name``. So nothing is read as Lean would read it. A proof that uses the admitted theorem itself
rests on its sorry, which the seal finds.
"""

from __future__ import annotations

from typing import NamedTuple

from farm.assembly.challenge import challenge_to

_NAME = "negation"


class Negation(NamedTuple):
    """A context and the statement below it."""

    context: str
    formal_statement: str


def negation_of(header: str, statement: str, context: str = "") -> Negation | None:
    """Return the negation of a statement, closed over its variables; None for one that names no theorem.

    Of a statement about every universe it says that the statement is false in every universe.
    """
    challenge = challenge_to(header, statement, context)
    if challenge is None or not challenge.name:
        return None
    name = _NAME
    if name in challenge.program:  # a text cannot contain its own digest
        name = f"{name}_{challenge.sha256[:16]}"
    return Negation(challenge.program, f"theorem {name} : ¬ type_of% @{challenge.name} := by")
