"""Checking step, negation stage: has a check judged that may prove its statement or the negation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from farm.judging.report import Report
from farm.judging.verdict import Outcome, Verdict, judge
from farm_workers.checking.stages import AskedCandidate
from farm_workers.checking.trying import both


def judged_as_both(judged: Callable[[AskedCandidate], Report], own: AskedCandidate) -> Report:
    """Return the report of a check's proofs, or that of its disproofs if it decides more.

    An answer that is proved is judged as a disproof too, for no answer is both: then the report says that it
    contradicts itself. Each of the two has the limits of the check. A check with one of the two is judged as
    that.
    """
    check = own.check
    if not check.proofs or not check.disproofs:
        return judged(own)
    proof = judged(own.instead(replace(check, candidates=check.proofs)))
    verdict = judge(proof)
    if verdict.outcome is Outcome.JUDGE_ERROR:
        return proof
    disproof = judged(own.instead(replace(check, candidates=check.disproofs)))
    disproof = replace(disproof, candidate=len(check.proofs) + disproof.candidate)
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
