"""Image step, files: elaborates a file command by command, with Lean's syntax and tree of each."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from farm_workers.binding import table
from farm_workers.binding.objects import NOTHING, boxed, dotted, elements, field, shared, text
from farm_workers.images.frontend import Frontend
from farm_workers.images.goals import Goals
from farm_workers.images.syntax import Kinds, span

_COMMAND = "Lean.Parser.Command."
#: The last commands of a text: its end, and ``#exit``.
_END, _EXIT = f"{_COMMAND}eoi", f"{_COMMAND}exit"
#: The three forms of a declaration's value in Lean's grammar: each follows the signature.
VALUES = tuple(f"{_COMMAND}{each}" for each in ("declValSimple", "declValEqns", "whereStructInst"))
#: The extension with the places of declarations.
_PLACES = "Lean.declRangeExt"
_MOST_ERROR = 300


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """An error of Lean's: the line of the text, from 1, and Lean's words."""

    line: int
    words: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Elaborated:
    """One command that was elaborated: its bytes, Lean's syntax and tree, its first error, and its cost.

    The cost is seconds and heartbeats, None if nobody asked for it.
    """

    start: int
    end: int
    syntax: int
    tree: int
    error: Fault | None
    cost: tuple[float, int] | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Declared:
    """A constant with a place in the text: its name, Lean's `ConstantInfo`, and its bytes."""

    name: str
    info: int
    start: int
    end: int


class ElaboratedFile:
    """One file, and Lean's state behind the commands so far.

    The places of commands and declarations are bytes of `source`.
    """

    def __init__(self, frontend: Frontend, program: str, header_end: int) -> None:
        """Have Lean import the header, which ends at an offset of the program."""
        self._frontend, self._lean, self._program = frontend, frontend.lean, program
        self.source = program.encode("utf-8", "surrogatepass")
        self.goals, self.kinds = Goals(frontend, program), Kinds()
        header = program[:header_end]
        self._begin = len(header.encode("utf-8", "surrogatepass"))
        frontend.report_in_commands()  # Lean keeps the syntax of commands only then
        frontend.elaborate(f"{header}\n", None)
        self._state = shared(frontend.last_state())

    def environment(self) -> int:
        """Return Lean's environment behind the commands so far."""
        return shared(self._lean.get(table.ENVIRONMENT, self._state))

    def exits(self, commands: Sequence[Elaborated]) -> bool:
        """Return whether the last of the commands is ``#exit``."""
        return any(self.kinds.of(each.syntax) == _EXIT for each in commands[-1:])

    def commands(self, *, costs: bool = False) -> Iterator[Elaborated]:
        """Elaborate the commands below the header, all at once, or one by one if their costs are wanted."""
        lean = self._lean
        position = lean.make(table.PARSER_AT, {"pos": boxed(self._begin), "recovering": 0})
        if not costs:
            yield from self._elaborated(position, len(self.source), costs=False)
            return
        given = self._frontend.input(self._program)
        while True:
            nothing = shared(lean.constant(table.NO_MESSAGES))
            read = lean.call(table.PARSE_COMMAND, shared(given), self._scope(), shared(position), nothing)
            kind = dotted(lean.call(table.SYNTAX_KIND, shared(field(read, 0))))
            position, before = shared(field(field(read, 1), 0)), position
            yield from self._elaborated(before, lean.get(table.PARSER_POSITION, position) >> 1, costs=True)[
                :1
            ]
            if kind in (_END, _EXIT):
                return

    def _elaborated(self, position: int, end: int, *, costs: bool) -> list[Elaborated]:
        """Elaborate the commands between two places of the text: Lean's loop reads a text that ends there.

        So places in them are those of the whole text. The last one is the end of the text.
        """
        lean = self._lean
        until = self._frontend.input(self.source[:end].decode("utf-8", "surrogatepass"))
        counted, began = self._heartbeats(), time.perf_counter()
        done = lean.call(table.PROCESS_COMMANDS, until, shared(position), shared(self._state))
        cost = (time.perf_counter() - began, self._heartbeats() - counted) if costs else None
        self._state = shared(lean.get(table.DONE_STATE, done))
        syntaxes = elements(shared(lean.get(table.DONE_COMMANDS, done)))
        info = lean.get(table.TREES, lean.get(table.INFO_STATE, self._state))
        trees = elements(lean.call(table.TREES_ARRAY, shared(info)))
        spans = [(span(lean, each) or (end, end)) for each in syntaxes]
        errors = self._errors([start for start, _ in spans[: 1 if costs else None]])
        trees = trees if len(trees) == len(syntaxes) else [NOTHING] * len(syntaxes)
        return [
            Elaborated(start=start, end=last, syntax=syntax, tree=tree, error=errors.get(number), cost=cost)
            for number, ((start, last), syntax, tree) in enumerate(zip(spans, syntaxes, trees, strict=True))
        ]

    def _errors(self, starts: Sequence[int]) -> dict[int, Fault]:
        """Return Lean's first error about each of the commands with these starts, by its number.

        Lean's parser reports a fault in a text that may be part of no command: it belongs to the last one
        before it.
        """
        lean, found = self._lean, dict[int, Fault]()
        log = lean.call(table.MESSAGE_ARRAY, shared(lean.get(table.MESSAGES, self._state)))
        for message in elements(log):
            if lean.get(table.SEVERITY, message) == lean.number(table.ERROR):
                position = lean.get(table.MESSAGE_POSITION, message)
                words = lean.call(table.WORDS_TEXT, shared(lean.get(table.MESSAGE_WORDS, message)))
                fault = Fault(line=lean.get(table.LINE, position) >> 1, words=text(words, _MOST_ERROR))
                found.setdefault(max(0, bisect_right(starts, self._offset(position)) - 1), fault)
        return found

    def _heartbeats(self) -> int:
        said = self._lean.runtime(table.GET_HEARTBEATS)(NOTHING)
        return (said if said & 1 else field(said, 0)) >> 1

    def _scope(self) -> int:
        lean, scope = self._lean, field(self._lean.get(table.SCOPES, self._state), 0)
        parts = {
            "env": shared(lean.get(table.ENVIRONMENT, self._state)),
            "options": shared(lean.get(table.SCOPE_OPTIONS, scope)),
            "currNamespace": shared(lean.get(table.SCOPE_NAMESPACE, scope)),
            "openDecls": shared(lean.get(table.SCOPE_OPEN, scope)),
        }
        return lean.make(table.PARSER_CONTEXT, parts)

    def declared(self) -> tuple[list[Declared], dict[str, int]]:
        """Return the constants that have a place in the text, in its order, and all constants of the file."""
        lean = self._lean
        data = self._frontend.module_data(shared(lean.get(table.ENVIRONMENT, self._state)))
        names, infos = (elements(lean.get(each, data)) for each in (table.NAMES, table.CONSTANTS))
        own = {dotted(name): info for name, info in zip(names, infos, strict=True)}
        places = [
            entry
            for extension in elements(lean.get(table.ENTRIES, data))
            if dotted(field(extension, 0)) == _PLACES
            for entry in elements(field(extension, 1))
        ]
        found = (self._placed(entry, own) for entry in places if dotted(field(entry, 0)) in own)
        return sorted(found, key=lambda each: (each.start, each.name)), own

    def _placed(self, entry: int, own: Mapping[str, int]) -> Declared:
        # Of a name and its `DeclarationRanges`, the first `DeclarationRange`: its first and third field.
        name, place = dotted(field(entry, 0)), field(field(entry, 1), 0)
        start, end = (self._offset(field(place, number)) for number in (0, 2))
        return Declared(name=name, info=own[name], start=start, end=end)

    def _offset(self, position: int) -> int:
        line, column = (self._lean.get(each, position) >> 1 for each in (table.LINE, table.COLUMN))
        return self.goals.offset_of(line, column)
