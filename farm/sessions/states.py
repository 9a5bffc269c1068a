"""Session step, states: a state of a proof is its tactics. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

#: The characters of a state's id.
_ID_CHARACTERS = 24


def state_id(program: str, environment: str, root: int, tactics: Sequence[str]) -> str:
    """Return the id of a state: a digest of the program, the environment, the root and the tactics.

    Equal states of two sessions have the same id.
    """
    words = json.dumps([program, environment, root, list(tactics)], ensure_ascii=True)
    return hashlib.sha256(words.encode()).hexdigest()[:_ID_CHARACTERS]


def proof_of(tactics: Sequence[str]) -> str:
    """Return the text of a proof that runs these tactics one after the other.

    Each stands on lines of its own; parentheses hold together what a step read as several tactics, and a
    step of one tactic means the same in them.
    """
    return "by\n" + "\n".join(_block(tactic) for tactic in tactics) + "\n"


def _block(tactic: str) -> str:
    first, *rest = tactic.strip("\n").split("\n")
    lines = [f"  ({first}", *(f"   {line}" for line in rest), "  )"]
    return "\n".join(lines)
