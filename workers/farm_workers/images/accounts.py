"""Image step, accounts: finds the declarations of a program that leave no constant.

A command can drop the error of a declaration inside of it, as `#guard_msgs` does, and an elaborator can stop
without an error. Then Lean reports nothing and the module lacks the declaration. So each declaration that
Lean's parser found in the text, and each one that a macro made, must have left a constant of its name whose
text begins and ends with it. Lean notes these places in the module (``src/Lean/DeclarationRange.lean``).

The process that ran the program does this, and the program's code can change the data. No verdict depends on
it: a fault is one more reason to reject the program.
"""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from farm_workers.binding import table
from farm_workers.binding.objects import NOTHING, LeanError, dotted, elements, field, shared, tag
from farm_workers.images.examples import CONSTANT, Examples
from farm_workers.images.frontend import Frontend
from farm_workers.images.goals import Goals
from farm_workers.images.syntax import IDENTIFIER, NODE, Kinds, kind_of, span

_COMMAND = "Lean.Parser.Command."
_DECLARATION, _EXAMPLE, _NAME = (f"{_COMMAND}{each}" for each in ("declaration", "example", "declId"))
#: Lean's own command that compares the messages of another one with a text, and drops them.
_CATCHES = "Lean.guardMsgsCmd"
#: Commands that state nothing: Lean declares a quotation of a macro where it expands the macro.
_SKIPPED = frozenset(f"{_COMMAND}{each}" for each in ("macro", "macro_rules", "deriving"))
#: Quotations of commands; one of the second kind begins with the name of a category.
_QUOTED, _QUOTED_AS, _AS_COMMAND = f"{_COMMAND}quot", "Lean.Parser.Term.dynamicQuot", "command"
#: The type of elaborators of commands: Lean knows them by its name. Macros catch no errors.
_ELABORATOR = "Lean.Elab.Command.CommandElab"
#: A node that only holds others.
_GROUP = "null"
#: The extension with the places of declarations, and the part of a name that no constant has.
_PLACES, _ROOT = "Lean.declRangeExt", "_root_."
_MOST_FAULTS = 20

_LOST = "This declaration leaves nothing in the compiled module, and Lean reports no error: it is not proved."
_CAUGHT = (
    "This command drops the errors of another command: a program without a statement must not contain one. "
    "Remove the command, or give the program a statement."
)
_CODE = (
    "This code may declare what it quotes and drop the errors of that, and Lean does not tell: remove it, or "
    "give the program a statement."
)
_NO_TRACE = (
    "This command, whose syntax the program defines, declares nothing: remove it, or give the program a "
    "statement."
)
_OWN_CODE = (
    "The program's own code elaborates this command, and may drop errors: use a macro, or give the program a "
    "statement."
)
_UNKNOWN = (
    "Lean does not tell what this program declares: give it a statement, or remove code that changes Lean."
)

Span = tuple[int, int]
#: The place of syntax that stands nowhere in the text.
_NOWHERE: Span = (-1, -1)


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """A place of the program, in bytes, and a sentence about it."""

    place: int
    sentence: str


@dataclass(frozen=True, kw_only=True, slots=True)
class _Declaration:
    """A declaration in Lean's syntax: its bytes, its name if it has one, and the start of an `example`."""

    span: Span
    name: str | None
    example: int | None


class Unaccounted(LeanError):
    """A program has faults, which were printed: its module may lack a declaration."""


class Accounts:
    """Compares the declarations of the last program with the constants that it left."""

    def __init__(self, frontend: Frontend, program: str, examples: Examples) -> None:
        """Keep the frontend, its last program, and the examples that were found in its trees."""
        self._frontend, self._lean, self._examples = frontend, frontend.lean, examples
        goals = Goals(frontend, program)
        self.place_of, self._offset_of = goals.place_of, goals.offset_of
        self._last, self._first = examples.last, frontend.kernel_environment()
        self._constants = self._placed()
        self._seen, self._skipped = set[int](), list[Span]()
        self._faults, self._kinds = list[Fault](), Kinds()

    def faults(self) -> list[Fault]:
        """Return the first faults of the program, in its order."""
        commands = self._examples.roots
        if len(commands) < self._frontend.commands():
            return [Fault(place=0, sentence=_UNKNOWN)]
        written = [each for command in commands for each in self._declared(command)]
        self._require(dict.fromkeys(written, 1))
        covered = [*(each.span for each in written), *self._skipped]
        elaborated = self._examples.commands
        made = (each for each, _ in elaborated if not _is_in(self._span(each), covered))
        self._require(Counter(each for command in made for each in self._declared(command)))
        for command in commands:
            self._require_trace(command)
        for own in filter(self._is_own_code, {elaborator for _, elaborator in elaborated}):
            self._fault(next(command for command, by in elaborated if by == own), _OWN_CODE)
        unique = dict.fromkeys(sorted(self._faults, key=lambda each: (each.place, each.sentence)))
        return list(unique)[:_MOST_FAULTS]

    def _declared(self, command: int) -> Iterator[_Declaration]:
        """Yield the new declarations in a command; note commands and code that can hide others."""
        todo = [command]
        while todo:
            node = todo.pop()
            if node & 1 or tag(node) != NODE or node in self._seen:
                continue
            self._seen.add(node)
            kind = self._kinds.of(node)
            if kind in _SKIPPED and not self._is_own(field(node, 1)):
                self._skipped.append(self._span(node))
                continue
            if kind == _CATCHES:
                self._fault(node, _CAUGHT)
            if kind == _QUOTED or (kind == _QUOTED_AS and _quotes_commands(node)):
                self._fault(node, _CODE)
                continue
            if kind == _DECLARATION:
                yield self._declaration(node)
            todo += reversed(elements(field(node, 2)))

    def _declaration(self, node: int) -> _Declaration:
        parts = elements(field(node, 2))
        inner = parts[1] if len(parts) > 1 else NOTHING
        if inner & 1 or tag(inner) != NODE:
            return _Declaration(span=self._span(node), name=None, example=None)
        example = self._span(inner)[0] if kind_of(inner) == _EXAMPLE else None
        return _Declaration(span=self._span(node), name=_name_in(inner), example=example)

    def _require(self, wanted: dict[_Declaration, int]) -> None:
        """Note a fault for each declaration that left fewer constants than it should.

        A macro may have written one with a name again, so that one constant is enough for it.
        """
        for each, count in wanted.items():
            if each.example is not None:
                found = self._examples.starts[each.example]
            else:
                found = sum(_is_named(name, each.name) for name in self._constants[each.span])
            if found < (1 if each.name else count):
                self._faults.append(Fault(place=max(0, each.span[0]), sentence=_LOST))

    def _require_trace(self, command: int) -> None:
        """Note a fault for a command of the program's own syntax that declares nothing."""
        kind = field(command, 1)
        start, end = self._span(command)
        if not self._is_own(kind):
            return
        constants = (each for each, names in self._constants.items() if names)
        if not any(start <= each[0] and each[1] <= end for each in constants) and not any(
            start <= each < end for each in self._examples.starts
        ):
            self._fault(command, _NO_TRACE)

    def _is_own_code(self, elaborator: int) -> bool:
        """Return whether a command was elaborated by an elaborator of the program."""
        if not self._is_own(elaborator):
            return False
        found = self._lean.call(table.FIND, shared(self._last), shared(elaborator))
        type_ = field(field(field(field(found, 0), 0), 0), 2)
        return tag(type_) == CONSTANT and dotted(field(type_, 0)) == _ELABORATOR

    def _placed(self) -> defaultdict[Span, list[str]]:
        """Return the names of the program's constants by the bytes of their texts."""
        lean, found = self._lean, defaultdict[Span, list[str]](list)
        data = self._frontend.module_data(shared(self._frontend.last_environment()))
        for extension in elements(lean.get(table.ENTRIES, data)):
            if dotted(field(extension, 0)) == _PLACES:
                for entry in elements(field(extension, 1)):
                    if self._has(self._last, field(entry, 0)):
                        place = field(field(entry, 1), 0)
                        found[self._offset(place, 0), self._offset(place, 2)].append(dotted(field(entry, 0)))
        return found

    def _offset(self, place: int, number: int) -> int:
        position = field(place, number)
        line, column = (self._lean.get(each, position) >> 1 for each in (table.LINE, table.COLUMN))
        return self._offset_of(line, column)

    def _is_own(self, name: int) -> bool:
        """Return whether the program declares a constant."""
        return self._has(self._last, name) and not self._has(self._first, name)

    def _has(self, environment: int, name: int) -> bool:
        return self._lean.call(table.FIND, shared(environment), shared(name)) != NOTHING

    def _span(self, node: int) -> Span:
        return span(self._lean, node) or _NOWHERE

    def _fault(self, node: int, sentence: str) -> None:
        self._faults.append(Fault(place=max(0, self._span(node)[0]), sentence=sentence))


def require_accounted(frontend: Frontend, program: str, examples: Examples) -> None:
    """Print the faults of the last program as errors of Lean's. Raises Unaccounted if there are any."""
    accounts = Accounts(frontend, program, examples)
    faults = accounts.faults()
    for each in faults:
        line, column = accounts.place_of(each.place)
        said = {"severity": "error", "pos": {"line": line, "column": column}, "data": each.sentence}
        os.write(1, json.dumps(said).encode() + b"\n")
    if faults:
        raise Unaccounted


def _name_in(declaration: int) -> str | None:
    """Return the name that stands in a declaration, as it is written there."""
    for part in elements(field(declaration, 2)):
        inner = elements(field(part, 2))[:1] if _is_node(part, _GROUP) else [part]
        for each in inner:
            if _is_node(each, _NAME) and tag(name := elements(field(each, 2))[0]) == IDENTIFIER:
                return dotted(field(name, 2)).removeprefix(_ROOT)
    return None


def _is_node(syntax: int, kind: str) -> bool:
    return not syntax & 1 and tag(syntax) == NODE and kind_of(syntax) == kind


def _is_named(constant: str, name: str | None) -> bool:
    return name is None or constant == name or constant.endswith(f".{name}")


def _is_in(place: Span, others: Sequence[Span]) -> bool:
    return any(start <= place[0] and place[1] <= end for start, end in others)


def _quotes_commands(node: int) -> bool:
    """Return whether a quotation with the name of a category has that of commands."""
    parts = (each for each in elements(field(node, 2)) if not each & 1 and tag(each) == IDENTIFIER)
    return any(dotted(field(each, 2)) == _AS_COMMAND for each in parts)
