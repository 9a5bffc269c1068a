"""Audit step, sentences: writes the statement of a theorem in a form that other modules' theorems share.

Two theorems with equal sentences state the same, whatever names they and the declarations of their own files
have. A sentence is the digest of the theorem's type without the negations at its front, and says whether
their number is odd. So two theorems contradict each other where only that differs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from farm_workers.audit import terms
from farm_workers.audit.compiled import is_compiled
from farm_workers.audit.declarations import Constant, ConstantKind, Import, Module
from farm_workers.audit.kernel import SORRY
from farm_workers.audit.names import dotted
from farm_workers.audit.olean import MalformedOlean, Name
from farm_workers.audit.terms import Node, Reading, Terms, parts_of_node

NOT, _FALSE = ("Not",), ("False",)
#: The word among the axioms of a proof that trusts the compiler.
COMPILER = "the compiler"

#: The most parts of terms of which a sentence is made, and the most axioms; a larger theorem has none.
_MOST_PARTS, _MOST_AXIOMS, _LONGEST_NAME = 20_000, 100, 200
_SHAPES = {
    terms.APP: "app",
    terms.LAMBDA: "lambda",
    terms.PI: "pi",
    terms.LET: "let",
    terms.SORT: "sort",
    terms.LEVEL_SUCC: "succ",
    terms.LEVEL_MAX: "max",
    terms.LEVEL_IMAX: "imax",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Sentence:
    """The statement of a theorem, and the axioms of its proof.

    `key` is the digest of its type without the negations at its front, and of the module's imports; `negated`
    says that their number is odd. `uses` are the axioms that the proof rests on, `allows` those beside
    Lean's own that it might have used. An axiom of the module's own has the digest of its statement with it.
    """

    key: str
    negated: bool
    uses: tuple[str, ...]
    allows: tuple[str, ...]

    def facts(self) -> dict[str, object]:
        """Return the sentence as JSON."""
        return {"key": self.key, "negated": self.negated, "uses": self.uses, "allows": self.allows}


class _TooLarge(Exception):
    """A theorem has too many parts for a sentence."""


class Sentences:
    """Makes the sentences of one module, below the module of a context if that is another."""

    def __init__(self, module: Module, above: Module | None = None) -> None:
        modules = [module] if above is None else [module, above]
        self._own = [(each, Reading(each.olean, Terms())) for each in modules]
        self._imports = [_written_import(each) for each in (above or module).imports]

    def of(
        self, target: Constant, *, axioms: Sequence[Name], allowed: Collection[Name], native: bool
    ) -> Sentence | None:
        """Return the sentence of a theorem; None for one that is too large, or that rests on a sorry.

        `axioms` are those that its proof rests on, `allowed` those that it may rest on; with `native` it may
        trust the compiler.
        """
        if SORRY in axioms or max(len(axioms), len(allowed)) > _MOST_AXIOMS:
            return None
        try:
            with self._bounded():
                key, negated = self.stated(target)
                uses = {self._axiom(name) for name in axioms}
                allows = {self._axiom(name) for name in allowed}
        except (_TooLarge, MalformedOlean):  # no proof is refused for it
            return None
        allows |= {COMPILER} if native else set()
        return Sentence(key=key, negated=negated, uses=tuple(sorted(uses)), allows=tuple(sorted(allows)))

    @contextmanager
    def _bounded(self) -> Iterator[None]:
        """Let the block visit few objects of the files, and count none of them against their budgets."""
        oleans = [module.olean for module, _ in self._own]
        left = [each.left for each in oleans]
        for each in oleans:
            each.left = _MOST_PARTS
        try:
            yield
        finally:
            for each, before in zip(oleans, left, strict=True):
                each.left = before

    def stated(self, target: Constant) -> tuple[str, bool]:
        """Return the digest of a type without the negations at its front, and whether their number is odd.

        Raises _TooLarge.
        """
        reading = self._own[0][1]
        root, negations = reading.expression(target.type), 0
        while (inner := self._below_negation(reading.terms.nodes, root)) is not None:
            root, negations = inner, negations + 1
        return self._digest(reading, root), negations % 2 == 1

    def _below_negation(self, nodes: Sequence[Node], number: int) -> int | None:
        """Return the term of which a term is the negation, as `Not p` or `p → False`; None for any other.

        The two constants must belong to the imports: a module can declare others by these names.
        """
        own = {name for name in (NOT, _FALSE) for module, _ in self._own if name in module.names}
        if nodes[number][0] == terms.PI and _FALSE not in own:
            domain, body = parts_of_node(nodes[number])
            return domain if nodes[body] == (terms.CONST, _FALSE, ()) else None
        return None if NOT in own else below_not(nodes, number)

    def _axiom(self, name: Name) -> str:
        """Return an axiom by its name, and by its statement if the module itself declares it."""
        text = dotted(name)
        written = text if len(text) <= _LONGEST_NAME and text.isprintable() else _sha256(text)
        for module, reading in self._own:
            constant = module.constant(name)
            if constant is not None and is_compiled(constant, module.olean):
                return COMPILER
            if constant is not None:
                return f"{written}#{self._digest(reading, reading.expression(constant.type))}"
        return written

    def _digest(self, reading: Reading, root: int) -> str:
        """Return the digest of a term, with all that it refers to in the modules."""
        form = _Form(self._own)
        whole = form.of(reading, root, {})
        declared = list[list[object]]()
        while len(declared) < len(form.own):  # declaring one can add others
            declared.append(form.declared(form.own[len(declared)]))
        return _sha256([whole, declared, self._imports])


class _Form:
    """The digests of the parts of terms; the modules' own constants are numbers, in the order of `own`."""

    def __init__(self, modules: Sequence[tuple[Module, Reading]], most: int = _MOST_PARTS) -> None:
        self._modules, self._left = modules, most
        self.own = list[Name]()
        self._numbers = dict[Name, int]()

    def declared(self, name: Name) -> list[object]:
        """Return the parts of a constant of the modules; of a theorem, its statement alone."""
        module, reading = next(each for each in self._modules if name in each[0].names)
        constant = module.constant(name)
        assert constant is not None  # noqa: S101 - the module declares it
        levels = {parameter: number for number, parameter in enumerate(constant.parameters)}
        is_theorem = constant.kind is ConstantKind.THEOREM
        places = (constant.type,) if is_theorem else constant.expressions()
        return [
            constant.kind,
            constant.safety,
            len(constant.parameters),
            list(constant.numbers),
            [self._named(each) for each in constant.relatives()],
            [self.of(reading, reading.expression(place), levels) for place in places],
        ]

    def of(self, reading: Reading, root: int, levels: dict[Name, int]) -> str:
        """Return the digest of a term; universe parameters that `levels` lacks get their numbers there."""
        nodes, known, todo = reading.terms.nodes, dict[int, str](), [root]
        while todo:
            number = todo[-1]
            if number in known:
                todo.pop()
                continue
            new = [part for part in parts_of_node(nodes[number]) if part not in known]
            if new:  # parts have lower numbers than the whole
                todo += reversed(new)
                continue
            self._left -= 1
            if self._left < 0:
                raise _TooLarge
            known[number] = _sha256(self._form(nodes[number], known, levels))
        return known[root]

    def _form(self, node: Node, known: dict[int, str], levels: dict[Name, int]) -> list[object]:
        shape, parts = node[0], [known[each] for each in parts_of_node(node)]
        if shape in _SHAPES:
            return [_SHAPES[shape], *parts]
        if shape == terms.CONST:
            return ["const", self._named(node[1]), parts]  # type: ignore[arg-type]
        if shape == terms.PROJECTION:
            return ["proj", self._named(node[1]), str(node[2]), *parts]  # type: ignore[arg-type]
        if shape == terms.LEVEL_PARAMETER:
            return ["param", levels.setdefault(node[1], len(levels))]  # type: ignore[arg-type]
        if shape == terms.LITERAL:
            return ["text", node[1]] if isinstance(node[1], str) else ["nat", str(node[1])]
        return [str(shape), *map(str, node[1:])]

    def _named(self, name: Name) -> str | int:
        """Return the name of an imported constant, the number of one of the modules' own."""
        if not any(name in module.names for module, _ in self._modules):
            return dotted(name)
        if name not in self._numbers:
            self._numbers[name] = len(self.own)
            self.own.append(name)
        return self._numbers[name]


def below_not(nodes: Sequence[Node], number: int) -> int | None:
    """Return the term to which a term applies `Not`; None for any other term."""
    if nodes[number][0] != terms.APP:
        return None
    function, argument = parts_of_node(nodes[number])
    return argument if nodes[function] == (terms.CONST, NOT, ()) else None


def _written_import(each: Import) -> list[object]:
    return [dotted(each.module), each.import_all, each.is_exported, each.is_meta]


def _sha256(form: object) -> str:
    return hashlib.sha256(json.dumps(form, separators=(",", ":")).encode()).hexdigest()
