"""Verdict step, words: the names of each proof system's programs in a verdict's sentence. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from farm.kinds import Kind


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


WORDS: Mapping[Kind, Words] = MappingProxyType(
    {
        Kind.LEAN: Words(prover="Lean", kernel="The kernel", made="the module", faulty="does not compile"),
        Kind.METAMATH: Words(
            prover="The verifier",
            kernel="The farm's verifier",
            made="the proof",
            faulty="does not fit the database",
        ),
        Kind.HOL_LIGHT: Words(
            prover="HOL Light",
            kernel="The kernel",
            made="the theorem",
            faulty="is no term that can be proved",
        ),
    }
)
