"""Image step, goals: writes the open goals at each sorry and each error of a program to a file.

Lean keeps trees of the elaboration; editors show goals from them. They are read here after a program's module
is written and its messages are printed, in a fork of the check: printing a goal runs code of the submission,
and may never end. No verdict depends on it.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
from bisect import bisect_right
from dataclasses import dataclass
from typing import NamedTuple, TextIO

from farm_workers.binding import table
from farm_workers.binding.lean import Callback
from farm_workers.binding.objects import (
    FALSE,
    NAME_STRING,
    NOTHING,
    TRUE,
    boxed,
    dotted,
    field,
    members,
    number_of,
    shared,
    tag,
    text,
)
from farm_workers.binding.table import Ability, Function, StructureField
from farm_workers.images.frontend import Frontend
from farm_workers.images.process import leave

#: Limits: the number of places, the goals of each, and the bytes of one goal.
_MOST_GOALS, _MOST_TOGETHER, _MOST_BYTES = 32, 16, 16_384
#: The most characters of a goal that are written: one more than are kept, which shows a truncated one.
_MOST_TEXT = 4097
_SORRY_TACTIC, _SORRY_TERM = "Lean.Parser.Tactic.tacticSorry", "Lean.Elab.Term.elabSorry"
_BLOCKS = tuple(f"Lean.Parser.Tactic.{each}" for each in ("tacticSeq", "tacticSeq1Indented"))
_UNSOLVED, _HAS_SORRY = "Tactic.unsolvedGoals", "hasSorry"
COLUMNS = boxed(120)  # of `Std.Format`, as Lean's messages have them
_ZERO = boxed(0)


def write_goals(frontend: Frontend, program: str, name: str, *, seconds: float) -> None:
    """Write the goals of the program that was just elaborated, as JSON lines, for at most `seconds`."""
    pid = os.fork()
    if pid == 0:
        leave(lambda: _write(frontend, program, name, seconds))
    os.waitpid(pid, 0)


def _write(frontend: Frontend, program: str, name: str, seconds: float) -> int:
    for stream in (1, 2):
        os.dup2(0, stream)  # a printer of the submission's may print: that is no message of Lean's
    signal.setitimer(signal.ITIMER_REAL, seconds)  # its signal ends this process
    if frontend.lean.lacks(Ability.GOALS):
        return 1
    frontend.begin()
    with open(name, "x", encoding="utf-8", buffering=1) as file:  # noqa: PTH123
        file.write("\n")
        Goals(frontend, program).write(file)
    return 0


class GoalsAt(NamedTuple):
    """Goals at an offset of the program: metavariables of a context. `is_term`: a term is missing there.

    `hole` are the first byte and the end of the text that another proof of the goals can replace. Where they
    are one, the proof is to be added on a line of its own, at the column of the block that begins at `block`.
    """

    offset: int
    kind: str
    context: int
    metavariables: int
    goals: int
    is_term: bool = False
    hole: tuple[int, int] | None = None
    block: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class _Tactic:
    """One tactic of the program, or a block of them, from its first byte to the last, with its goals."""

    start: int
    end: int
    context: int
    info: int
    is_block: bool


class _Error(NamedTuple):
    offset: int
    is_unsolved: bool


class Goals:
    """Reads the trees of the program that the frontend has elaborated."""

    def __init__(self, frontend: Frontend, program: str) -> None:
        """Keep the frontend and its last program."""
        self._frontend, self._lean = frontend, frontend.lean
        # As Lean reads it, see `mkInputContext`.
        self._source = program.replace("\r\n", "\n").encode("utf-8", "surrogatepass")
        self._lines = [0]
        for line in self._source.split(b"\n"):
            self._lines.append(self._lines[-1] + len(line) + 1)
        self._sorries: list[GoalsAt] = []
        self._sorries_at: set[int] = set()
        self._errors: list[_Error] = []
        self._tactics: list[_Tactic] = []

    def write(self, file: TextIO) -> None:
        """Write the goals to a file, in the order of their places."""
        has_sorry = self._read_messages()
        if not self._errors and not has_sorry:
            return
        self._visit_all()
        states = [*self._sorries, *(state for error in self._errors for state in self._at(error))]
        told: set[tuple[int, str, str]] = set()
        for state in sorted(states, key=lambda state: state.offset):
            if len(told) == _MOST_GOALS:
                break
            goal = state.offset, state.kind, self.printed(state)
            if goal[2] and goal not in told:
                told.add(goal)
                line, column = self.place_of(state.offset)
                said = {"line": line, "column": column, "kind": state.kind, "goal": goal[2]}
                file.write(json.dumps(said | self._hole(state)) + "\n")

    def _hole(self, state: GoalsAt) -> dict[str, object]:
        """Return where another proof of the goals can stand, and how many goals there are."""
        if state.hole is None:
            return {}
        open_goals = sum(1 for _ in itertools.islice(members(state.goals), _MOST_TOGETHER))
        places = [*self.place_of(state.hole[0]), *self.place_of(state.hole[1])]
        indent = None if state.block is None else self.place_of(state.block)[1]
        return {"hole": places, "is_term": state.is_term, "open": open_goals, "indent": indent}

    def sorries(self) -> list[GoalsAt]:
        """Return the goals at each sorry of the program, in the order of their places."""
        self._errors.clear()
        self._visit_all()
        return sorted(self._sorries, key=lambda state: state.offset)

    def place(self, state: GoalsAt) -> tuple[int, int]:
        """Return the line of a state, from 1, and its column, from 0, in code points."""
        return self.place_of(state.offset)

    def _visit_all(self) -> None:
        visit = Callback(self._visit)
        for tree in self._frontend.trees():
            self._lean.call(table.FOLD_TREE, self._lean.closure(visit), NOTHING, shared(tree))

    def _read_messages(self) -> bool:
        """Note Lean's errors; return whether it warned of a sorry."""
        lean, has_sorry = self._lean, False
        warning, error = lean.number(table.WARNING), lean.number(table.ERROR)
        for message in self._frontend.messages():
            severity, kind = lean.get(table.SEVERITY, message), self._kind(message)
            has_sorry = has_sorry or (severity == warning and kind == _HAS_SORRY)
            if severity == error:
                place = lean.get(table.MESSAGE_POSITION, message)
                self._errors.append(_Error(self._offset(place), kind == _UNSOLVED))
        return has_sorry

    def _kind(self, message: int) -> str:
        words = self._lean.get(table.MESSAGE_WORDS, message)
        return dotted(self._lean.call(table.MESSAGE_KIND, shared(words)))

    def _visit(self, context: int, info: int, found: int) -> int:
        """Note a node of a tree."""
        kind = number_of(info)
        if kind == self._lean.number(table.IS_TACTIC):
            self._visit_tactic(context, field(info, 0))
        elif kind == self._lean.number(table.IS_TERM):
            self._visit_term(context, field(info, 0))
        return found

    def _visit_tactic(self, context: int, info: int) -> None:
        lean = self._lean
        syntax = lean.get(table.INFO_SYNTAX, lean.get(table.TACTIC_INFO, info))
        kind = lean.call(table.SYNTAX_KIND, shared(syntax))
        if self._errors:
            start, end = self._start(syntax, TRUE), self._end(syntax, TRUE)
            if start is not None and end is not None:
                is_block = any(_is(kind, each) for each in _BLOCKS)
                self._tactics.append(
                    _Tactic(start=start, end=end, context=context, info=info, is_block=is_block)
                )
        if _is(kind, _SORRY_TACTIC):
            self._add_sorry(syntax, context, *self._goals(info, table.BEFORE))

    def _visit_term(self, context: int, info: int) -> None:
        """Note a sorry in the place of a term: its goal is the type expected there."""
        lean = self._lean
        inner, expected = lean.get(table.TERM_INFO, info), lean.get(table.EXPECTED_TYPE, info)
        if not _is(lean.get(table.ELABORATOR, inner), _SORRY_TERM) or expected == NOTHING:
            return
        syntax = lean.get(table.INFO_SYNTAX, inner)
        if self._start(syntax, FALSE) in self._sorries_at:
            return  # the tactic `sorry` is `exact sorry`
        name = lean.name("_farm_goal")
        here = lean.get(table.CONTEXT_HOLES, lean.get(table.COMMAND_CONTEXT, context))
        variables = lean.get(table.TERM_CONTEXT, info)
        words = lean.array([]), shared(field(expected, 0)), _ZERO, _ZERO
        with_goal = lean.call(table.ADD_HOLE, shared(here), shared(name), NOTHING, shared(variables), *words)
        self._add_sorry(syntax, context, with_goal, lean.list([name]), is_term=True)

    def _goals(self, info: int, fields: tuple[StructureField, StructureField]) -> tuple[int, int]:
        """Return the metavariables and the goals of a tactic, before or after it."""
        metavariables, goals = fields
        return self._lean.get(metavariables, info), self._lean.get(goals, info)

    def _add_sorry(
        self, syntax: int, context: int, metavariables: int, goals: int, *, is_term: bool = False
    ) -> None:
        """Note a sorry. What a macro made of other words, as of `admit` and `stop`, has their place."""
        start, end = self._start(syntax, FALSE), self._end(syntax, FALSE)
        if start is not None and end is not None:
            self._sorries.append(
                GoalsAt(start, "sorry", context, metavariables, goals, is_term, (start, end))
            )
            self._sorries_at.add(start)

    def _at(self, error: _Error) -> list[GoalsAt]:
        """Return the goals of the innermost tactic at an error: before it, or those that it left unsolved."""
        around = [each for each in self._tactics if each.start <= error.offset < each.end]
        if not around:
            return []
        least = min(each.end - each.start for each in around)
        last = next(each for each in reversed(around) if each.end - each.start == least)
        before, after = (self._goals(last.info, each) for each in (table.BEFORE, table.AFTER))
        is_after = error.is_unsolved and after[1] != NOTHING
        metavariables, goals = after if is_after else before
        found = GoalsAt(error.offset, "error", last.context, metavariables, goals)
        return [self._with_end(found) if is_after else self._with_rest(found)]

    def _with_rest(self, error: GoalsAt) -> GoalsAt:
        """Note the text from the tactic at an error to the end of the innermost block around it."""
        offset = error.offset
        blocks = [each for each in self._tactics if each.is_block and each.start <= offset < each.end]
        if not blocks:
            return error
        block = min(blocks, key=lambda each: each.end - each.start)
        inside = [
            each.start
            for each in self._tactics
            if not each.is_block and block.start <= each.start <= offset < each.end <= block.end
        ]
        return error._replace(hole=(min(inside, default=block.start), block.end))

    def _with_end(self, error: GoalsAt) -> GoalsAt:
        """Note the end of the first block behind an error, which leaves goals open."""
        behind = [each for each in self._tactics if each.is_block and each.start >= error.offset]
        if not behind:
            return error
        block = min(behind, key=lambda each: (each.start, -each.end))
        return error._replace(hole=(block.end, block.end), block=block.start)

    def printed(self, state: GoalsAt) -> str:
        """Return goals as Lean prints them, with an empty line between two."""
        goals = itertools.islice(members(state.goals), _MOST_TOGETHER)
        return "\n\n".join(self._printed_one(state, goal) for goal in goals)[:_MOST_TEXT]

    def _printed_one(self, state: GoalsAt, goal: int) -> str:
        lean = self._lean
        command = lean.copy(lean.get(table.COMMAND_CONTEXT, state.context))
        lean.put(table.CONTEXT_HOLES, command, shared(state.metavariables))
        context = lean.copy(state.context)
        lean.put(table.COMMAND_CONTEXT, context, command)
        made = lean.call(table.PRINT_GOALS, context, lean.list([shared(goal)]))
        return text(lean.call(table.PRETTY, made, COLUMNS, _ZERO, _ZERO), _MOST_BYTES).strip("\n")

    def _start(self, syntax: int, canonical: int) -> int | None:
        return self._some(table.START, syntax, canonical)

    def _end(self, syntax: int, canonical: int) -> int | None:
        return self._some(table.END, syntax, canonical)

    def _some(self, place: Function, syntax: int, canonical: int) -> int | None:
        found = self._lean.call(place, shared(syntax), canonical)
        return None if found == NOTHING else field(found, 0) >> 1

    def _offset(self, position: int) -> int:
        """Return the byte at a `Lean.Position`: lines count from 1, columns are code points."""
        return self.offset_of(*(self._lean.get(each, position) >> 1 for each in (table.LINE, table.COLUMN)))

    def offset_of(self, line: int, column: int) -> int:
        """Return the byte at a line, from 1, and a column, from 0, in code points; -1 for no place."""
        if not 0 < line < len(self._lines):
            return -1
        start = self._lines[line - 1]
        behind = self._source[start : self._lines[line]].decode("utf-8", "surrogatepass")
        return start + len(behind[:column].encode("utf-8", "surrogatepass"))

    def place_of(self, offset: int) -> tuple[int, int]:
        """Return the line, from 1, and the column, from 0, of a byte."""
        line = bisect_right(self._lines, offset)
        before = self._source[self._lines[line - 1] : offset]
        return line, len(before.decode("utf-8", "replace"))


def _is(name: int, words: str) -> bool:
    """Whether a name has these words; comparing its last part first excludes nearly all others."""
    if name == NOTHING or tag(name) != NAME_STRING or not words.endswith(text(field(name, 1))):
        return False
    return dotted(name) == words
