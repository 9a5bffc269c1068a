"""Challenge step: the statement that a submission has to prove, as a program of the farm's own. Pure.

A challenge is the dataset's header and statement with ``sorry`` for a proof. Compiled, it says what the
target's name, type and universe parameters are, and what its statement stands on: nothing that a submission
could print.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from farm.assembly.declaration import read_target
from farm.characters import encoded

#: The axioms that a proof may rest on unless a run says otherwise: those of Lean's own library.
ALLOWED_AXIOMS = ("propext", "Classical.choice", "Quot.sound")


@dataclass(frozen=True, kw_only=True, slots=True)
class Challenge:
    """What is to be proved: a program that states it, and the target's name as the statement writes it.

    The full name is known once the program is compiled: the header may have opened a namespace.
    """

    program: str
    name: str

    @property
    def sha256(self) -> str:
        """The challenge's identity."""
        return hashlib.sha256(encoded(f"{self.name}\0{self.program}")).hexdigest()


def challenge_to(header: str, statement: str) -> Challenge | None:
    """Return the challenge to prove a statement under a header; None when the statement is blank.

    What declares nothing, or no proposition, is a challenge as well: that it cannot be compiled to a single
    theorem is found when it is.
    """
    if not statement.strip():
        return None
    target = read_target(statement)
    above = header if not header or header.endswith("\n") else f"{header}\n"
    kept = statement[: target.core_end if target.core else target.kept].rstrip()
    if not target.core:
        # On a line of its own: what ends in a comment must not hide it.
        kept += "\n " if kept.endswith(":=") else "\n  :="
    return Challenge(program=f"{above}{kept} sorry\n", name=target.name)
