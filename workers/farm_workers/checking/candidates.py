"""Doubt step, candidates: whether another program of a check may be accepted where one is not. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

from farm.assembly.declaration import read_target
from farm.judging.ending import lean_refused
from farm.judging.job import Check, Fallback
from farm.judging.report import Preamble, Report
from farm.judging.tiers import Tier
from farm.lean_text.policy.screen import LONGEST_READ
from farm.lean_text.positions import Positions

Spans = Sequence[tuple[int, int]]

#: How Lean's parser begins to say what is wrong: another reading of the text may help then.
_OF_PARSER = ("unexpected ", "expected ", "unknown tactic")
#: What may stand right before a proof, as a part of it: Lean says there that goals are left.
_OPENS_PROOF = frozenset({":=", "by", "exact"})


def first_stating(check: Check) -> tuple[Preamble, Check, Sequence[tuple[Preamble, Fallback]]]:
    """Return which program is checked first, the check with it in place, and the programs behind it.

    That is the check's own, unless Lean's word is all that is asked for: nothing compares the statement then,
    so it is the first that has it in the dataset's own text.
    """
    named = ((Preamble.RESTATED, check.restated), (Preamble.FARM, check.fallback))
    others = [(preamble, other) for preamble, other in named if other is not None]
    tier = Tier.LEAN if check.assurance is None else check.assurance.tier
    if tier != Tier.LEAN or check.challenge is None or not others:
        return Preamble.MODEL, check, others
    core = read_target(check.challenge.program[check.challenge.context_end :]).core
    if not core or _states(check.program, check.submitted or (), core):
        return Preamble.MODEL, check, others
    for number, (preamble, other) in enumerate(others):
        if _states(other.program, other.submitted, core):
            stating = replace(check, program=other.program, submitted=other.submitted)
            return preamble, stating, others[number + 1 :]
    return Preamble.MODEL, check, others


def _states(program: str, submitted: Spans, core: str) -> bool:
    """Whether a program has the dataset's statement in text that is not the submission's."""
    ends = [0, *(end for _, end in submitted)]
    starts = [*(start for start, _ in submitted), len(program)]
    return any(core in program[end:start] for end, start in zip(ends, starts, strict=True))


def may_do_better(check: Check, other: Fallback, report: Report) -> bool:
    """Whether another program may be accepted where a check's is not.

    It may where the program proves another statement, or Lean's first error stands where the two differ: not
    before that, and not in the proof, which both have, unless only one reads it as tactics.
    """
    first = report.answer.first_error
    if report.audit is not None and report.audit.is_of_another_statement:
        return True
    if not lean_refused(report) or first is None or len(check.program) > LONGEST_READ:
        return False
    at = Positions(check.program).offset(first.line, first.column)
    if at is None or other.program.startswith(check.program[: _line_end(check.program, at)]):
        return False
    spans = check.submitted or ((0, len(check.program)),)
    own, proof = _text(check.program, spans), _proof(other)
    begins = own.rfind(proof) if proof else -1
    if begins < 0 or not _is_in_proof(check.program, spans, at, (begins, begins + len(proof))):
        return True
    errors = (each.text for each in report.answer.messages if each.severity == "error")
    if not any(text.startswith(_OF_PARSER) for text in errors):
        return False
    return _word_before(check.program, _place(spans, begins)) != _word_before(
        other.program, _proof_start(other)
    )


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _text(program: str, spans: Spans) -> str:
    return "".join([program[start:end] for start, end in spans])


def _is_in_proof(program: str, spans: Spans, at: int, proof: tuple[int, int]) -> bool:
    """Whether a place of a program stands in the proof, or in what opens it.

    The proof is a span of what the submission has written, all pieces of it together.
    """
    following = next((start for start, end in spans if at <= end), None)
    if following is not None and at < following:
        is_before_proof = _place(spans, proof[0]) >= following
        return is_before_proof and set(program[at:following].split()) <= _OPENS_PROOF
    before = sum(min(end, at) - start for start, end in spans if start <= at)
    opened = _text(program, spans)[: proof[0]].rstrip()
    for word in ("by", ":="):
        opened = opened.removesuffix(word).rstrip()
    return len(opened) <= before <= proof[1]


def _place(spans: Spans, offset: int) -> int:
    """Return where the character of a number of what the submission has written stands in its program."""
    reached = accumulate(end - start for start, end in spans)
    return next(
        (end - all_ + offset for (_, end), all_ in zip(spans, reached, strict=True) if offset < all_), 0
    )


def _proof_start(other: Fallback) -> int:
    """Return where the last pieces of the submission begin that only white space parts in a program."""
    begins = following = len(other.program)
    for start, end in reversed(other.submitted):
        if following < len(other.program) and other.program[end:following].strip():
            break
        begins = following = start
    return begins


def _proof(other: Fallback) -> str:
    start = _proof_start(other)
    return _text(other.program, [span for span in other.submitted if span[0] >= start]).strip()


def _word_before(program: str, at: int) -> str:
    return (program[:at].split() or [""])[-1]
