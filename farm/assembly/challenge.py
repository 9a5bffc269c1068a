"""Challenge step: writes the farm's own program of the statement that a submission must prove. Pure.

A challenge is the dataset's header, or context, and statement with ``sorry`` for a proof. The compiled
challenge gives an audit the target's name, type and universe parameters, and the constants that its statement
rests on. No submission can influence them.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from farm.assembly.above import above
from farm.assembly.declaration import read_target
from farm.characters import encoded

#: The axioms that a proof may rest on unless a run says otherwise: those of Lean's own library.
ALLOWED_AXIOMS = ("propext", "Classical.choice", "Quot.sound")

#: The error of a judge of Metamath or HOL Light for a challenge without a name, the sign of a faulty line.
NOT_STATED = "no program could be made of the line; see its formal_statement, header and context"


@dataclass(frozen=True, kw_only=True, slots=True)
class Challenge:
    """A program that states the target, and the target's name as the statement writes it.

    Only the compiled program has the full name, because the header may open a namespace. The program begins
    with the dataset's context up to `context_end`, 0 without one. `beyond` is text of the farm's own below it
    that Lean has to elaborate, such as an expected answer. The negation of a dataset's statement,
    which stands above it with `sorry`, begins at the offset `negates`; that is 0 for any other challenge.
    It `admits` so many theorems in place of which a submission has proofs.
    """

    program: str
    name: str
    context_end: int = 0
    beyond: str = ""
    negates: int = 0
    admits: int = 1

    @property
    def text(self) -> str:
        """The whole text that Lean compiles."""
        return self.program + self.beyond

    @property
    def sha256(self) -> str:
        """The digest that identifies the challenge, in hex."""
        within = f"\0{self.context_end}" if self.context_end else ""
        within += f"\0{self.beyond}" if self.beyond else ""
        return hashlib.sha256(encoded(f"{self.name}\0{self.program}{within}")).hexdigest()


def challenge_to(header: str, statement: str, context: str = "") -> Challenge | None:
    """Return the challenge to prove a statement under a header or a context; None for a blank statement.

    A statement that declares nothing, or no proposition, gives a challenge too; the worker that compiles it
    finds the fault.
    """
    if not statement.strip():
        return None
    dataset = above(header, context, statement)
    target = read_target(dataset.statement)
    kept = dataset.statement[: target.core_end if target.core else target.kept].rstrip()
    if not target.core:
        # On a line of its own: a comment at the end of the statement must not hide it.
        kept += "\n " if kept.endswith(":=") else "\n  :="
    program = f"{dataset.written}{kept} sorry\n"
    return Challenge(program=program, name=target.name, context_end=dataset.context_end(program))
