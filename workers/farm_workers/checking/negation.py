"""Checking step, negation stage: has an answer that may prove a statement or its negation judged as both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from farm.judging.report import Preamble, Report
from farm.judging.verdict import Outcome, Verdict, judge
from farm_workers.checking.fallback import LEAST_SECONDS, both
from farm_workers.checking.stages import Candidate


def judged_as_both(judged: Callable[[Candidate], Report], own: Candidate) -> Report:
    """Return the report of an answer as a proof, or as a disproof if that decides more.

    An answer that is proved is judged as a disproof too, for no answer is both: then the report says that it
    contradicts itself. Both have the limits of one check together; a proof that leaves no time counts.
    """
    negation, check = own.check.negation, own.check
    alone = own.instead(replace(check, fallback=None))
    if negation is None:
        return judged(alone)
    proof = judged(alone)
    limits, run = check.limits, proof.run
    wall, cpu = limits.wall_seconds - run.wall_seconds, limits.cpu_seconds - run.cpu_seconds
    verdict = judge(proof)
    if verdict.outcome is Outcome.JUDGE_ERROR or min(wall, cpu) < LEAST_SECONDS:
        return proof
    remaining = replace(check.of(negation), limits=replace(limits, wall_seconds=wall, cpu_seconds=cpu))
    disproof = replace(judged(own.instead(remaining)), negates=True, preamble=Preamble.FARM)
    chosen = _chosen(proof, verdict, disproof)
    return replace(chosen, run=both(disproof.run if chosen.run is run else run, chosen.run))


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
