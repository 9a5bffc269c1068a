"""The ids of runs and batches."""

from __future__ import annotations

import secrets

# Without letters that are mistaken for digits or for each other; 8 of them are 39 bits.
_LETTERS = "23456789abcdefghjkmnpqrstvwxyz"

#: Letters of a run's id, which people type.
RUN_LETTERS = 8


def new_id(letters: int) -> str:
    """Return a new random id with this number of letters."""
    return "".join(secrets.choice(_LETTERS) for _ in range(letters))
