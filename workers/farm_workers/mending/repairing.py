"""Mending step of `farm mend --repair`: closes the goals at Lean's errors by tactics from a list."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from farm.judging.messages import cause, errors
from farm.judging.report import Goal, Message, Report
from farm.judging.verdict import Outcome, Verdict
from farm.lean_text.positions import Positions, line_and_column
from farm_workers.lean.edits import SORRY, Edit, edited
from farm_workers.lean.outlined import Outline
from farm_workers.mending.texts import Draft
from farm_workers.mending.trials import BudgetSpent, Change, Mended, Trials, offsets

#: The most errors of one proof that are tried.
_MOST_ERRORS = 50


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """The options of a repair: the tactics to try, in this order, and whether a sorry may stand at last."""

    tactics: Sequence[str]
    sorry: bool


class _NotRepaired(Exception):
    """No tactic closes the goals at an error: has Lean's message."""


def repaired(trials: Trials, text: str, wanted: Wanted) -> Mended:
    """Return a file in which tactics close the goals at errors; a proved file stays as it is.

    A theorem that cannot be repaired keeps its own text. Raises NoOutline.
    """
    report, before = trials.alone(text)
    found = offsets(text, errors(report))
    if before.outcome is not Outcome.REJECTED or not found:
        left = () if before.outcome is Outcome.PROVED else ("Lean reports no error that could be repaired",)
        return Mended(text=text, before=before, after=before, left=left)
    outline = trials.outline(text)
    places = [(_proof_at(outline, at), each) for at, each in found]
    failing = {number for number, _ in places if number is not None}
    fixed = {None, *(number for number in failing if not trials.may_change(outline.proofs[number]))}
    outside = [each for number, each in places if number in fixed]
    if outside:
        return Mended(text=text, before=before, after=before, left=(_outside(outside[0]),))
    repairing = _Repairing(trials, Draft(text, outline), wanted)
    cut_short = repairing.run(sorted(failing))
    return repairing.result(before, cut_short=cut_short)


def _proof_at(outline: Outline, offset: int) -> int | None:
    """Return the number of the theorem with an offset in its proof, or between it and the next command."""
    found = (number for number, it in enumerate(outline.proofs) if it.value <= offset < it.until)
    return next(found, None)


def _outside(error: Message) -> str:
    words = error.text.partition("\n")[0]
    return f"line {error.line}: Lean reports an error outside of the proofs of theorems: {words}"


@dataclass(kw_only=True, slots=True)
class _Repair:
    """A theorem under repair: its number, the text before its value, its value, and its changes."""

    number: int
    before: str
    value: str
    changes: list[Change] = field(default_factory=list)

    def errors(self, report: Report) -> set[tuple[int, str]]:
        """Return Lean's errors by their offsets in the value, negative ones before it."""
        return {(self.offset(each), each.text) for each in errors(report)}

    def offset(self, message: Message) -> int:
        """Return the offset of a message in the value: a negative one before it, or without a place."""
        found = Positions(f"{self.before}{self.value}\n").offset(message.line, message.column)
        return -1 if found is None else found - len(self.before)


class _Repairing:
    """The new values of the theorems of a file, as far as they are found."""

    def __init__(self, trials: Trials, draft: Draft, wanted: Wanted) -> None:
        self._trials, self._draft, self._wanted = trials, draft, wanted
        self._values: dict[int, str] = {}
        self._changes: list[Change] = []
        self._left: list[str] = []

    def run(self, failing: Sequence[int]) -> bool:
        """Repair theorems, in the order of the text; return whether the budget was spent.

        Each stands below a text in which all theorems are stated only.
        """
        for place, number in enumerate(failing):
            try:
                self._repair(number, self._draft.above(number))
            except _NotRepaired as error:
                self._left.append(f"{self._draft.proofs[number].name}: {error}")
            except BudgetSpent:
                names = (self._draft.proofs[each].name for each in failing[place:])
                self._left += [f"{name}: the budget was spent" for name in names]
                return True
        return False

    def result(self, before: Verdict, *, cut_short: bool) -> Mended:
        """Return the file with the new values, judged as a whole."""
        text = self._draft.with_values(self._values)
        challenge = self._draft.challenge()
        _, after = self._trials.whole(text, challenge)
        if after.outcome is Outcome.PROVED:
            _, after = self._trials.alone(text)
        elif any(each.what == ADMITTED for each in self._changes):
            _, after = self._trials.whole(text, challenge, all_parts=False, permits_sorry=True)
        return Mended(
            text=text,
            before=before,
            after=after,
            changes=tuple(self._changes),
            left=tuple(self._left),
            cut_short=cut_short,
        )

    def _repair(self, number: int, above: str) -> None:
        """Find a value of a theorem. Raises _NotRepaired and BudgetSpent."""
        before = above + self._draft.statement(number)
        repair = _Repair(number=number, before=before, value=self._draft.value(number).rstrip())
        for _ in range(_MOST_ERRORS):
            report, verdict = self._trials.line(self._draft, number, above, repair.value)
            if verdict.outcome is Outcome.PROVED or not repair.errors(report):
                self._values[number] = repair.value
                self._changes += repair.changes
                return
            self._mend(repair, above, report)
        raise _NotRepaired(f"it has more than {_MOST_ERRORS} errors")

    def _mend(self, repair: _Repair, above: str, report: Report) -> None:
        """Close the goals at an error of a theorem. Raises _NotRepaired and BudgetSpent."""
        error = cause(errors(report))
        before = repair.errors(report) - {(repair.offset(error), error.text)}
        hole = _hole(repair, report, error)
        for attempt in attempts(repair.value, hole, self._wanted.tactics, sorry=self._wanted.sorry):
            new = edited(repair.value, [attempt.edit])
            told, verdict = self._trials.line(self._draft, repair.number, above, new)
            after = _Repair(number=repair.number, before=repair.before, value=new).errors(told)
            if verdict.outcome is Outcome.PROVED or _advances(before, after, attempt, told):
                self._take(repair, attempt, new)
                return
        raise _NotRepaired(error.text.partition("\n")[0])

    def _take(self, repair: _Repair, attempt: Attempt, new: str) -> None:
        proof, edit = self._draft.proofs[repair.number], attempt.edit
        line = line_and_column(self._draft.text, proof.value)[0] + repair.value.count("\n", 0, edit.start)
        was = repair.value[edit.start : edit.end]
        change = Change(what=attempt.what, theorem=proof.name, line=line, was=was, now=edit.text)
        if attempt.is_whole:
            repair.changes.clear()
        repair.changes.append(change)
        repair.value = new


def _hole(repair: _Repair, report: Report, error: Message) -> Hole | None:
    """Return the part of a proof that fails with an error; None where Lean names none."""
    base, length = len(repair.before), len(repair.value)
    goals = (each for each in report.goals or () if each.kind == "error")
    here = (each for each in goals if (each.line, each.column) == (error.line, error.column))
    return next((hole for each in here if (hole := Hole.of(each, base, length))), None)


def _advances(
    before: set[tuple[int, str]], after: set[tuple[int, str]], attempt: Attempt, told: Report
) -> bool:
    """Return whether all errors up to the end of an edit were there before, its own left out."""
    if not told.run.is_undisturbed or not told.answer.reached_end:
        return False
    end = attempt.edit.start + len(attempt.edit.text)
    return {each for each in after if each[0] < end} <= before


CLOSED, ADMITTED = "closed", "sorry"


@dataclass(frozen=True, kw_only=True, slots=True)
class Attempt:
    """An edit of a proof, and its effect on the goals there. `is_whole`: it replaces the whole proof."""

    edit: Edit
    what: str
    is_whole: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Hole:
    """A part of a proof that fails, from offset to offset, and the number of goals that are open there.

    Where both offsets are one, a proof goes on a line of its own, at the column `indent`.
    """

    start: int
    end: int
    goals: int
    indent: int

    @classmethod
    def of(cls, goal: Goal, base: int, length: int) -> Hole | None:
        """Return the place of goals in a proof that begins at an offset; None if it is not in it."""
        if goal.start is None or goal.end is None or not base <= goal.start <= goal.end <= base + length:
            return None
        start, end = goal.start - base, goal.end - base
        return cls(start=start, end=end, goals=goal.open_goals, indent=goal.indent or 0)

    def filled(self, words: str) -> Edit:
        """Return the edit that puts tactics in place of the part."""
        behind = "\n" + " " * self.indent if self.start == self.end else ""
        return Edit(start=self.start, end=self.end, text=behind + words)


def attempts(value: str, hole: Hole | None, tactics: Sequence[str], *, sorry: bool) -> Iterator[Attempt]:
    """Yield the attempts: each tactic in the hole, then as the whole proof, then a sorry in either place."""
    whole = Hole(start=0, end=len(value), goals=1, indent=0)
    if hole is not None:
        closing = tactics if hole.goals == 1 else _for_all(tactics)
        yield from (Attempt(edit=hole.filled(words), what=CLOSED) for words in closing)
    for words in tactics:
        yield Attempt(edit=whole.filled(f":= by {words}"), what=CLOSED, is_whole=True)
    if sorry and hole is not None:
        yield Attempt(edit=hole.filled("; ".join(["sorry"] * hole.goals)), what=ADMITTED)
    if sorry:
        yield Attempt(edit=whole.filled(SORRY), what=ADMITTED, is_whole=True)


def _for_all(tactics: Sequence[str]) -> list[str]:
    """Return tactics for several goals: each under ``all_goals``, and last ``all_goals first | ...``."""
    return [*(f"all_goals {words}" for words in tactics), f"all_goals first | {' | '.join(tactics)}"]
