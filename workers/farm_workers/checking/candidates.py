"""Doubt step, candidates: decides for the checker which programs of a check are worth compiling. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from textwrap import dedent
from typing import NamedTuple

from farm.assembly.declaration import read_target
from farm.judging.ending import lean_refused
from farm.judging.job import Candidate, Check
from farm.judging.report import Message, Report
from farm.judging.tiers import Tier
from farm.lean_text.policy.screen import LONGEST_READ
from farm.lean_text.positions import Positions
from farm.lean_text.scanner import code_tokens

Spans = Sequence[tuple[int, int]]

#: The first words of errors of Lean's parser, which may accept the same proof in another program.
_OF_PARSER = ("unexpected ", "expected ", "unknown tactic")
#: The keywords right before a proof that belong to it.
_OPENING = re.compile(r"(?:(?::=|\bwhere)\s*)?(?:\bby\s*)?(?:\bexact\s*)?\Z")
_LONGEST_OPENING = 200
#: The pieces that the farm writes into a proof to close its own braces.
_CLOSING = ("", "}")


def first_stating(check: Check) -> int:
    """Return the place of the first candidate to compile.

    That is 0, except on the tier lean. No audit compares the statement on that tier, so there the first
    program that has the statement in the dataset's own text comes first.
    """
    tier = Tier.LEAN if check.assurance is None else check.assurance.tier
    if tier != Tier.LEAN or check.challenge is None or len(check.candidates) == 1:
        return 0
    core = read_target(check.challenge.program[check.challenge.context_end :]).core
    places = (place for place, each in enumerate(check.candidates) if _states(each, core))
    return next(places, 0) if core else 0


def _states(candidate: Candidate, core: str) -> bool:
    """Return whether a program has the dataset's statement outside the submission's spans."""
    program, submitted = candidate.program, _own(candidate)
    ends = [0, *(end for _, end in submitted)]
    starts = [*(start for start, _ in submitted), len(program)]
    return any(core in program[end:start] for end, start in zip(ends, starts, strict=True))


def may_do_better(check: Check, report: Report) -> bool:
    """Return whether a check's second candidate may be accepted although the first was refused.

    That is so if the first program proves another statement, or if the two programs differ at Lean's first
    error. Both programs contain the proof, so an error inside it recurs, with two exceptions: only one
    program reads the proof as tactics, or Lean cannot parse the proof and the other program indents it
    differently. A later error inside the proof recurs if the other program lacks only the lines of the first.
    """
    if report.audit is not None and report.audit.is_of_another_statement:
        return check.task.fills is None  # both programs of a hole have the same statement
    errors = [each for each in report.answer.messages if each.severity == "error"]
    if not lean_refused(report) or not errors or len(check.program) > LONGEST_READ:
        return False
    positions = Positions(check.program)
    at, *later = [positions.offset(each.line, each.column) for each in errors]
    if at is None:
        return False
    other = check.candidates[1]
    proof = _found(check, other)
    is_in_proof = proof is not None and proof.has(at)
    if not is_in_proof and other.program.startswith(check.program[: _line_end(check.program, at)]):
        return False
    if proof is None:
        return True
    is_of_parser = [each.text.startswith(_OF_PARSER) for each in errors]
    if not is_in_proof:
        behind = (place for place, syntax in zip(later, is_of_parser[1:], strict=True) if not syntax)
        comes_back = any(place is not None and proof.has(place) for place in behind)
        return not (comes_back and _lacks_lines_alone(check.program, other.program, at))
    begun = _proof_start(other)
    if proof.reading == _reading(other.program, begun):
        return any(is_of_parser) and proof.layout != _layout(other.program, begun, _own(other)[-1][1])
    return any(is_of_parser) or (proof.reading == "by" and proof.is_laid_out_as_one())


def lacks_refused_text(check: Check, report: Report) -> bool:
    """Return whether Lean refused a check's first program at a text that the second one lacks.

    An error inside the proof, which both contain, is no such text.
    """
    error = report.answer.first_error
    if not lean_refused(report) or error is None or len(check.program) > LONGEST_READ:
        return False
    at = Positions(check.program).offset(error.line, error.column)
    proof = _found(check, check.candidates[1])
    return at is not None and not (proof is not None and proof.has(at))


class Settling:
    """Called with an error of Lean's: whether no candidate after the first can be accepted.

    That is so where every later program has the same text up to the error, or reads the same proof in the
    same way. The programs are compared at the first call; each call then takes no time.
    """

    def __init__(self, check: Check) -> None:
        self._check, self._others = check, check.candidates[1:]

    def __call__(self, error: Message) -> bool:
        """Return whether the error settles the check."""
        if not self._others:
            return True
        if len(self._check.program) > LONGEST_READ:
            return False
        at = self._positions.offset(error.line, error.column)
        return at is not None and all(each.is_settled_at(at) for each in self._compared)

    @cached_property
    def _positions(self) -> Positions:
        return Positions(self._check.program)

    @cached_property
    def _compared(self) -> list[_Compared]:
        return [_compared(self._check, other) for other in self._others]


class _Compared(NamedTuple):
    """Another program beside a check's: its proof there, whether it is read alike, and how far both agree.

    `agrees_to` is the end of the last line that both have, with all lines before it.
    """

    proof: _Proof | None
    is_read_alike: bool
    agrees_to: int

    def is_settled_at(self, at: int) -> bool:
        """Return whether the other program cannot be accepted after an error at a place of the check's."""
        if self.proof is None or not self.proof.has(at):
            return at <= self.agrees_to
        return self.is_read_alike


def _compared(check: Check, other: Candidate) -> _Compared:
    pairs = enumerate(zip(check.program, other.program, strict=False))
    shorter = min(len(check.program), len(other.program))
    common = next((place for place, (own, its) in pairs if own != its), shorter)
    agrees_to = common if common == len(check.program) else check.program.rfind("\n", 0, common + 1)
    proof, is_read_alike = _found(check, other), False
    if proof is not None:
        begun = _proof_start(other)
        is_same = proof.layout == _layout(other.program, begun, _own(other)[-1][1])
        is_read_alike = is_same and proof.reading == _reading(other.program, begun)
    return _Compared(proof, is_read_alike, agrees_to)


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _lacks_lines_alone(program: str, other: str, at: int) -> bool:
    """Return whether another program is this one without some lines that begin with the line of a place."""
    start = program.rfind("\n", 0, at) + 1
    before, others = program[:start].split(), other.split()
    rest = others[len(before) :]
    return others[: len(before)] == before and program[start:].split()[-len(rest) :] == rest


class _Proof(NamedTuple):
    """The span of another program's proof in a program; `opens` is the start of the keywords before it."""

    program: str
    opens: int
    start: int
    end: int

    def has(self, at: int) -> bool:
        """Return whether a place is in the proof or its keywords, where Lean reports unsolved goals."""
        return self.opens <= at <= self.end

    @property
    def reading(self) -> str:
        """The keyword that opens the proof, as returned by `_reading`."""
        return _reading(self.program, self.start)

    @property
    def layout(self) -> str:
        """The lines of the proof, as returned by `_layout`."""
        return _layout(self.program, self.start, self.end)

    def is_laid_out_as_one(self) -> bool:
        """Return whether all lines are indented more than the first one: Lean may read them as arguments."""
        first = next((token.start for token in code_tokens(self.program, self.start, self.end)), self.end)
        column = first - self.program.rfind("\n", 0, first) - 1
        lines = [line for line in self.program[first : self.end].split("\n")[1:] if line.strip()]
        return bool(lines) and all(line[: column + 1].isspace() for line in lines)


def _found(check: Check, other: Candidate) -> _Proof | None:
    """Return the span of another program's proof in a check's program, apart from white space, or None."""
    program, own = check.program, _ink(check.program, check.submitted or ((0, len(check.program)),))
    begun = _proof_start(other)
    proof = _ink(other.program, [span for span in _own(other) if span[0] >= begun])
    begins = own.text.rfind(proof.text) if proof.text else -1
    if begins < 0:
        return None
    start = own.places[begins]
    opening = _OPENING.search(program, max(0, start - _LONGEST_OPENING), start)
    opens = opening.start() if opening else start
    return _Proof(program, opens, start, own.places[begins + len(proof.text) - 1] + 1)


def _own(candidate: Candidate) -> Spans:
    """Return the spans of a program that the submission wrote, none where they are not known."""
    return candidate.submitted or ()


class _Ink(NamedTuple):
    """The characters of some spans of a text without white space, and the place of each character."""

    text: str
    places: Sequence[int]


def _ink(text: str, spans: Spans) -> _Ink:
    places = [at for start, end in spans for at in range(start, end) if not text[at].isspace()]
    return _Ink("".join([text[at] for at in places]), places)


def _proof_start(other: Candidate) -> int:
    """Return the start of the submission's last spans that no text of the dataset separates."""
    begins = following = len(other.program)
    for start, end in reversed(_own(other)):
        if following < len(other.program) and other.program[end:following].strip() not in _CLOSING:
            break
        begins = following = start
    return begins


def _layout(program: str, start: int, end: int) -> str:
    """Return a span of a program, dedented, with the relative indentation of all its lines."""
    column = start - program.rfind("\n", 0, start) - 1
    return dedent(" " * column + program[start:end].rstrip())


def _reading(program: str, at: int) -> str:
    """Return the word before a proof; `:=` stands for `exact` too, since both open a term."""
    word = (program[:at].split() or [""])[-1]
    return ":=" if word == "exact" else word
