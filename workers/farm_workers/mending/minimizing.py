"""Mending step of `farm mend --minimize`: leaves out parts that an error, or a theorem, does not need."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from farm.assembly.challenge import Challenge
from farm.errors import UsageError
from farm.judging.messages import errors
from farm.judging.report import Message, Report
from farm.judging.verdict import Outcome
from farm.lean_text.positions import line_and_column
from farm_workers.lean.edits import SORRY
from farm_workers.lean.outlined import Outline, Proof
from farm_workers.mending.reduction import reduced
from farm_workers.mending.trials import BudgetSpent, Change, Mended, Trials, target_of

LEFT_OUT = "left out"
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
#: A part of a file: its line, and its text.
_Part = tuple[int, str]


def minimized(trials: Trials, text: str) -> Mended:
    """Return the smallest text found with the same first error: fewer commands, then fewer lines.

    Raises UsageError for a file without an error, and NoOutline.
    """
    report, before = trials.alone(text)
    error = _first(report)
    if error is None:
        raise UsageError(
            "Lean reports no error in the file, so no example of one can be made; "
            "add --self-contained NAME to keep a theorem"
        )

    def fails(program: str) -> bool:
        return _is_same(_first(trials.lean(program)), error)

    head, commands = _commands(text, trials.outline(text))
    few = _Reduction(fails, head)
    cut_short = few.run(commands) or few.run(_lines(few.kept))
    small = few.text
    after = trials.alone(small)[1]
    return Mended(text=small, before=before, after=after, changes=few.changes(), cut_short=cut_short)


def small_for(trials: Trials, text: str, name: str) -> Mended:
    """Return a theorem with only the commands above it that it needs to be proved as the file states it.

    Raises UsageError for a name of no theorem of the file, and NoOutline.
    """
    _, before = trials.alone(text)
    outline = trials.outline(text)
    proof = _named(outline, name)
    challenge = Challenge(program=f"{text[: proof.value]}{SORRY}\n", name=proof.name)
    theorem = text[proof.start : proof.end] + "\n"

    def is_proved(program: str) -> bool:
        return trials.proves(program + theorem, challenge, target)

    above = text[: proof.start]
    report, verdict = trials.whole(above + theorem, challenge, all_parts=False)
    target = target_of(report)
    if verdict.outcome is not Outcome.PROVED:
        left = (f"{name} is not proved in the file",)
        return Mended(text=text, before=before, after=before, left=left)
    head, commands = _commands(above, outline)
    few = _Reduction(is_proved, head)
    cut_short = few.run(commands)
    small = few.text + theorem
    _, after = trials.alone(small)
    return Mended(text=small, before=before, after=after, changes=few.changes(), cut_short=cut_short)


class _Reduction:
    """The parts of a text that are kept, the smallest ones that hold so far."""

    def __init__(self, holds: Callable[[str], bool], head: str) -> None:
        self._holds, self._head = holds, head
        self._all: list[_Part] = []
        self.kept: list[_Part] = []

    @property
    def text(self) -> str:
        """The text of the kept parts."""
        return self._of(self.kept)

    def run(self, parts: Sequence[_Part]) -> bool:
        """Reduce parts; return whether the budget was spent."""
        self._all = self._all or list(parts)
        self.kept = list(parts)

        def holds(some: Sequence[_Part]) -> bool:
            if not self._holds(self._of(some)):
                return False
            self.kept = list(some)
            return True

        try:
            reduced(parts, holds)
        except BudgetSpent:
            return True
        return False

    def changes(self) -> tuple[Change, ...]:
        """Return the commands that were left out as a whole."""
        lines = {line for line, _ in self.kept}
        gone = (each for each in self._all if not any(_has(each, line) for line in lines))
        return tuple(Change(what=LEFT_OUT, theorem=None, line=line, was=was, now="") for line, was in gone)

    def _of(self, parts: Sequence[_Part]) -> str:
        return self._head + "".join(text for _, text in parts)


def _has(part: _Part, line: int) -> bool:
    """Return whether a part begins at a line or above it, and ends below it."""
    first, text = part
    return first <= line < first + max(1, text.count("\n"))


def _commands(text: str, outline: Outline) -> tuple[str, list[_Part]]:
    """Return the text above the first command, and each command up to the next."""
    starts = [each.start for each in outline.commands if each.start < len(text)]
    if not starts:
        return text, []
    parts = [text[start:end] for start, end in zip(starts, [*starts[1:], len(text)], strict=True)]
    lines = (line_and_column(text, start)[0] for start in starts)
    return text[: starts[0]], list(zip(lines, parts, strict=True))


def _lines(parts: Sequence[_Part]) -> list[_Part]:
    """Return the lines of parts, each with its line feed."""
    return [
        (first + number, line) for first, text in parts for number, line in enumerate(_LINE.findall(text))
    ]


def _first(report: Report) -> Message | None:
    return next(iter(errors(report)), None)


def _is_same(found: Message | None, error: Message) -> bool:
    return found is not None and (found.kind, found.text) == (error.kind, error.text)


def _named(outline: Outline, name: str) -> Proof:
    """Return the theorem of a name. Raises UsageError."""
    found = next((each for each in outline.proofs if each.name == name), None)
    if found is None:
        names = ", ".join(each.name for each in outline.proofs[:20]) or "none"
        raise UsageError(f"--self-contained {name}: the file has no theorem of this name; it has {names}")
    return found
