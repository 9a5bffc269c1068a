"""Audit step, digests: the digest of a statement, equal for equal statements under other names.

The form is written in docs/use/tasks.md. Each part is a JSON array, with the digests of its own parts in it;
its digest is the sha256 of that text, in hex. Names of bound variables, brackets and metadata are left out,
universe parameters are numbers, and names that begin with the theorem's own name are written without it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence

from farm_workers.audit import terms
from farm_workers.audit.declarations import Constant, Module
from farm_workers.audit.names import dotted
from farm_workers.audit.olean import Name
from farm_workers.audit.terms import Node, Reading

#: The most bits of a number that is written in decimal, of which Python writes 4 300 digits.
_MOST_BITS = 14_000
_LEVELS = {terms.LEVEL_SUCC: "succ", terms.LEVEL_MAX: "max", terms.LEVEL_IMAX: "imax"}
_TERMS = {terms.APP: "app", terms.LAMBDA: "lambda", terms.PI: "pi", terms.LET: "let"}


def statement_digest(module: Module, reading: Reading, target: Constant, reached: Iterable[Name]) -> str:
    """Return the digest of a theorem's statement, with the module's own constants that it reaches."""
    names = _Names(module, target.name)
    own = [constant for name in sorted(reached, key=dotted) if (constant := module.constant(name))]
    return _sha256(
        [
            "statement",
            len(target.parameters),
            _Digests(reading, names.written, target.parameters).of(target.type),
            [_declaration(reading, names, each) for each in own],
        ]
    )


def value_digest(reading: Reading, parameters: Sequence[Name], place: int) -> str:
    """Return the digest of a term of a constant with these universe parameters, all names written in full."""
    return _Digests(reading, dotted, parameters).of(place)


def number_text(number: object) -> str:
    """Return a number in decimal, or in hexadecimal if it is so large that decimal would take long."""
    return hex(number) if isinstance(number, int) and number.bit_length() > _MOST_BITS else str(number)


def _declaration(reading: Reading, names: _Names, constant: Constant) -> list[object]:
    digests = _Digests(reading, names.written, constant.parameters)
    return [
        names.written(constant.name),
        constant.kind,
        constant.safety,
        len(constant.parameters),
        list(constant.numbers),
        [names.written(each) for each in constant.relatives()],
        [digests.of(place) for place in constant.expressions()],
    ]


class _Names:
    """Writes names, those below the theorem's own relative to it."""

    def __init__(self, module: Module, target: Name) -> None:
        self._module, self._target = module, target

    def written(self, name: Name) -> str:
        length = len(self._target)
        is_below = name[:length] == self._target and name in self._module.names
        return f".{dotted(name[length:])}" if is_below else dotted(name)


class _Digests:
    """The digests of terms of one constant."""

    def __init__(self, reading: Reading, written: Callable[[Name], str], parameters: Sequence[Name]) -> None:
        self._reading, self._written, self._nodes = reading, written, reading.terms.nodes
        self._parameters = {name: number for number, name in enumerate(parameters)}
        self._known: dict[int, str] = {}

    def of(self, place: int) -> str:
        root = self._reading.expression(place)
        todo = [root]
        while todo:  # parts have lower numbers than the whole
            number = todo[-1]
            new = [part for part in _parts(self._nodes[number]) if part not in self._known]
            if new:
                todo += new
                continue
            todo.pop()
            if number not in self._known:
                self._reading.olean.spend(1)
                self._known[number] = _sha256(self._form(self._nodes[number]))
        return self._known[root]

    def _form(self, node: Node) -> list[object]:
        shape = node[0]
        parts = [self._known[each] for each in _parts(node)]
        if shape in _LEVELS or shape in _TERMS:
            return [_LEVELS.get(shape) or _TERMS[shape], *parts]
        if shape == "zero":
            return ["zero"]
        if shape == terms.SORT:
            return ["sort", *parts]
        if shape == terms.CONST:
            return ["const", self._written(node[1]), parts]  # type: ignore[arg-type]
        if shape == terms.PROJECTION:
            return ["proj", self._written(node[1]), str(node[2]), *parts]  # type: ignore[arg-type]
        if shape == terms.LEVEL_PARAMETER:
            return ["param", self._parameters.get(node[1], -1)]  # type: ignore[call-overload]
        if shape == terms.LITERAL:
            return ["text", node[1]] if isinstance(node[1], str) else ["nat", number_text(node[1])]
        return ["bound" if shape == terms.BVAR else "open", str(node[1])]


def _parts(node: Node) -> tuple[int, ...]:
    """Return the numbers of the levels and terms in a node."""
    shape = node[0]
    if shape in _LEVELS or shape in _TERMS or shape == terms.SORT:
        return node[1:]  # type: ignore[return-value]
    if shape == terms.CONST:
        return node[2]  # type: ignore[return-value]
    return node[3:] if shape == terms.PROJECTION else ()  # type: ignore[return-value]


def _sha256(form: list[object]) -> str:
    return hashlib.sha256(json.dumps(form, separators=(",", ":")).encode()).hexdigest()
