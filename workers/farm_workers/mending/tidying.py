"""Mending step of `farm mend --tidy`: drops tactics that a proof does not need, takes Lean's suggestions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from textwrap import dedent

from farm.judging.report import Message, Report
from farm.judging.verdict import Outcome
from farm.lean_text.positions import Positions, line_and_column
from farm_workers.lean.edits import Edit, edited
from farm_workers.lean.outlined import NoOutline, Proof, Step
from farm_workers.mending.texts import Draft, joined, without_step
from farm_workers.mending.trials import BudgetSpent, Change, Mended, Trials

#: How often the tactics of a proof are tried: dropping one can make another needless.
_PASSES = 2
DROPPED, SUGGESTED = "dropped", "suggestion"


def tidied(trials: Trials, text: str) -> Mended:
    """Return a proved file without needless tactics; a file that is not proved stays as it is.

    Each theorem is tried alone, below the statements above it. Then the file is judged as a whole. If it is
    not proved with the same statements, the theorems are judged in it one by one. Raises NoOutline.
    """
    report, before = trials.alone(text)
    if before.outcome is not Outcome.PROVED:
        left = ("the file is not proved: farm mend --repair closes the goals at errors",)
        return Mended(text=text, before=before, after=before, left=left)
    outline = trials.outline(text)
    draft = Draft(text, outline)
    tidying = _Tidying(trials, draft, report)
    cut_short = tidying.run()
    kept = _kept(trials, draft, tidying.edits, len(outline.commands))
    tidy = edited(text, [each for number in kept for each in tidying.edits[number]])
    changes = [each for number in kept for each in tidying.changes(number)]
    after = trials.alone(tidy)[1] if kept else before
    return Mended(text=tidy, before=before, after=after, changes=tuple(changes), cut_short=cut_short)


def _kept(trials: Trials, draft: Draft, edits: Mapping[int, Sequence[Edit]], commands: int) -> list[int]:
    """Return the theorems whose edits leave the whole file proved with the same statements."""

    def is_proved(numbers: Sequence[int]) -> bool:
        text = edited(draft.text, [each for number in numbers for each in edits[number]])
        if trials.whole(text, draft.challenge())[1].outcome is not Outcome.PROVED:
            return False
        return trials.alone(text)[1].outcome is Outcome.PROVED and _has_as_many(trials, text, commands)

    changed = [number for number in edits if edits[number]]
    if not changed or is_proved(changed):
        return changed
    kept = list[int]()
    for number in changed:
        if is_proved([*kept, number]):
            kept.append(number)
    return kept


def _has_as_many(trials: Trials, text: str, commands: int) -> bool:
    """Return whether a text has a number of commands: a suggestion is to change a proof, and add none."""
    try:
        return len(trials.outline(text).commands) == commands
    except NoOutline:
        return False


class _Tidying:
    """The edits of each theorem of a file, with the offsets of the file."""

    def __init__(self, trials: Trials, draft: Draft, report: Report) -> None:
        self._trials, self._draft, self._report = trials, draft, report
        self.edits: dict[int, list[Edit]] = {}

    def run(self) -> bool:
        """Try all theorems; return whether the budget was spent."""
        try:
            for number, proof in enumerate(self._draft.proofs):
                self.edits[number] = []
                if not self._trials.may_change(proof):
                    continue
                self._take_suggestions(number, proof)
                for _ in range(_PASSES):
                    if not self._drop_steps(number, proof):
                        break
        except BudgetSpent:
            return True
        return False

    def changes(self, number: int) -> Iterator[Change]:
        """Yield the edits of a theorem as changes."""
        for each in sorted(self.edits[number]):
            line, _ = line_and_column(self._draft.text, each.start)
            was = self._draft.text[each.start : each.end]
            what, name = SUGGESTED if each.text else DROPPED, self._draft.proofs[number].name
            yield Change(what=what, theorem=name, line=line, was=was, now=each.text)

    def _with(self, number: int, edits: Sequence[Edit]) -> str:
        proof = self._draft.proofs[number]
        moved = (
            Edit(start=each.start - proof.value, end=each.end - proof.value, text=each.text) for each in edits
        )
        return edited(self._draft.value(number), moved)

    def _keep(self, number: int, edit: Edit) -> bool:
        """Add an edit to those of a theorem if it is proved with them; return whether it is."""
        edits = joined(self.edits[number], edit)
        if edits is None:
            return False
        above = self._draft.above(number)
        _, verdict = self._trials.line(self._draft, number, above, self._with(number, edits))
        if verdict.outcome is not Outcome.PROVED:
            return False
        self.edits[number] = edits
        return True

    def _drop_steps(self, number: int, proof: Proof) -> bool:
        """Drop each tactic that is not needed, large ones first; return whether there was one."""
        found = False
        for step in sorted(proof.steps, key=lambda each: (each.start - each.end, each.start)):
            done = [each for each in self.edits[number] if not each.text]
            left = [each for each in proof.steps if not any(_has(edit, each) for edit in done)]
            if step in left and (edit := without_step(self._draft.text, left, step)):
                found = self._keep(number, edit) or found
        return found

    def _take_suggestions(self, number: int, proof: Proof) -> None:
        places = Positions(self._draft.text)
        for message in self._report.answer.messages:
            at = places.offset(message.line, message.column)
            if at is None or not proof.value <= at < proof.end:
                continue
            ends = places.offset(message.end_line, message.end_column)
            any(self._keep(number, edit) for edit in _replacements(proof, message, at, ends))


def _has(edit: Edit, step: Step) -> bool:
    return edit.start <= step.start and step.end <= edit.end


def _replacements(proof: Proof, message: Message, at: int, ends: int | None) -> Iterator[Edit]:
    """Yield the edits that a suggestion can mean: Lean marks a tactic, or only its first word."""
    steps = sorted(each.end for each in proof.steps if each.start == at)
    for text in suggested(message.text):
        for end in dict.fromkeys([*steps, *([ends] if ends and at < ends <= proof.end else [])]):
            yield Edit(start=at, end=end, text=text)


# Any program can print such a message: each text is only tried, and kept if the proof with it is proved.


_BEGIN = re.compile(r"Try (?:this|these):[ \n]", re.ASCII)
#: Recent releases put a mark before each suggestion, two spaces further right than the rest of its lines.
_MARK = re.compile(r"^[ ]*(?:\[\w{1,20}\]|[•·-])[ ]", re.ASCII | re.MULTILINE)
_MOST, _MOST_TEXT = 8, 1 << 14


def suggested(message: str) -> list[str]:
    """Return the texts that a message suggests, at most eight; its words may be anybody's."""
    if len(message) > _MOST_TEXT or not (begin := _BEGIN.match(message)):
        return []
    parts = _MARK.split(message[begin.end() :])
    texts = (_text(each) for each in (parts if len(parts) == 1 else parts[1:])[:_MOST])
    return [each for each in texts if each]


def _text(part: str) -> str:
    """Return a suggestion; its lines after the first keep their depth below each other."""
    first, line, rest = part.strip("\n").partition("\n")
    return f"{first.strip()}{line}{dedent(rest)}".strip()
