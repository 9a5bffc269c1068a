"""Metamath step, one proof: its steps are carried out on a stack, within limits that no clock decides. Pure.

Chapter and section numbers are those of the Metamath book (see `farm_workers.systems.metamath`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from farm_workers.systems.metamath.database import Frame, Hypothesis, Theorem, pair, shown

_TOKEN = re.compile(r"\S+")
#: Appendix B: a number's last digit is one of twenty, those before it one of five; Z marks the step before.
_LETTERS = re.compile(r"(?:[U-Y]*[A-T]Z?)+")
_NUMBER = re.compile(r"([U-Y]*)([A-T])(Z?)")
_LAST_DIGITS, _DIGITS = 20, 5
#: No proof refers to as many steps: longer numbers are not worked out.
_MOST_DIGITS = 12


class WrongProof(Exception):
    """A proof does not prove its theorem; `offset` is the place in the proof's text."""

    def __init__(self, what: str, offset: int) -> None:
        super().__init__(what)
        self.offset = offset


class IncompleteProof(WrongProof):
    """A proof has a step ``?``, or cites a theorem that is not proved."""


class ProofTooLarge(Exception):
    """A proof goes over a limit; the message names it: ``time`` (steps) or ``memory`` (symbols)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Size:
    """How large a proof may be: its steps, the symbols of one, and the symbols of all that are made."""

    steps: int = 500_000
    step_symbols: int = 200_000
    symbols: int = 20_000_000


class Proving:
    """Carries out the proof of one theorem."""

    def __init__(
        self, theorem: Theorem, frames: Mapping[str, Frame], variables: frozenset[str], size: Size
    ) -> None:
        self._theorem, self._frames, self._variables, self._size = theorem, frames, variables, size
        self._stack: list[str] = []
        self._kept: list[str] = []
        self._symbols = self.steps = 0
        self._offset = 0

    def verify(self) -> None:
        """Carry out all steps. Raises WrongProof, IncompleteProof and ProofTooLarge."""
        tokens = list(_TOKEN.finditer(self._theorem.proof))
        if not tokens:
            raise WrongProof("the proof is empty", 0)
        if (gap := next((each for each in tokens if "?" in each[0]), None)) is not None:
            raise IncompleteProof("the proof is incomplete: it has a step ?", gap.start())
        if tokens[0][0] == "(":
            self._verify_compressed(tokens)
        else:
            for token in tokens:
                self._do(self._cited(token), token.start())
        self._require_result(tokens[-1].start())

    def _require_result(self, offset: int) -> None:
        if len(self._stack) != 1:
            raise WrongProof(f"the proof ends with {len(self._stack)} expressions in place of one", offset)
        if self._stack[0] != self._theorem.frame.statement:
            raise WrongProof("the proof proves another statement", offset)

    def _cited(self, token: re.Match[str]) -> Hypothesis | Frame:
        """Return the active hypothesis or the earlier assertion of a label (4.4.5)."""
        label, offset = token[0], token.start()
        if (hypothesis := self._theorem.active.get(label)) is not None:
            return hypothesis
        if (frame := self._frames.get(label)) is None:
            raise WrongProof(
                f"{shown(label)} is neither an active hypothesis nor an earlier assertion", offset
            )
        if not frame.is_proved:
            raise IncompleteProof(f"{shown(label)} has no complete proof itself", offset)
        return frame

    def _verify_compressed(self, tokens: list[re.Match[str]]) -> None:
        """Carry out a proof whose steps are numbers (appendix B)."""
        close = next((n for n, each in enumerate(tokens) if each[0] == ")"), None)
        if close is None:
            raise WrongProof("the list of labels is not closed by )", tokens[0].start())
        known: list[Hypothesis | Frame] = list(self._theorem.frame.hypotheses)
        mandatory = {hypothesis.label for hypothesis in known}
        for token in tokens[1:close]:
            if token[0] in mandatory:
                raise WrongProof(
                    f"{shown(token[0])} is a mandatory hypothesis: it may not be listed", token.start()
                )
            known.append(self._cited(token))
        letters = "".join([each[0] for each in tokens[close + 1 :]])
        if _LETTERS.fullmatch(letters) is None:
            raise WrongProof("the text after the labels is not a list of numbers", tokens[close].start())
        places = _Places(tokens[close + 1 :])
        for number in _NUMBER.finditer(letters):
            self._do_numbered(_value(number), known, number, places)

    def _do_numbered(
        self, value: int, known: list[Hypothesis | Frame], number: re.Match[str], places: _Places
    ) -> None:
        offset = places.of(number.start())
        if value >= len(known) + len(self._kept):
            raise WrongProof(f"the number {shown(number[1] + number[2])} stands for no step", offset)
        cited = known[value] if value < len(known) else self._kept[value - len(known)]
        self._do(cited, offset)
        if number[3] and not isinstance(cited, Frame):
            raise WrongProof("Z marks a step that has no proof of its own", offset)
        if number[3]:
            self._kept.append(self._stack[-1])

    def _do(self, cited: Hypothesis | Frame | str, offset: int) -> None:
        self.steps += 1
        if self.steps > self._size.steps:
            raise ProofTooLarge("time")
        self._offset = offset
        if isinstance(cited, Frame):
            self._apply(cited)
        else:
            self._stack.append(cited if isinstance(cited, str) else cited.expression)

    def _apply(self, frame: Frame) -> None:
        """Replace an assertion's hypotheses on the stack by its conclusion (4.2.8)."""
        first = len(self._stack) - len(frame.hypotheses)
        if first < 0:
            raise self._wrong(frame, "has more hypotheses than there are expressions")
        given = self._stack[first:]
        values: dict[str, str] = {}
        for hypothesis, expression in zip(frame.hypotheses, given, strict=True):
            if hypothesis.variable:
                if expression[0] != hypothesis.expression[0]:
                    raise self._wrong(frame, f"has another type in {shown(hypothesis.label)}")
                values[hypothesis.variable] = expression[1:]
            elif self._put_in(hypothesis.expression, values) != expression:
                raise self._wrong(frame, f"does not match in {shown(hypothesis.label)}")
        if frame.disjoint:
            self._require_disjoint(frame, values)
        result = self._put_in(frame.statement, values)
        del self._stack[first:]
        self._stack.append(result)

    def _wrong(self, frame: Frame, what: str) -> WrongProof:
        return WrongProof(f"step {self.steps}, {shown(frame.label)}, {what}", self._offset)

    def _put_in(self, expression: str, values: Mapping[str, str]) -> str:
        """Return an expression with its variables replaced."""
        parts = [values.get(symbol, symbol) for symbol in expression]
        length = sum(map(len, parts))
        self._symbols += length
        if length > self._size.step_symbols or self._symbols > self._size.symbols:
            raise ProofTooLarge("memory")
        return "".join(parts)

    def _require_disjoint(self, frame: Frame, values: Mapping[str, str]) -> None:
        """Raise WrongProof if expressions that must be disjoint are not known to be (4.2.8)."""
        inside = {v: self._variables.intersection(values[v]) for each in frame.disjoint for v in each}
        allowed = self._theorem.disjoint
        for one, other in frame.disjoint:
            for first in inside[one]:
                for second in inside[other]:
                    if first == second or pair(first, second) not in allowed:
                        raise self._wrong(frame, "needs variables to be distinct that no $d sets apart")


class _Places:
    """The offsets of the letters of a compressed proof; they are looked up in order."""

    def __init__(self, tokens: list[re.Match[str]]) -> None:
        self._tokens = iter(tokens)
        self._begins = self._ends = self._offset = 0

    def of(self, letter: int) -> int:
        """Return the offset of a letter; calls must come in ascending order."""
        while letter >= self._ends:
            token = next(self._tokens)
            self._begins, self._ends = self._ends, self._ends + len(token[0])
            self._offset = token.start()
        return self._offset + letter - self._begins


def _value(number: re.Match[str]) -> int:
    """Return a number of a compressed proof, counted from 0."""
    value = 0
    for digit in number[1][:_MOST_DIGITS]:
        value = value * _DIGITS + ord(digit) - ord("T")
    return value * _LAST_DIGITS + ord(number[2]) - ord("A")


def verify(
    theorem: Theorem, frames: Mapping[str, Frame], variables: frozenset[str], size: Size | None = None
) -> None:
    """Verify the proof of a theorem, which may name these assertions and its own active hypotheses.

    Raises WrongProof, IncompleteProof and ProofTooLarge.
    """
    Proving(theorem, frames, variables, size or Size()).verify()
