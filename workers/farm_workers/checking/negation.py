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


def _as_both(proof: Report, disproof: Report) -> Report:
    """Return the report of an answer that is accepted as both, by the axioms of both."""
    contrary = replace(disproof, contradicts=True)
    audits = proof.audit, disproof.audit
    if audits[0] is None or audits[1] is None or audits[0].sentence is None or audits[1].sentence is None:
        return contrary
    uses = tuple(sorted({*audits[0].sentence.uses, *audits[1].sentence.uses}))
    sentence = replace(audits[1].sentence, uses=uses)
    return replace(contrary, audit=replace(audits[1], sentence=sentence))


def _chosen(proof: Report, verdict: Verdict, disproof: Report) -> Report:
    """Return the report that decides.

    That is one that is accepted; else the disproof's, if the next time may give another; else the proof's.
    """
    other = judge(disproof)
    if other.outcome is Outcome.DISPROVED:
        return _as_both(proof, disproof) if verdict.outcome is Outcome.PROVED else disproof
    if verdict.outcome is Outcome.PROVED:
        return proof
    if other.outcome is Outcome.JUDGE_ERROR or (other.by_chance and not verdict.by_chance):
        return replace(disproof, otherwise=verdict.detail)
    return replace(proof, otherwise=other.detail)
