"""Image step, tactics: runs tactics one by one on the states of unfinished proofs, in this process.

A state is four values of Lean: those of the monads of core, meta and term elaboration, and the open goals. A
tactic gets new references to them, and leaves a new state there; the old one stays as it is, so that any
number of tactics can be tried on it. The first states are those at the sorries of a program.

All of this is as untrusted as the tactics: a state without goals is no proof. The theorem itself can be used
in its proof, and so can sorry.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from farm_workers.binding import table
from farm_workers.binding.lean import Callback, InMeta, InTerm
from farm_workers.binding.objects import (
    NOTHING,
    LeanError,
    boxed,
    elements,
    field,
    members,
    shared,
    tag,
    text,
)
from farm_workers.binding.table import Ability
from farm_workers.images.frontend import Frontend
from farm_workers.images.goals import COLUMNS, Goals, GoalsAt

#: The file in whose name Lean reports faults of a tactic's text.
_FILE = "<tactic>"
#: The number generator of a session's names: those of the elaborated program are taken.
_PREFIX = "_farm_step"
#: The most goals of a state that are printed, the bytes of each, and those of a message.
MOST_GOALS, MOST_BYTES = 64, 16_384
_ZERO, _FAILED = boxed(0), 1
#: The count of heartbeats when a context is made, from which any limit can be granted.
_FIRST_HEARTBEATS = 1 << 50


@dataclass(frozen=True, kw_only=True, slots=True)
class _Contexts:
    """The contexts of the elaborator's monads at one place of a program, and its limit of heartbeats.

    The limit is that of the option ``maxHeartbeats``, in thousandths of its unit, 0 for none.
    """

    term: int
    meta: int
    core: int
    most_heartbeats: int


@dataclass(frozen=True, kw_only=True, slots=True)
class State:
    """An unfinished proof: Lean's values, and the contexts in which tactics go on."""

    contexts: _Contexts
    core: int
    meta: int
    term: int
    goals: int

    @property
    def is_closed(self) -> bool:
        """Whether no goal is open, which is no proof."""
        return self.goals == NOTHING


@dataclass(frozen=True, kw_only=True, slots=True)
class Root:
    """The state at a sorry of a program; `line` counts from 1, `column` from 0, in code points.

    `is_term`: the sorry stands for a term, and not for a tactic.
    """

    state: State
    line: int
    column: int
    is_term: bool


class TacticFailed(Exception):
    """A tactic cannot be read, or failed: has Lean's words."""


class Tactics:
    """Runs tactics on the states of the program that the frontend has elaborated last."""

    def __init__(self, frontend: Frontend) -> None:
        """Take the contexts that Lean gives to a term there. Raises LeanError if Lean cannot be asked."""
        self._frontend, self._lean = frontend, frontend.lean
        if reason := frontend.lean.lacks(Ability.SESSIONS):
            raise LeanError(reason)
        self._category = self._lean.name("tactic")
        self._term = self._terms_words()

    # Roots

    def roots(self, program: str) -> list[Root]:
        """Return the states at the sorries of the program, in the order of their places."""
        goals = Goals(self._frontend, program)
        found = []
        for each in goals.sorries():
            line, column = goals.place(each)
            found.append(Root(state=self._root(each), line=line, column=column, is_term=each.is_term))
        return found

    def _root(self, at: GoalsAt) -> State:
        lean = self._lean
        meta, meta_state, core, core_state = self._metas_words(at.context)
        term, term_state, *_ = self._term
        options = lean.get(table.CONTEXT_OPTIONS, lean.get(table.COMMAND_CONTEXT, at.context))
        most = self._most_heartbeats(options)
        return State(
            contexts=_Contexts(term=term, meta=meta, core=core, most_heartbeats=most),
            core=self._fresh_core(core_state),
            meta=self._changed(meta_state, table.HOLES, shared(at.metavariables)),
            term=self._changed(field(term_state, 0), table.LEVEL_NAMES, self._levels(at.context)),
            goals=shared(at.goals),
        )

    def _terms_words(self) -> list[int]:
        """Return contexts and references of the three inner monads, as Lean passes them in a command."""
        lean, found = self._lean, list[int]()

        def in_term(*words: int) -> int:
            found.extend(map(shared, words[:-1]))
            return lean.succeeded(NOTHING)

        inner = InTerm(in_term)

        def in_command(context: int, reference: int, _world: int) -> int:
            return lean.call(table.IN_COMMAND, lean.closure(inner), context, reference)

        outer = Callback(in_command)
        parts = {
            "commandState": shared(self._frontend.last_state()),
            "parserState": lean.constructor(0, [_ZERO], bytes(8)),
            "cmdPos": _ZERO,
            "commands": lean.array([]),
        }
        state = lean.reference(lean.make(table.FRONTEND_STATE, parts))
        lean.call(table.IN_FRONTEND, lean.closure(outer), self._frontend.input(""), state)
        if not found:
            raise LeanError("Lean did not elaborate a term")
        return found

    def _metas_words(self, context: int) -> list[int]:
        """Return contexts and states of the two innermost monads at a place of the program."""
        lean, found = self._lean, list[int]()

        def in_meta(meta: int, meta_reference: int, core: int, core_reference: int, _world: int) -> int:
            states = field(meta_reference, 0), field(core_reference, 0)
            found.extend(map(shared, (meta, states[0], core, states[1])))
            return lean.succeeded(NOTHING)

        action = InMeta(in_meta)
        lean.runtime(table.SET_HEARTBEATS)(boxed(_FIRST_HEARTBEATS), NOTHING)
        words = shared(context), shared(lean.constant(table.NO_VARIABLES)), lean.closure(action)
        lean.call(table.RUN_META, *words)
        return found

    def _fresh_core(self, state: int) -> int:
        """Return a state of core without messages, whose names are new and which keeps no trees."""
        lean = self._lean
        names = lean.make(table.NAME_GENERATOR, {"namePrefix": lean.name(_PREFIX), "idx": boxed(1)})
        trees = lean.copy(lean.get(table.CORE_TREES, state))
        lean.put(table.TREES_ENABLED, trees, 0)
        fresh = lean.copy(state)
        lean.put(table.CORE_NAMES, fresh, names)
        lean.put(table.CORE_TREES, fresh, trees)
        lean.put(table.CORE_MESSAGES, fresh, shared(lean.constant(table.NO_MESSAGES)))
        return fresh

    def _levels(self, context: int) -> int:
        """Return the universe levels of the declaration at a place: else tactics could not name them."""
        lean = self._lean
        name = lean.get(table.DECLARATION, context)
        if name == NOTHING:
            return NOTHING
        kernel = self._frontend.kernel_of(self._frontend.last_environment())
        found = lean.call(table.FIND, kernel, shared(field(name, 0)))
        # Of `some`, `ConstantInfo`, the value of its kind and `ConstantVal`.
        return NOTHING if found == NOTHING else shared(field(field(field(field(found, 0), 0), 0), 1))

    # Steps

    def step(self, before: State, tactic: str, heartbeats: int | None = None) -> State:
        """Return the state after a tactic; `before` stays as it is. Raises TacticFailed.

        `heartbeats` is Lean's option ``maxHeartbeats``, None for that of the program.
        """
        lean, syntax = self._lean, self._parsed(before, tactic)
        core, meta, term, goals = (
            lean.reference(shared(each)) for each in (before.core, before.meta, before.term, before.goals)
        )
        own = lean.make(table.TACTIC_CONTEXT, {"elaborator": NOTHING, "recover": 1})
        contexts = before.contexts
        words = own, goals, contexts.term, term, contexts.meta, meta, contexts.core, core
        self._grant(contexts.most_heartbeats if heartbeats is None else 1000 * heartbeats)
        ended = lean.call(table.RUN_TACTIC, syntax, *map(shared, words))
        self._require_success(ended, field(core, 0))
        left = lean.call(table.OPEN_GOALS, *map(shared, words))
        self._require_success(left, field(core, 0))
        return State(
            contexts=contexts,
            core=shared(field(core, 0)),
            meta=shared(field(meta, 0)),
            term=shared(field(term, 0)),
            goals=shared(field(left, 0)),
        )

    def _parsed(self, before: State, tactic: str) -> int:
        """Return the syntax of a tactic, or of several, which stand in parentheses."""
        found = self._read(before, tactic)
        if tag(found) == 0:
            # As in the text of the proof: Lean wants all tactics of a sequence in the same column.
            several = self._read(before, "(" + tactic.strip("\n").replace("\n", "\n ") + "\n)")
            if tag(several) == 0:
                raise TacticFailed(text(field(found, 0), MOST_BYTES))
            found = several
        return shared(field(found, 0))

    def _read(self, before: State, tactic: str) -> int:
        lean = self._lean
        environment = shared(lean.get(table.CORE_ENVIRONMENT, before.core))
        words = shared(self._category), lean.string(tactic), lean.string(_FILE)
        return lean.call(table.PARSE, environment, *words)

    def _most_heartbeats(self, options: int) -> int:
        return self._lean.call(table.MOST_HEARTBEATS, shared(options)) >> 1

    def _grant(self, heartbeats: int) -> None:
        """Give the next tactic this number of heartbeats, any number if 0, whatever was counted before.

        Lean compares how many were counted since the context was made with the limit of its default options
        (`ContextInfo.runCoreM` does not take the option over), so the count is set.
        """
        most = self._most_heartbeats(self._lean.constant(table.NO_OPTIONS))
        first = max(0, _FIRST_HEARTBEATS + most - heartbeats) if heartbeats else 0
        self._lean.runtime(table.SET_HEARTBEATS)(boxed(first), NOTHING)

    def _require_success(self, ended: int, core: int) -> None:
        """Raise TacticFailed for a thrown error, and for errors after which Lean continued."""
        lean = self._lean
        errors = [
            lean.get(table.MESSAGE_WORDS, each)
            for each in self._messages(core)
            if lean.get(table.SEVERITY, each) == lean.number(table.ERROR)
        ]
        if tag(ended) == _FAILED:
            errors.append(lean.call(table.THROWN_WORDS, shared(field(ended, 0))))
        if errors:
            said = dict.fromkeys(filter(None, map(self._said, errors)))
            raise TacticFailed("\n".join(said) or "the tactic failed")

    def messages(self, state: State) -> list[str]:
        """Return Lean's messages of the last tactic, such as a suggestion."""
        return [self._said(self._lean.get(table.MESSAGE_WORDS, each)) for each in self._messages(state.core)]

    def without_messages(self, state: State) -> State:
        """Return the state without Lean's messages."""
        if not self._messages(state.core):
            return state
        empty = shared(self._lean.constant(table.NO_MESSAGES))
        core = self._changed(state.core, table.CORE_MESSAGES, empty)
        return State(contexts=state.contexts, core=core, meta=state.meta, term=state.term, goals=state.goals)

    def _messages(self, core: int) -> Sequence[int]:
        log = self._lean.get(table.CORE_MESSAGES, core)
        return elements(self._lean.call(table.MESSAGE_ARRAY, shared(log)))

    def _said(self, words: int) -> str:
        return text(self._lean.call(table.WORDS_TEXT, shared(words)), MOST_BYTES)

    def _changed(self, place: int, part: table.StructureField, value: int) -> int:
        """Return a copy of an object with another value in one field."""
        copied = self._lean.copy(place)
        self._lean.put(part, copied, value)
        return copied

    # Goals

    def printed(self, state: State) -> list[str]:
        """Return the open goals as Lean prints them, the first `MOST_GOALS`."""
        core, meta = (self._lean.reference(shared(each)) for each in (state.core, state.meta))
        words = state.contexts.meta, meta, state.contexts.core, core
        return [self._printed(goal, words) for goal in itertools.islice(members(state.goals), MOST_GOALS)]

    def _printed(self, goal: int, words: Sequence[int]) -> str:
        lean = self._lean
        shown = lean.call(table.PRINT_GOAL, shared(goal), *map(shared, words))
        if tag(shown) == _FAILED:
            return "a goal that Lean cannot print"
        return text(lean.call(table.PRETTY, shared(field(shown, 0)), COLUMNS, _ZERO, _ZERO), MOST_BYTES)
