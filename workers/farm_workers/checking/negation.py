"""Checking step, negation stage: has an answer that may prove a statement or its negation judged as both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from farm.judging.report import Preamble, Report
from farm.judging.verdict import Outcome, Verdict, judge
from farm_workers.checking.fallback import both
from farm_workers.checking.stages import Candidate


def judged_as_both(judged: Callable[[Candidate], Report], own: Candidate) -> Report:
    """Return the report of an answer as a proof, or as a disproof if that decides more.

    An answer that is proved is judged as a disproof too, for no answer is both: then the report says that it
    contradicts itself. Each of the two has the limits of the check.
    """
    negation, check = own.check.negation, own.check
    proof = judged(own.instead(replace(check, fallback=None)))
    verdict = judge(proof)
    if negation is None or verdict.outcome is Outcome.JUDGE_ERROR:
        return proof
    disproof = replace(judged(own.instead(check.of(negation))), negates=True, preamble=Preamble.FARM)
    chosen = _chosen(proof, verdict, disproof)
    other = proof if chosen.negates else disproof
    return replace(chosen, run=both(other.run, chosen.run))


def _chosen(proof: Report, verdict: Verdict, disproof: Report) -> Report:
    """Return the report that decides.

    That is one that is accepted; else the disproof's, if the next time may give another; else the proof's.
    """
    other = judge(disproof)
    if other.outcome is Outcome.DISPROVED:
        return replace(disproof, contradicts=verdict.outcome is Outcome.PROVED)
    if verdict.outcome is Outcome.PROVED:
        return proof
    if other.outcome is Outcome.JUDGE_ERROR or (other.by_chance and not verdict.by_chance):
        return replace(disproof, otherwise=verdict.detail)
    return replace(proof, otherwise=other.detail)
