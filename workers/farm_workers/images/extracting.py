"""Image step, extraction: elaborates a file command by command, and writes what its theorems are.

A fork of the header's image does so in its cell. The file's own code can write anything into its answer: a
reader trusts nothing of it, and a line is proved only when it is judged as any other line is.
"""

from __future__ import annotations

import json
import time
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TextIO

from farm_workers.binding import table
from farm_workers.binding.objects import NOTHING, LeanError, boxed, dotted, elements, field, shared, tag, text
from farm_workers.binding.table import Ability
from farm_workers.images.constants import THEOREM, Constants
from farm_workers.images.frontend import Frontend
from farm_workers.images.goals import Goals
from farm_workers.images.protocol import EXTRACTED_NAME, ExtractAsked
from farm_workers.images.steps import States, histogram, steps, tokens
from farm_workers.images.syntax import Kinds, nodes, span
from farm_workers.images.terms import printed_type

_COMMAND = "Lean.Parser.Command."
#: The last commands of a text: its end, and ``#exit``.
_END, _EXIT = f"{_COMMAND}eoi", f"{_COMMAND}exit"
#: The three forms of a declaration's value in Lean's grammar: each follows the signature.
_VALUES = tuple(f"{_COMMAND}{each}" for each in ("declValSimple", "declValEqns", "whereStructInst"))
#: The parts of a declaration that a line quotes.
_QUOTED = {
    f"{_COMMAND}docComment": "doc",
    "Lean.Parser.Term.attributes": "attributes",
    f"{_COMMAND}declSig": "signature",
}
#: The extension with the places of declarations.
_PLACES = "Lean.declRangeExt"
_SORRY = "sorryAx"
_MOST_ERROR = 300


@dataclass(frozen=True, kw_only=True, slots=True)
class _Command:
    """One command that was elaborated: its bytes, Lean's syntax and tree, its first error, and its cost.

    The cost is seconds and heartbeats, None if nobody asked for it.
    """

    start: int
    end: int
    syntax: int
    tree: int
    error: str | None
    cost: tuple[float, int] | None


@dataclass(frozen=True, kw_only=True, slots=True)
class _Declared:
    """A constant with a place in the text: its name, Lean's `ConstantInfo`, and its bytes."""

    name: str
    info: int
    start: int
    end: int


class _LeftOut(Exception):
    """A theorem has no line: has the reason, a word, and more about it."""

    def __init__(self, why: str, more: str = "") -> None:
        super().__init__(why)
        self.why, self.more = why, more


def write_extract(frontend: Frontend, asked: ExtractAsked) -> int:
    """Write the theorems of a file as JSON lines, and return the exit status of this process.

    The last line says that the file was read to its end. Raises LeanError where Lean cannot be asked.
    """
    if reason := frontend.lean.lacks(Ability.EXTRACTION):
        raise LeanError(reason)
    with open(EXTRACTED_NAME, "x", encoding="utf-8") as file:  # noqa: PTH123
        _Extraction(frontend, asked, file).run()
    return 0


class _Extraction:
    """One file, and Lean's state behind the commands so far."""

    def __init__(self, frontend: Frontend, asked: ExtractAsked, file: TextIO) -> None:
        self._frontend, self._lean, self._asked, self._file = frontend, frontend.lean, asked, file
        self._source = asked["program"].encode("utf-8", "surrogatepass")
        self._goals = Goals(frontend, asked["program"])
        self._state = NOTHING
        self._kinds = Kinds()

    def run(self) -> None:
        """Elaborate the file, and write its lines."""
        header = self._asked["program"][: self._asked["start"]]
        self._frontend.report_in_commands()  # Lean keeps the syntax of commands only then
        self._frontend.elaborate(f"{header}\n", None)
        self._state = shared(self._frontend.last_state())
        commands = list(self._commands(len(header.encode("utf-8", "surrogatepass"))))
        declared, own = self._declared()
        environment = shared(self._lean.get(table.ENVIRONMENT, self._state))
        constants = Constants(self._lean, self._frontend.kernel_of(environment), own)
        theorems = [each for each in declared if tag(each.info) == THEOREM]
        for each in theorems[: self._asked["most"]]:
            try:
                self._write(self._line(each, commands, constants))
            except _LeftOut as reason:
                self._write({"left_out": each.name, "why": reason.why, "more": reason.more})
        for each in theorems[self._asked["most"] :]:
            self._write({"left_out": each.name, "why": "most"})
        self._write({"exited": any(self._kinds.of(each.syntax) == _EXIT for each in commands[-1:])})

    def _write(self, line: Mapping[str, object]) -> None:
        self._file.write(json.dumps(line) + "\n")

    # Commands

    def _commands(self, at: int) -> Iterator[_Command]:
        """Elaborate the commands behind a byte, all at once, or one by one if their costs are wanted."""
        lean = self._lean
        position = lean.make(table.PARSER_AT, {"pos": boxed(at), "recovering": 0})
        if not self._asked["costs"]:
            yield from self._elaborated(position, len(self._source), costs=False)
            return
        given = self._frontend.input(self._asked["program"])
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

    def _elaborated(self, position: int, end: int, *, costs: bool) -> list[_Command]:
        """Elaborate the commands between two places of the text: Lean's loop reads a text that ends there.

        So places in them are those of the whole text. The last one is the end of the text.
        """
        lean = self._lean
        until = self._frontend.input(self._source[:end].decode("utf-8", "surrogatepass"))
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
            _Command(start=start, end=last, syntax=syntax, tree=tree, error=errors.get(number), cost=cost)
            for number, ((start, last), syntax, tree) in enumerate(zip(spans, syntaxes, trees, strict=True))
        ]

    def _errors(self, starts: Sequence[int]) -> dict[int, str]:
        """Return Lean's first error about each of the commands with these starts, by its number.

        Lean's parser reports a fault in a text that may be part of no command: it belongs to the last one
        before it.
        """
        lean, found = self._lean, dict[int, str]()
        log = lean.call(table.MESSAGE_ARRAY, shared(lean.get(table.MESSAGES, self._state)))
        for message in elements(log):
            if lean.get(table.SEVERITY, message) == lean.number(table.ERROR):
                place = self._offset(lean.get(table.MESSAGE_POSITION, message))
                words = lean.call(table.WORDS_TEXT, shared(lean.get(table.MESSAGE_WORDS, message)))
                found.setdefault(max(0, bisect_right(starts, place) - 1), text(words, _MOST_ERROR))
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

    # Declarations

    def _declared(self) -> tuple[list[_Declared], dict[str, int]]:
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

    def _placed(self, entry: int, own: Mapping[str, int]) -> _Declared:
        # Of a name and its `DeclarationRanges`, the first `DeclarationRange`: its first and third field.
        name, place = dotted(field(entry, 0)), field(field(entry, 1), 0)
        start, end = (self._offset(field(place, number)) for number in (0, 2))
        return _Declared(name=name, info=own[name], start=start, end=end)

    def _offset(self, position: int) -> int:
        line, column = (self._lean.get(each, position) >> 1 for each in (table.LINE, table.COLUMN))
        return self._goals.offset_of(line, column)

    def _line(
        self, it: _Declared, commands: Sequence[_Command], constants: Constants
    ) -> Mapping[str, object]:
        """Return the line of a theorem. Raises _LeftOut."""
        command = next((each for each in commands if each.start <= it.start < each.end), None)
        if command is None:
            raise _LeftOut("no text")
        if command.error is not None:
            raise _LeftOut("error", command.error)
        if any(each.error is not None for each in commands if each.end <= it.start):
            raise _LeftOut("error above")
        if it.end != command.end:
            raise _LeftOut("part of a command")
        start, value = self._value(command, it)
        axioms = constants.axioms(it.name)
        if _SORRY in axioms:
            raise _LeftOut("sorry")
        type_ = field(field(field(it.info, 0), 0), 2)
        return {
            "name": it.name,
            "start": it.start,
            "proof": start,
            "end": it.end,
            "type": printed_type(self._lean, command.tree, type_),
            "used": (used := constants.used(it.name)),
            "own": [each for each in used if constants.has(each)],
            "axioms": sorted(axioms),
            "cost": command.cost,
            **self._quoted(command, it),
            **self._proof(command, value),
        }

    def _value(self, command: _Command, it: _Declared) -> tuple[int, int]:
        """Return the first byte and the syntax of a declaration's value, which ends the declaration."""
        for node in nodes(command.syntax):
            if self._kinds.of(node) in _VALUES:
                place = span(self._lean, node)
                if place is not None and it.start < place[0] and place[1] == it.end:
                    return place[0], node
        raise _LeftOut("no proof")

    def _quoted(self, command: _Command, it: _Declared) -> Mapping[str, str]:
        """Return the parts of a declaration that a line quotes, as the text has them."""
        found: dict[str, str] = {}
        for node in nodes(command.syntax):
            what = _QUOTED.get(self._kinds.of(node))
            if what is None or what in found:
                continue
            place = span(self._lean, node)
            if place is not None and it.start <= place[0]:
                found[what] = self._source[slice(*place)].decode("utf-8", "replace")
        return found

    def _proof(self, command: _Command, value: int) -> Mapping[str, object]:
        """Return the measures of a proof, and its states where they are asked for."""
        found = steps(self._frontend, self._kinds, value)
        measures = {
            "tokens": tokens(value),
            "step_count": len(found),
            "depth": max((each.depth for each in found), default=0),
            "histogram": histogram(found),
        }
        if not self._asked["states"]:
            return measures
        return {**measures, **States(self._frontend, self._goals, command.tree).of(found)}
