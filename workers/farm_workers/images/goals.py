"""Image step, goals: writes the open goals at each sorry and each error of a program to a file.

Lean keeps trees of the elaboration; editors show goals from them. They are read here after a program's module
is written and its messages are printed, in a fork of the check: printing a goal runs code of the submission,
and may never end. No verdict depends on it.

The trees (``src/Lean/Elab/InfoTree/Types.lean``), messages and snapshots are those of Lean 4.35.
"""

from __future__ import annotations

import ctypes
import itertools
import json
import os
import signal
from bisect import bisect_right
from dataclasses import dataclass
from typing import NamedTuple, TextIO

from farm_workers.images.frontend import Callback, Frontend
from farm_workers.images.process import leave
from farm_workers.replay.lean import FALSE, NOTHING, TRUE, dotted, elements, field, members, shared, tag, text

#: Limits: the number of places, the goals of each, and the bytes of one goal.
_MOST_GOALS, _MOST_TOGETHER, _MOST_BYTES = 32, 16, 16_384
#: The most characters of a goal that are written: one more than are kept, which shows a truncated one.
_MOST_TEXT = 4097
#: The numbers of constructors of `Lean.Elab.Info`.
_TACTIC, _TERM = 0, 1
#: The place of `mctx` among the fields of `Lean.Elab.CommandContextInfo`.
_METAVARIABLES = 3
_WARNING, _ERROR = 1, 2
_SORRY_TACTIC, _SORRY_TERM = "Lean.Parser.Tactic.tacticSorry", "Lean.Elab.Term.elabSorry"
_UNSOLVED, _HAS_SORRY = "Tactic.unsolvedGoals", "hasSorry"
_COLUMNS = 120 << 1 | 1  # of `Std.Format`, as Lean's messages have them
_ZERO = 1
_NAME_STRING = 1  # which constructor of `Lean.Name` ends in a text


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
    frontend.begin()
    with open(name, "x", encoding="utf-8", buffering=1) as file:  # noqa: PTH123
        file.write("\n")
        Goals(frontend, program).write(file)
    return 0


class _State(NamedTuple):
    """Goals at an offset of the program: metavariables of a context."""

    offset: int
    kind: str
    context: int
    metavariables: int
    goals: int


@dataclass(frozen=True, kw_only=True, slots=True)
class _Tactic:
    """One tactic of the program, from its first byte to the last, with its goals."""

    start: int
    end: int
    context: int
    info: int


class _Error(NamedTuple):
    offset: int
    is_unsolved: bool


class Goals:
    """Reads the trees of the program that the frontend has elaborated."""

    def __init__(self, frontend: Frontend, program: str) -> None:
        """Keep the frontend and its last program."""
        self._lean = frontend
        # As Lean reads it, see `mkInputContext`.
        self._source = program.replace("\r\n", "\n").encode("utf-8", "surrogatepass")
        self._lines = [0]
        for line in self._source.split(b"\n"):
            self._lines.append(self._lines[-1] + len(line) + 1)
        self._sorries: list[_State] = []
        self._sorries_at: set[int] = set()
        self._errors: list[_Error] = []
        self._tactics: list[_Tactic] = []

    def write(self, file: TextIO) -> None:
        """Write the goals to a file, in the order of their places."""
        snapshots = self._lean.snapshots()
        has_sorry = self._read_messages(snapshots)
        if not self._errors and not has_sorry:
            return
        visit = Callback(self._visit)
        for tree in (field(each, 2) for each in snapshots):
            if tree != NOTHING:
                fold = "l_Lean_Elab_InfoTree_foldInfo___redArg"
                self._lean.call(fold, self._lean.closure(visit), NOTHING, shared(field(tree, 0)))
        states = [*self._sorries, *(state for error in self._errors for state in self._at(error))]
        told: set[tuple[int, str, str]] = set()
        for state in sorted(states, key=lambda state: state.offset):
            if len(told) == _MOST_GOALS:
                break
            goal = state.offset, state.kind, self._printed(state)
            if goal[2] and goal not in told:
                told.add(goal)
                line, column = self._place(state.offset)
                said = {"line": line, "column": column, "kind": state.kind, "goal": goal[2]}
                file.write(json.dumps(said) + "\n")

    def _read_messages(self, snapshots: list[int]) -> bool:
        """Note Lean's errors; return whether it warned of a sorry."""
        has_sorry = False
        for snapshot in snapshots:
            log = field(field(snapshot, 1), 0)
            for message in elements(self._lean.call("l_Lean_MessageLog_toArray___boxed", shared(log))):
                severity = field(message, 5) >> 8 & 0xFF  # the scalars stand behind five pointers
                kind = self._kind(message)
                has_sorry = has_sorry or (severity == _WARNING and kind == _HAS_SORRY)
                if severity == _ERROR:
                    self._errors.append(_Error(self._offset(field(message, 1)), kind == _UNSOLVED))
        return has_sorry

    def _kind(self, message: int) -> str:
        return dotted(self._lean.call("l_Lean_MessageData_kind___boxed", shared(field(message, 4))))

    def _visit(self, context: int, info: int, found: int) -> int:
        """Note a node of a tree."""
        if tag(info) == _TACTIC:
            self._visit_tactic(context, field(info, 0))
        elif tag(info) == _TERM:
            self._visit_term(context, field(info, 0))
        return found

    def _visit_tactic(self, context: int, info: int) -> None:
        syntax = field(field(info, 0), 1)
        if self._errors:
            start, end = self._start(syntax, TRUE), self._end(syntax)
            if start is not None and end is not None:
                self._tactics.append(_Tactic(start=start, end=end, context=context, info=info))
        if _is(self._lean.call("l_Lean_Syntax_getKind", shared(syntax)), _SORRY_TACTIC):
            self._add_sorry(self._start(syntax, FALSE), context, field(info, 1), field(info, 2))

    def _visit_term(self, context: int, info: int) -> None:
        """Note a sorry in the place of a term: its goal is the type expected there."""
        if not _is(field(field(info, 0), 0), _SORRY_TERM) or field(info, 2) == NOTHING:
            return
        offset = self._start(field(field(info, 0), 1), FALSE)
        if offset in self._sorries_at:
            return  # the tactic `sorry` is `exact sorry`
        lean = self._lean
        name = lean.call("lean_name_mk_string", NOTHING, lean.string("_farm_goal"))
        here = field(field(context, 0), _METAVARIABLES)
        words = lean.call("lean_array_mk", NOTHING), shared(field(field(info, 2), 0)), _ZERO, _ZERO
        add = "l_Lean_MetavarContext_addExprMVarDecl___boxed"
        with_goal = lean.call(add, shared(here), shared(name), NOTHING, shared(field(info, 1)), *words)
        goals = lean.constructor(1, [name, NOTHING])
        self._add_sorry(offset, context, with_goal, goals)

    def _add_sorry(self, offset: int | None, context: int, metavariables: int, goals: int) -> None:
        if offset is not None:
            self._sorries.append(_State(offset, "sorry", context, metavariables, goals))
            self._sorries_at.add(offset)

    def _at(self, error: _Error) -> list[_State]:
        """Return the goals of the innermost tactic at an error: before it, or those that it left unsolved."""
        around = [each for each in self._tactics if each.start <= error.offset < each.end]
        if not around:
            return []
        least = min(each.end - each.start for each in around)
        last = next(each for each in reversed(around) if each.end - each.start == least)
        before, after = (field(last.info, 1), field(last.info, 2)), (field(last.info, 3), field(last.info, 4))
        metavariables, goals = after if error.is_unsolved and after[1] != NOTHING else before
        return [_State(error.offset, "error", last.context, metavariables, goals)]

    def _printed(self, state: _State) -> str:
        """Return goals as Lean prints them, with an empty line between two."""
        goals = itertools.islice(members(state.goals), _MOST_TOGETHER)
        return "\n\n".join(self._printed_one(state, goal) for goal in goals)[:_MOST_TEXT]

    def _printed_one(self, state: _State, goal: int) -> str:
        lean, (command, *rest) = self._lean, (field(state.context, number) for number in range(3))
        fields = [field(command, number) for number in range(8)]
        fields[_METAVARIABLES] = state.metavariables
        held = lean.constructor(0, [shared(each) for each in fields])
        context = lean.constructor(0, [held, *(shared(each) for each in rest)])
        alone = lean.constructor(1, [shared(goal), NOTHING])
        made = lean.result(lean.call("l_Lean_Elab_ContextInfo_ppGoals___boxed", context, alone, NOTHING))
        printed = lean.call("l_Std_Format_pretty___boxed", made, _COLUMNS, _ZERO, _ZERO)
        size = min(field(printed, 0) - 1, _MOST_BYTES)
        return ctypes.string_at(printed + 32, size).decode(errors="replace").strip("\n")

    def _start(self, syntax: int, canonical: int) -> int | None:
        return self._some("l_Lean_Syntax_getPos_x3f___boxed", syntax, canonical)

    def _end(self, syntax: int) -> int | None:
        return self._some("l_Lean_Syntax_getTailPos_x3f___boxed", syntax, TRUE)

    def _some(self, name: str, syntax: int, canonical: int) -> int | None:
        found = self._lean.call(name, shared(syntax), canonical)
        return None if found == NOTHING else field(found, 0) >> 1

    def _offset(self, position: int) -> int:
        """Return the byte at a `Lean.Position`: lines count from 1, columns are code points."""
        line, column = field(position, 0) >> 1, field(position, 1) >> 1
        if not 0 < line < len(self._lines):
            return -1
        start = self._lines[line - 1]
        behind = self._source[start : self._lines[line]].decode("utf-8", "surrogatepass")
        return start + len(behind[:column].encode("utf-8", "surrogatepass"))

    def _place(self, offset: int) -> tuple[int, int]:
        line = bisect_right(self._lines, offset)
        before = self._source[self._lines[line - 1] : offset]
        return line, len(before.decode("utf-8", "replace"))


def _is(name: int, words: str) -> bool:
    """Whether a name has these words; comparing its last part first excludes nearly all others."""
    if name == NOTHING or tag(name) != _NAME_STRING or not words.endswith(text(field(name, 1))):
        return False
    return dotted(name) == words
