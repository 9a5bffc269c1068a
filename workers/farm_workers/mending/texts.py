"""Mending step, texts: replaces parts of a file. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from farm.assembly.challenge import Challenge
from farm.lean_text.scanner import TokenKind, tokens
from farm_workers.lean.edits import SORRY, Edit, edited
from farm_workers.lean.outlined import Outline, Step

_SEPARATOR = ";"


def joined(edits: Sequence[Edit], new: Edit) -> list[Edit] | None:
    """Return edits with a new one in place of those within its borders; None where one overlaps a border."""
    kept = [each for each in edits if not (new.start <= each.start and each.end <= new.end)]
    if any(each.start < new.end and new.start < each.end for each in kept):
        return None
    return [*kept, new]


def without_step(text: str, steps: Sequence[Step], step: Step) -> Edit | None:
    """Return the edit that drops a tactic with its separator, None for the only one of its block.

    A tactic on lines of its own goes with these lines, so that comments around it stay. Another one goes up
    to the next, and the last one from the end of the one before it.
    """
    block = [each for each in steps if each.block == step.block]
    number = block.index(step)
    if len(block) == 1:
        return None
    before = block[number - 1].end if number else step.start
    behind = block[number + 1].start if number + 1 < len(block) else step.end
    has_sign = any(_SEPARATOR in text[each] for each in (slice(before, step.start), slice(step.end, behind)))
    lines = _lines_of(text, step)
    if lines is not None and not has_sign:
        return lines
    if behind > step.end:
        return Edit(start=step.start, end=behind)
    return Edit(start=before, end=step.end)


def _lines_of(text: str, step: Step) -> Edit | None:
    """Return the edit that drops a tactic's lines, None where other text stands on them."""
    start, end = text.rfind("\n", 0, step.start) + 1, text.find("\n", step.end)
    end = len(text) if end < 0 else end + 1
    is_alone = not text[start : step.start].strip() and not text[step.end : end].strip()
    return Edit(start=start, end=end) if is_alone else None


def _has_code(text: str, start: int, end: int) -> bool:
    """Return whether there is more than white space and comments between two offsets."""
    return any(token.kind is not TokenKind.COMMENT for token in tokens(text, start, end))


class Draft:
    """A file, and other values of its theorems, by their numbers in its outline.

    After an error Lean's parser leaves out text up to the next command: that is a part of the value.
    """

    def __init__(self, text: str, outline: Outline) -> None:
        """Keep the text, in which all values are their own at first."""
        self.text, self.proofs = text, outline.proofs
        self._torn = {number for number, it in enumerate(outline.proofs) if _has_code(text, it.end, it.until)}

    def with_values(self, values: Mapping[int, str]) -> str:
        """Return the file with other values."""
        return edited(self.text, [self._edit(number, value) for number, value in values.items()])

    def above(self, number: int) -> str:
        """Return the text above a theorem, with `sorry` for each proof: Lean reads it fast."""
        edits = [self._edit(each, SORRY) for each in range(number)]
        return edited(self.text[: self.proofs[number].start], edits)

    def statement(self, number: int) -> str:
        """Return the text of a theorem up to its value."""
        proof = self.proofs[number]
        return self.text[proof.start : proof.value]

    def value(self, number: int) -> str:
        """Return the value of a theorem."""
        return self.text[self.proofs[number].value : self._end(number)]

    def challenge(self) -> Challenge:
        """Return the statement of the whole: each theorem without its proof, up to the last."""
        last = len(self.proofs) - 1
        program = f"{self.above(last)}{self.statement(last)}{SORRY}\n"
        return Challenge(program=program, name=self.proofs[last].name)

    def _edit(self, number: int, value: str) -> Edit:
        behind = "\n\n" if number in self._torn else ""
        return Edit(start=self.proofs[number].value, end=self._end(number), text=value + behind)

    def _end(self, number: int) -> int:
        proof = self.proofs[number]
        return proof.until if number in self._torn else proof.end
