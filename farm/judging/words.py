"""Verdict step, words: the nouns that a verdict's sentence uses for the programs of a proof system."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Words:
    """The names of one proof system's programs, and two phrases that a verdict's sentence adds to them.

    `prover` runs the submission, and `kernel` then checks `made`, the product of that run; `faulty` is the
    predicate of a statement that no submission can prove.
    """

    prover: str
    kernel: str
    made: str
    faulty: str


LEAN = Words(prover="Lean", kernel="The kernel", made="the module", faulty="does not compile")
