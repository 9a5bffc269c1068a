"""Audit step, the statement: decides whether a module's theorem has the statement of the challenge's.

Types are compared structurally, and so are, by name, all constants of the module that the type reaches:
through types and values, through constructors and recursors of inductive types.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Set

from farm_workers.audit.answers import AnswerRules, is_open
from farm_workers.audit.declarations import Constant, ConstantKind, Module
from farm_workers.audit.findings import ModuleFinding, Word, found
from farm_workers.audit.labels import Labels
from farm_workers.audit.olean import Name
from farm_workers.audit.rests import with_sorry
from farm_workers.audit.terms import Reading, Walk
from farm_workers.audit.universes import by_occurrence, by_position


class StatementComparison:
    """A module and its challenge, constant by constant; `ours` is the module's reading.

    Of `parts`, theorems that the challenge leaves open and the module has to prove, only the types are
    compared, and so they are of `answers`, definitions that the challenge leaves open. `given` are those of
    them that have a value of that type in the module, `kept` those that are missing or still open there,
    whatever the statement of the target speaks of.
    `behind` returns the axioms below an imported constant. With `exact_labels` sorries have to stand where
    the challenge's do; otherwise they may stand elsewhere in the text (`labels`).
    """

    def __init__(
        self,
        submission: Module,
        challenge: Module,
        ours: Reading,
        parts: Set[Name] = frozenset(),
        answers: AnswerRules | None = None,
        behind: Callable[[Name], Collection[Name]] = lambda _: (),
        *,
        exact_labels: bool = False,
    ) -> None:
        self.submission, self.challenge, self.parts = submission, challenge, parts
        self._behind = behind
        self.answers = frozenset[Name]() if answers is None else answers.open
        self.requires_answers = answers is not None and answers.required
        self.ours, self.theirs = ours, Reading(challenge.olean, ours.terms)
        self.auxiliaries = Auxiliaries(submission, ours)
        auxiliaries = self.auxiliaries, Auxiliaries(challenge, self.theirs)
        may_move = None if exact_labels else (lambda: not any(each.have_sorry() for each in auxiliaries))
        self._labels = Labels(ours, (submission.names, challenge.names), may_move=may_move)
        self.kept = frozenset(filter(self._is_kept, self.answers))
        self.given = frozenset(filter(self._is_given, self.answers - self.kept))

    def declared(self, name: Name) -> bool:
        """Return whether one of the two modules declares a name."""
        return name in self.submission.names or name in self.challenge.names

    def difference(self, name: Name) -> str | None:
        """Return the difference between the two constants of a name, None if they are equal."""
        if self.auxiliaries.has(name):
            return None  # It was compared as a part of the terms that use it.
        has_own_content = name in self.answers and name not in self.kept
        return self._difference(name, has_own_content=has_own_content)

    def _is_kept(self, answer: Name) -> bool:
        mine = self.submission.constant(answer)
        return mine is None or is_open(self.ours.olean, mine)

    def _is_given(self, answer: Name) -> bool:
        return self._difference(answer, has_own_content=True) is None

    def is_equal(self, name: Name) -> bool:
        """Return whether the two constants of a name are equal, whatever those are that they refer to."""
        return self._difference(name) is None

    def is_same(self, name: Name) -> bool:
        """Return whether a constant, with all its dependencies in the two modules, equals the challenge's."""
        walk, seen, todo = Walk(self.ours), set[Name](), [name]
        while todo:
            name = todo.pop()
            if name in seen or not self.declared(name):
                continue
            seen.add(name)
            mine = self.submission.constant(name)
            if mine is None or self._difference(name) is not None:
                return False
            for place in self.compared(mine):
                todo += walk.constants(place)[0]
            todo += (*mine.relatives(), *self.recursors(name, self.submission))
        return True

    def compared(self, constant: Constant) -> tuple[int, ...]:
        """Return the places of those expressions of a constant that have to be the challenge's."""
        if constant.name in self.parts or constant.name in self.given:
            return (constant.type,)
        return constant.expressions()

    def states(self, mine: Constant, other: Constant) -> bool:
        """Return whether a constant of the module has the type of the challenge's.

        Names and order of their universe parameters may differ.
        """
        if len(mine.parameters) != len(other.parameters):
            return False
        ours, theirs = self.ours.expression(mine.type), self.theirs.expression(other.type)
        if mine.parameters == other.parameters and self._labels.agree(ours, theirs):
            return True
        ours, theirs = (by_occurrence(self.ours.terms, each) for each in (ours, theirs))
        return self._labels.agree(ours, theirs)

    def below(self, place: int) -> set[Name]:
        """Return all constants that an expression of the module refers to, and the axioms below imports."""
        found = below(self.submission, self.ours, place)
        return found.union(*(self._behind(name) for name in found - self.submission.names.keys()))

    def _difference(self, name: Name, *, has_own_content: bool = False) -> str | None:
        mine, other = self.submission.constant(name), self.challenge.constant(name)
        if mine is None or other is None:
            return f"is declared only in the {'challenge' if mine is None else 'module'}"
        if mine.kind is not other.kind:
            return f"is of kind {mine.kind}, not {other.kind}"
        if len(mine.parameters) != len(other.parameters):
            return "has another number of universe parameters than the challenge's"
        ours, theirs = _Named(self.ours, mine, other), _Named(self.theirs, other, mine)
        if not self._labels.agree(ours.term(mine.type), theirs.term(other.type)):
            return "has another type than the challenge's"
        has_own_content |= name in self.parts
        if not has_own_content and not self._has_same_content(ours, theirs):
            return "has another content than the challenge's"
        same = self.recursors(name, self.submission) == self.recursors(name, self.challenge)
        return None if same else "has other recursors than the challenge's"

    def _has_same_content(self, ours: _Named, theirs: _Named) -> bool:
        if ours.content() != theirs.content():
            return False
        return all(map(self._labels.agree, ours.values(), theirs.values()))

    def recursors(self, name: Name, module: Module) -> set[Name]:
        """Return the recursors that a module has of a type, if the submission declares that as inductive."""
        ours = self.submission
        is_inductive = name in ours.names and ours.kind(name) is ConstantKind.INDUCTIVE
        return module.recursors.get(name, set()) if is_inductive else set()


def compare(
    pair: StatementComparison, target: Constant, asked_for: Name, findings: list[ModuleFinding]
) -> tuple[Name, ...]:
    """Compare the target's statement, and its dependencies in the module, with the challenge's.

    `asked_for` is the name of the challenge's theorem. Adds the differences to the findings and returns the
    compared names, the target first.
    """
    asked = pair.challenge.constant(asked_for)
    if asked is None or asked.kind is not ConstantKind.THEOREM:
        findings.append(found(Word.BAD_CHALLENGE, asked_for, "The challenge has no theorem {}."))
        return ()
    if len(target.parameters) != len(asked.parameters):
        findings.append(
            found(
                Word.UNIVERSE_MISMATCH,
                target.name,
                "{} has another number of universe parameters than the challenge's.",
            )
        )
    elif not pair.states(target, asked):
        findings.append(
            found(Word.STATEMENT_MISMATCH, target.name, "{} has another statement than the challenge.")
        )
    differing, compared = prerequisites(pair, target)
    findings += differing
    return (target.name, *compared)


def prerequisites(pair: StatementComparison, target: Constant) -> tuple[list[ModuleFinding], list[Name]]:
    """Return the differences of the constants that a constant's type speaks of, and their names."""
    walk = Walk(pair.ours)
    todo = list(walk.constants(target.type)[0])
    seen, findings, compared = {target.name}, list[ModuleFinding](), list[Name]()
    while todo:
        name = todo.pop()
        if name in seen or not pair.declared(name):
            continue
        seen.add(name)
        compared.append(name)
        difference, mine = pair.difference(name), pair.submission.constant(name)
        if difference is not None and pair.requires_answers and name in pair.kept:
            continue  # the answer is missing, wherever its sorry stands
        if mine is None or difference is not None:
            findings.append(
                found(Word.PREREQUISITE_DIFFERS, name, f"{{}}, part of the statement, {difference}.")
            )
            continue
        for place in pair.compared(mine):
            todo += walk.constants(place)[0]
        todo += (*mine.relatives(), *pair.recursors(name, pair.submission))
    return sorted(findings, key=lambda each: each.sentence), compared


class _Named:
    """The terms of a constant, to be compared with another's by the places of their universe parameters."""

    def __init__(self, reading: Reading, constant: Constant, other: Constant) -> None:
        self._reading, self._constant = reading, constant
        self._are_alike = constant.parameters == other.parameters

    def term(self, place: int) -> int:
        """Return the number of a term."""
        number = self._reading.expression(place)
        if self._are_alike:
            return number
        return by_position(self._reading.terms, number, self._constant.parameters)

    def content(self) -> tuple[object, ...]:
        """Return all of the constant but its name and its terms."""
        constant = self._constant
        return (
            constant.safety,
            constant.numbers,
            constant.family,
            constant.block,
            constant.constructors,
            constant.parent,
            constant.value is None,
            tuple((rule.constructor, rule.fields) for rule in constant.rules),
        )

    def values(self) -> Iterator[int]:
        """Yield the numbers of all terms but the type."""
        yield from map(self.term, self._constant.expressions()[1:])


def below(module: Module, reading: Reading, place: int) -> set[Name]:
    """Return all constants that an expression refers to, by way of those of its module."""
    walk = Walk(reading)
    seen = walk.constants(place)[0]
    todo = list(seen)
    while todo:
        constant = module.constant(todo.pop())
        if constant is not None:
            places = constant.expressions()
            new = set(constant.relatives()).union(*(walk.constants(each)[0] for each in places)) - seen
            seen |= new
            todo += new
    return seen


# Lean makes definitions out of parts of a text (``match_1``, ``_proof_2``) and uses one again wherever the
# same part comes back: so the theorem's statement can use a definition that was made for a helper before it.
# The kernel treats two definitions of the same content as equal, whatever their names are.


_OWN = re.compile(r"(match|_\w+)_\d+")
#: How deep auxiliary constants are followed within each other; Lean's stand in each other twice at most.
_DEEPEST = 16


class Auxiliaries:
    """Gives a reading of a module the contents of its auxiliary constants in place of their names."""

    def __init__(self, module: Module, reading: Reading) -> None:
        self._module, self._reading = module, reading
        self._known: dict[Name, object] = {}
        self._open: list[Name] = []
        reading.key = self.key

    def has(self, name: Name) -> bool:
        """Return whether a name is that of an auxiliary definition or theorem of the module."""
        return (
            bool(name)
            and isinstance(name[-1], str)
            and _OWN.fullmatch(name[-1]) is not None
            and name in self._module.names
            and self._module.kind(name) in (ConstantKind.DEFINITION, ConstantKind.THEOREM)
        )

    def have_sorry(self) -> bool:
        """Return whether there is a sorry in one of them."""
        return any(self.has(name) for name in with_sorry(self._module, self._module.names))

    def key(self, name: Name) -> object:
        """Return the key of a constant: its name, or its content if it is auxiliary."""
        if not self.has(name):
            return name
        if name not in self._known:
            if name in self._open or len(self._open) >= _DEEPEST:
                # Equal to nothing, not even to the same constant of another module.
                return object()
            self._open.append(name)
            self._known[name] = self._content(name)
            self._open.pop()
        return self._known[name]

    def _content(self, name: Name) -> object:
        constant = self._module.constant(name)
        if constant is None or constant.value is None:
            return name
        terms, parameters = self._reading.terms, constant.parameters
        type_, value = (
            by_position(terms, self._reading.expression(each), parameters)
            for each in (constant.type, constant.value)
        )
        return constant.kind, constant.safety, len(parameters), type_, value
