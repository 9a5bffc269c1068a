"""Metamath step, a block: reads a theorem as if it stood behind a database, and verifies it. Pure."""

from __future__ import annotations

from typing import TypedDict

from farm_workers.systems.metamath.database import Database, MalformedText, Theorem, shown, statements
from farm_workers.systems.metamath.proof import IncompleteProof, ProofTooLarge, Proving, Size, WrongProof

#: The parts of a block: braces, and statements that add no axiom.
_ALLOWED = frozenset("{}dep")


def read_block(database: Database, text: str) -> Theorem:
    """Return the only theorem of a block; the database is unchanged afterwards.

    Raises MalformedText, also for a block that declares anything besides hypotheses and one theorem.
    """
    found = list(statements(text))
    for each in found:
        if each.word not in _ALLOWED:
            raise MalformedText(f"a block may not have ${each.word}", each.offset)
    theorems = [each for each in found if each.word == "p"]
    if len(theorems) != 1:
        raise MalformedText(f"a block has one $p; this one has {len(theorems)}", len(text))
    return database.behind(text)


class Found(TypedDict, total=False):
    """The findings about a block, as JSON; `examine` explains them."""

    found: str
    message: str
    offset: int
    limit: str
    steps: int
    label: str


def examine(database: Database, program: str, challenge: str | None, size: Size | None = None) -> Found:
    """Verify a program, a block with its proof, and return the findings as JSON values.

    ``found`` is ``accepted``; ``wrong``, ``incomplete`` or ``mismatch``, with a ``message`` and, if known,
    the ``offset`` of the place; ``bad_challenge`` with a ``message``; or ``limit`` with the name of the
    limit.
    """
    stated = None
    if challenge is not None:
        try:
            stated = read_block(database, challenge)
        except MalformedText as error:
            return {"found": "bad_challenge", "message": str(error)}
    try:
        theorem = read_block(database, program)
    except MalformedText as error:
        return {"found": "wrong", "message": str(error), "offset": error.offset}
    if stated is not None and _claim(stated) != _claim(theorem):
        return {"found": "mismatch", "message": _difference(stated, theorem)}
    return _proved(database, theorem, size)


def _claim(theorem: Theorem) -> tuple[object, ...]:
    """Return the claim of a theorem, without the places of its hypotheses in the database."""
    frame = theorem.frame
    hypotheses = [(each.label, each.variable, each.expression) for each in frame.hypotheses]
    return frame.label, frame.statement, frame.disjoint, hypotheses


def _proved(database: Database, theorem: Theorem, size: Size | None) -> Found:
    proving = Proving(theorem, database.frames, database.variables, size or Size())
    try:
        proving.verify()
    except WrongProof as error:
        word = "incomplete" if isinstance(error, IncompleteProof) else "wrong"
        return {"found": word, "message": str(error), "offset": theorem.proof_at + error.offset}
    except ProofTooLarge as error:
        return {"found": "limit", "limit": str(error)}
    except MemoryError:
        return {"found": "limit", "limit": "memory"}
    return {"found": "accepted", "steps": proving.steps, "label": theorem.frame.label}


def _difference(stated: Theorem, proved: Theorem) -> str:
    """Return the difference between a theorem and the one to prove."""
    one, other = stated.frame, proved.frame
    if one.label != other.label:
        return f"The theorem is {shown(other.label)}; {shown(one.label)} is to be proved."
    if one.statement != other.statement:
        return f"The theorem {shown(one.label)} states something else than the line does."
    if one.disjoint != other.disjoint:
        return f"The theorem {shown(one.label)} has other $d conditions than the line."
    return f"The theorem {shown(one.label)} has other hypotheses than the line."
