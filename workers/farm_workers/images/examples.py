"""Image step, examples: finds the declarations that a program's environment forgets, and names them.

Lean checks an `example` and forgets it, so its module does not have it. Lean's trees do: each declaration
leaves a node with its name, and the environment in which it was declared. Declarations that are in the trees
and not in the last environment are added to the module under new names, so that audit and kernel check them.

This runs in the process that ran the program, whose code can change the trees. No verdict depends on them: an
added constant is one more that the seal has to accept.

Terms and constants are those of the kernel (``src/Lean/Expr.lean``, ``src/Lean/Declaration.lean``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from farm_workers.binding import table
from farm_workers.binding.lean import Callback, Lean, Replacement
from farm_workers.binding.objects import (
    FALSE,
    NAME_STRING,
    NOTHING,
    dotted,
    elements,
    field,
    number_of,
    shared,
    tag,
)
from farm_workers.images.frontend import Frontend

#: The number of the constructor `const` of `Lean.Expr`.
CONSTANT = 4
#: Constructors of `Lean.ConstantInfo`; how many pointers each has besides its `ConstantVal`, the first of
#: which is its value but for an axiom.
_AXIOM, _DEFINITION, _THEOREM, _OPAQUE = range(4)
_POINTERS = {_AXIOM: 0, _DEFINITION: 3, _THEOREM: 2, _OPAQUE: 2}
#: The place of the value in a definition, a theorem or an opaque constant.
_VALUE = 1
_EXAMPLE = "_example"
_OF_COMMANDS = table.INFO_SYNTAX, table.ELABORATOR


@dataclass(frozen=True, kw_only=True, slots=True)
class _Declared:
    """A declaration that was forgotten: its name, the kernel's environment that has it, and its byte."""

    name: int
    environment: int
    offset: int


class Examples:
    """Reads the trees of the last program that the frontend elaborated.

    `last` is the kernel's view of its environment. After `constants`, `roots` are the syntax of each command
    of the text, and `commands` that of all commands which Lean elaborated, also of those that macros made,
    each with the name of the macro or elaborator that Lean called for it.
    """

    def __init__(self, frontend: Frontend, program: str, moved: Sequence[int]) -> None:
        """Keep the frontend and its last program; `moved` is that of `farm_workers.images.protocol.Asked`."""
        self._frontend, self._lean = frontend, frontend.lean
        self.last = frontend.kernel_of(frontend.last_environment())
        # As Lean reads it, see `mkInputContext`.
        self._source = program.replace("\r\n", "\n").encode("utf-8", "surrogatepass")
        self._found: dict[tuple[int, str], _Declared] = {}
        self._names: set[str] = set()
        self._moved_from, self._moved_by = moved
        self.commands, self.roots = list[tuple[int, int]](), list[int]()
        self._is_root = False

    @property
    def starts(self) -> Counter[int]:
        """How many examples begin at each byte, after `constants`."""
        found = self._found.items()
        return Counter(each.offset for (_, name), each in found if name.split(".")[-1] == _EXAMPLE)

    def constants(self) -> list[tuple[int, int]]:
        """Return the name and the `ConstantInfo` of each constant to add, and of its dependencies."""
        visit = Callback(self._visit)
        for tree in self._frontend.trees():
            self._is_root = True
            self._lean.call(table.FOLD_TREE, self._lean.closure(visit), NOTHING, shared(tree))
        return [pair for each in self._found.values() for pair in self._added(each)]

    def _visit(self, context: int, info: int, found: int) -> int:
        """Note a command, and a node that declares a constant which the last environment does not have."""
        lean = self._lean
        if number_of(info) == lean.number(table.IS_COMMAND):
            syntax, elaborator = (lean.get(each, field(info, 0)) for each in _OF_COMMANDS)
            self.commands.append((syntax, elaborator))
            self.roots += [syntax] if self._is_root else []
        elif number_of(info) == lean.number(table.IS_TERM):
            inner = field(info, 0)  # most are no binders
            if lean.get(table.IS_BINDER, inner) and tag(term := lean.get(table.TERM, inner)) == CONSTANT:
                environment = lean.get(table.CONTEXT_ENVIRONMENT, lean.get(table.COMMAND_CONTEXT, context))
                syntax = lean.get(table.INFO_SYNTAX, lean.get(table.TERM_INFO, inner))
                self._note(field(term, 0), environment, syntax)
        self._is_root = False
        return found

    def _note(self, name: int, environment: int, syntax: int) -> None:
        if _find(self._lean, self.last, name) != NOTHING:
            return
        place = self._lean.call(table.START, shared(syntax), FALSE)
        declared = _Declared(
            name=name,
            environment=self._frontend.kernel_of(environment),
            offset=0 if place == NOTHING else field(place, 0) >> 1,
        )
        self._found.setdefault((environment, dotted(name)), declared)

    def _added(self, declared: _Declared) -> Iterator[tuple[int, int]]:
        """Yield a forgotten declaration, and its dependencies that were forgotten too, under new names."""
        lean, new = self._lean, self._new_name(declared)
        found = dict(_reached(lean, declared, self.last))
        if not found:
            yield new, self._without_proof(new, declared.name)
        names = {name: _below(lean, new, known.name) for name, known in found.items()}
        names[dotted(declared.name)] = new
        renaming = _Renaming(lean, names)
        for name, known in found.items():
            yield names[name], renaming.constant(known.info, names[name])

    def _without_proof(self, name: int, missing: int) -> int:
        """Return an axiom that no seal accepts, for a declaration without an environment."""
        lean = self._lean
        type_ = lean.runtime(table.CONST)(shared(missing), NOTHING)
        header = lean.constructor(0, [shared(name), NOTHING, type_])
        return lean.constructor(_AXIOM, [lean.constructor(0, [header], bytes(8))])

    def _new_name(self, declared: _Declared) -> int:
        """Return the new name of a declaration in the module: one that no program has by chance."""
        said = dotted(declared.name)
        what = "example" if said.split(".")[-1] == _EXAMPLE else said
        line = self._source.count(b"\n", 0, declared.offset) + 1
        line -= self._moved_by if line >= self._moved_from else 0
        place = first = f"{what} at line {line}"
        number = 1
        while place in self._names:
            number += 1
            place = f"{first} ({number})"
        self._names.add(place)
        return self._lean.name(place)


@dataclass(frozen=True, slots=True)
class _Known:
    name: int
    info: int


def _reached(lean: Lean, declared: _Declared, last: int) -> Iterator[tuple[str, _Known]]:
    """Yield a declaration and its dependencies that its own environment has and the last one lacks."""
    todo, seen = [declared.name], {dotted(declared.name)}
    while todo:
        name = todo.pop()
        found = _find(lean, declared.environment, name)
        if found == NOTHING:
            continue  # the seal finds the missing constant
        info = field(found, 0)
        yield dotted(name), _Known(name, info)
        for used in _used(lean, info):
            if dotted(used) not in seen and _find(lean, last, used) == NOTHING:
                seen.add(dotted(used))
                todo.append(used)


def _used(lean: Lean, info: int) -> Iterator[int]:
    """Yield the names of the constants in the type and the value of a constant."""
    value = field(info, 0)
    terms = [field(field(value, 0), 2)]
    if tag(info) in (_DEFINITION, _THEOREM, _OPAQUE):
        terms.append(field(value, _VALUE))
    for term in terms:
        yield from elements(lean.call(table.USED_CONSTANTS, shared(term)))


def _find(lean: Lean, environment: int, name: int) -> int:
    """Return the `Option ConstantInfo` of a name in an environment of the kernel's."""
    return lean.call(table.FIND, shared(environment), shared(name))


def _below(lean: Lean, above: int, name: int) -> int:
    """Return a name below another one."""
    if name == NOTHING:
        return shared(above)
    prefix = _below(lean, above, field(name, 0))
    maker = table.NAME_STRING if tag(name) == NAME_STRING else table.NAME_NUMBER
    return lean.runtime(maker)(prefix, shared(field(name, 1)))


class _Renaming:
    """Renames constants of Lean everywhere in a term; `names` maps old names to new ones."""

    def __init__(self, lean: Lean, names: dict[str, int]) -> None:
        self._lean, self._names = lean, names
        self._replace = Replacement(self._replaced)

    def constant(self, info: int, name: int) -> int:
        """Return a `ConstantInfo` like this one under another name.

        One whose kind has no place here stays as it is: the seal refuses it, for its name is another.
        """
        kind, lean = tag(info), self._lean
        if kind not in _POINTERS:
            return shared(info)
        value = field(info, 0)
        header, pointers = field(value, 0), [field(value, 1 + each) for each in range(_POINTERS[kind])]
        stated = [shared(name), shared(field(header, 1)), self._term(field(header, 2))]
        held = [lean.constructor(0, stated)]
        if kind != _AXIOM:
            own = lean.constructor(1, [shared(name), NOTHING])
            held += [self._term(pointers[0]), *map(shared, pointers[1:-1]), own]
        marks = field(value, 1 + len(pointers)) & 0xFF if kind != _THEOREM else 0
        scalars = b"" if kind == _THEOREM else bytes([marks, *bytes(7)])
        return lean.constructor(kind, [lean.constructor(0, held, scalars)])

    def _term(self, term: int) -> int:
        used = map(dotted, elements(self._lean.call(table.USED_CONSTANTS, shared(term))))
        if self._names.keys().isdisjoint(used):
            return shared(term)
        replace = self._lean.closure(self._replace)
        return self._lean.call(table.REPLACED, replace, shared(term))

    def _replaced(self, term: int) -> int:
        """Return Lean's replacement for a term: an `Option Expr`."""
        new = self._names.get(dotted(field(term, 0))) if tag(term) == CONSTANT else None
        if new is None:
            return NOTHING
        made = self._lean.runtime(table.CONST)(shared(new), shared(field(term, 1)))
        return self._lean.constructor(1, [made])
