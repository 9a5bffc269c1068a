"""Challenge step: the statement that a submission has to prove, as a program of the farm's own. Pure.

A challenge is the dataset's header and statement with ``sorry`` for a proof. Compiled, it says what the
target's name, type and universe parameters are, and what its statement stands on: nothing that a submission
could print.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
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
    """Whether a program states what the challenge does, beyond doubt and by the look of its text alone.

    So it is when the statement stands in it through its ``:=``, outside the submitted spans, and a submission
    says nothing before it that is no comment: then nobody but the dataset has worded it, nothing could have
    changed what it means, and nothing could have made a comment of it.
    """
    core = read_target(challenge.program).core
    at = program.find(core) if core else -1
    for _ in range(_MOST_PLACES):
        if at < 0:
            return False
        if not any(start < at + len(core) and at < end for start, end in submitted):
            return not _is_spoken(program, at, submitted)
        at = program.find(core, at + 1)
    return False


#: In so many places the statement is looked for; a submission can repeat it as often as it likes.
_MOST_PLACES = 20


def _is_spoken(program: str, until: int, submitted: Sequence[tuple[int, int]]) -> bool:
    """Whether a submission says more than comments before a place, or what Lean may see as more.

    A comment that does not end where the submission does takes something away from what is the dataset's.
    """
    own = sorted((start, end) for start, end in submitted if start < until)
    if not own:
        return False
    for token in tokens(program):
        if token.start >= until:
            return False
        start, end = own[max(0, bisect_left(own, (token.end,)) - 1)]
        if start < token.end and token.start < end:
            is_own = start <= token.start and token.end <= min(end, until)
            if token.kind is not Kind.COMMENT or not is_own or is_doubtful(program, token):
                return True
    return False


def challenge_of(entry: Entry) -> Challenge | None:
    """Return the challenge of a manifest line; None when it has no statement.

    What declares nothing, or no proposition, is a challenge as well: that it cannot be compiled to a single
    theorem is found when it is.
    """
    return challenge_to(entry.header, entry.formal_statement)


def challenge_to(header: str, statement: str) -> Challenge | None:
    """Return the challenge to prove a statement under a header, as `challenge_of` does."""
    if not statement.strip():
        return None
    target = read_target(statement)
    until = target.core_end if target.core else target.kept
    joint = "" if target.core or statement[:until].rstrip().endswith(":=") else " :="
    above = header if not header or header.endswith("\n") else f"{header}\n"
    return Challenge(program=f"{above}{statement[:until].rstrip()}{joint} sorry\n", name=target.name)
