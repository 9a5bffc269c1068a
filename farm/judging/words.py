"""Verdict step, words: how a verdict's sentence names what did the work, for each proof system. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from farm.kinds import Kind


@dataclass(frozen=True, kw_only=True, slots=True)
class Words:
    """The names that a verdict's sentence is made of, each as it stands at the beginning of a sentence.

    `prover` is what runs a submission, `kernel` what then decides about `made`, the thing that came of it;
    `faulty` says what is wrong with a statement that cannot be proved at all.
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
