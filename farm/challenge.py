"""Challenge step: the statement that a submission has to prove, as a program of the farm's own. Pure.

A challenge is the dataset's header and statement with ``sorry`` for a proof. Compiled, it says what the
target's name, type and universe parameters are, and what its statement stands on: nothing that a submission
could print.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from farm.assembly.declaration import read_target
from farm.manifest import Entry
from farm.policy import is_doubtful
from farm.scanner import Kind, tokens

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
        return hashlib.sha256(f"{self.name}\0{self.program}".encode("utf-8", "surrogatepass")).hexdigest()


def is_stated(challenge: Challenge, program: str, submitted: Sequence[tuple[int, int]]) -> bool:
    """Whether the challenge's statement, through its ``:=``, stands in a program outside the submitted spans.

    Then nobody but the dataset has worded it. What stands before it may still change what it means; but what
    could make a comment or a string of it does not count as having it stated.
    """
    core = read_target(challenge.program).core
    at = program.find(core) if core else -1
    while at >= 0:
        if not any(start < at + len(core) and at < end for start, end in submitted):
            return all(start > at for start, _ in submitted) or _is_code(program, at)
        at = program.find(core, at + 1)
    return False


def _is_code(program: str, at: int) -> bool:
    """Whether a declaration begins at a place, for Lean as well as for our own reading of the text."""
    before = [token for token in tokens(program) if token.start <= at]
    begins = bool(before) and before[-1].start == at and before[-1].kind is Kind.NAME
    return begins and not any(is_doubtful(program, token) for token in before)


def challenge_of(entry: Entry) -> Challenge | None:
    """Return the challenge of a manifest line; None when it has no statement.

    What declares nothing, or no proposition, is a challenge as well: that it cannot be compiled to a single
    theorem is found when it is.
    """
    statement = entry.formal_statement
    if not statement.strip():
        return None
    target = read_target(statement)
    until = statement.rfind(target.core) + len(target.core) if target.core else target.kept
    joint = "" if target.core or statement[:until].rstrip().endswith(":=") else " :="
    header = entry.header if not entry.header or entry.header.endswith("\n") else f"{entry.header}\n"
    return Challenge(program=f"{header}{statement[:until].rstrip()}{joint} sorry\n", name=target.name)
