"""Challenge step: the statement that a submission has to prove, as a program of the farm's own. Pure.

A challenge is the dataset's header, or context, and statement with ``sorry`` for a proof. Compiled, it says
what the target's name, type and universe parameters are, and what its statement stands on: nothing that a
submission could print.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from farm.assembly.above import above
from farm.assembly.declaration import read_target
from farm.characters import encoded

#: The axioms that a proof may rest on unless a run says otherwise: those of Lean's own library.
ALLOWED_AXIOMS = ("propext", "Classical.choice", "Quot.sound")

#: What a judge of Metamath or HOL Light says of a challenge without a name: no statement could be read.
NOT_STATED = "no program could be made of the line; see its formal_statement, header and context"


@dataclass(frozen=True, kw_only=True, slots=True)
class Challenge:
    """What is to be proved: a program that states it, and the target's name as the statement writes it.

    The full name is known once the program is compiled: the header may have opened a namespace. The program
    begins with the dataset's context up to `context_end`, 0 without one.
    """

    program: str
    name: str
    context_end: int = 0

    @property
    def sha256(self) -> str:
        """The challenge's identity."""
        within = f"\0{self.context_end}" if self.context_end else ""
        return hashlib.sha256(encoded(f"{self.name}\0{self.program}{within}")).hexdigest()


def challenge_to(header: str, statement: str, context: str = "") -> Challenge | None:
    """Return the challenge to prove a statement under a header or a context; None for a blank statement.

    What declares nothing, or no proposition, is a challenge as well: that it cannot be compiled to a single
    theorem is found when it is.
    """
    if not statement.strip():
        return None
    dataset = above(header, context, statement)
    target = read_target(dataset.statement)
    kept = dataset.statement[: target.core_end if target.core else target.kept].rstrip()
    if not target.core:
        # On a line of its own: what ends in a comment must not hide it.
        kept += "\n " if kept.endswith(":=") else "\n  :="
    program = f"{dataset.written}{kept} sorry\n"
    return Challenge(program=program, name=target.name, context_end=dataset.context_end(program))
