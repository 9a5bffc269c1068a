"""Audit step, negations: decides whether a challenge states the negation of the statement above it.

The farm writes a negation as text below the dataset's own, where Lean may read it as something else:
variables that Lean includes become its hypotheses, and a notation or a macro can give each of its words
another meaning. So the compiled types are compared.
"""

from __future__ import annotations

from collections.abc import Collection

from farm_workers.audit.declarations import Constant, Module
from farm_workers.audit.findings import ModuleFinding, Word, found
from farm_workers.audit.olean import Name
from farm_workers.audit.sentences import NOT, below_not
from farm_workers.audit.terms import Reading, Terms
from farm_workers.audit.universes import by_occurrence

_OTHERWISE = (
    "The negation of {} cannot be stated below it: Lean gives the negation hypotheses of its own, or another "
    "meaning. Remedy: in place of a variable that Lean includes in every theorem (an instance, or one that "
    "`include` names) write a hypothesis of the theorem; write no notation for the negation."
)


def negation_fault(
    challenge: Module, negation: Name, stated: Name | None, foreign: Collection[Name] = ()
) -> ModuleFinding | None:
    """Return the fault of a challenge's theorem as the negation of the one that is `stated` above it.

    There is none if its type is `Not` of the other's, for the same universes. `foreign` are constants
    of a context above, which do not belong to the imports.
    """
    ours = challenge.constant(negation)
    theirs = None if stated is None else challenge.constant(stated)
    if ours is None or theirs is None or stated == negation:
        sentence = "The statement whose negation {} has to be is not above it."
        return found(Word.BAD_CHALLENGE, negation, sentence)
    reading = Reading(challenge.olean, Terms())
    denied = below_not(reading.terms.nodes, reading.expression(ours.type))
    is_leans_own = NOT not in challenge.names and NOT not in foreign
    if denied is None or not is_leans_own or not _is_statement(reading, denied, theirs):
        return found(Word.BAD_CHALLENGE, stated, _OTHERWISE)
    return None


def _is_statement(reading: Reading, term: int, theorem: Constant) -> bool:
    stated = reading.expression(theorem.type)
    return by_occurrence(reading.terms, term) == by_occurrence(reading.terms, stated)
