"""Session step, states: a state of a proof is its tactics. Pure."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence

from farm.client.states import State

#: The characters of a state's id.
_ID_CHARACTERS = 24
_SORRY = "sorry"
#: Behind it a closing parenthesis may be part of a comment, and stands on the next line.
_COMMENT = "--"
_ONE_COMMENT = re.compile(r"\s*(?:--[^\n]*|/-.*?-/)", re.DOTALL)


def digest_of(program: str, environment: str) -> str:
    """Return the digest of a session's program and environment."""
    return hashlib.sha256(json.dumps([program, environment]).encode()).hexdigest()


def state_id(digest: str, root: int, tactics: Sequence[str]) -> str:
    """Return the id of a state: a digest of its session's digest, its root and its tactics.

    The same tactics on the same root of the same program have the same id, in any session.
    """
    words = json.dumps([digest, root, list(tactics)])
    return hashlib.sha256(words.encode()).hexdigest()[:_ID_CHARACTERS]


def runnable(tactic: str) -> str:
    """Return the text of a tactic as Lean runs it: a comment alone is no tactic, so ``skip`` precedes it."""
    place = 0
    while (comment := _ONE_COMMENT.match(tactic, place)) is not None:
        place = comment.end()
    # Lean decides: behind ``skip`` it refuses a text that it does not read as a comment.
    return tactic if place == 0 or tactic[place:].strip() else f"skip\n{tactic}"


def proof_of(tactics: Sequence[str]) -> str:
    """Return the text of a proof that runs these tactics one after the other.

    Each stands on lines of its own; parentheses hold a sequence of tactics together, and a
    single tactic means the same in them.
    """
    return "by\n" + "\n".join(_block(tactic) for tactic in tactics) + "\n"


def filled(program: str, holes: Sequence[tuple[State, Sequence[str]]]) -> str:
    """Return a program with proofs in the place of its sorries; each hole is a root's state and its tactics.

    Raises ValueError where no sorry stands.
    """
    lines = program.split("\n")
    for root, tactics in sorted(holes, key=lambda each: (-each[0].line, -each[0].column)):
        line = lines[root.line - 1]
        before, behind = line[: root.column], line[root.column :]
        if not behind.startswith(_SORRY):
            raise ValueError(f"line {root.line}, column {root.column} has no {_SORRY}")
        start = "(by" if root.is_term else "("
        inner = "\n".join(_block(tactic, root.column + 2) for tactic in tactics)
        text = f"{before}{start}\n{inner}\n{' ' * root.column}){behind.removeprefix(_SORRY)}"
        lines[root.line - 1] = text
    return "\n".join(lines)


def _block(tactic: str, column: int = 2) -> str:
    first, *rest = runnable(tactic).strip("\n").split("\n")
    space = " " * column
    if not rest and _COMMENT not in first:
        return f"{space}({first})"
    lines = [f"{space}({first}", *(f"{space} {line}" for line in rest), f"{space})"]
    return "\n".join(lines)
