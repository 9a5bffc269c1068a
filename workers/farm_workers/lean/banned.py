"""Lean step, banned tactics: reads the forbidden tactics that a fork listed, as untrusted text. Pure."""

from __future__ import annotations

import json

from farm.characters import storable

_MOST_USES, _MOST_TEXT = 16, 200


def read_uses(left: bytes | None) -> tuple[str, ...] | None:
    """Return a sentence for each forbidden tactic that Lean ran; None if the fork left no list of them."""
    try:
        uses = json.loads(left or b"")["uses"]
        return tuple(_sentence(str(word), int(line)) for word, line in uses[:_MOST_USES])
    except (ValueError, KeyError, TypeError, RecursionError):  # its writer was killed, or another wrote it
        return None


def _sentence(word: str, line: int) -> str:
    return storable(
        f"Lean ran the tactic `{word[:_MOST_TEXT]}`, which is forbidden (line {line} of the program)"
    )
