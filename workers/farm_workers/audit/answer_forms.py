"""Audit step, answers: judges whether a submission's answers have the form that a task demands."""

from __future__ import annotations

from collections.abc import Iterator

from farm_workers.audit.answers import NUMERALS, AnswerRules, equation
from farm_workers.audit.declarations import Constant, Module
from farm_workers.audit.findings import ModuleFinding, Word, found
from farm_workers.audit.kernel import SORRY
from farm_workers.audit.names import shown
from farm_workers.audit.olean import Name
from farm_workers.audit.statement import StatementComparison, below, prerequisites
from farm_workers.audit.terms import (
    APP,
    BVAR,
    CONST,
    LAMBDA,
    LITERAL,
    MDATA,
    NAT,
    Reading,
    Walk,
    applied,
    is_constant,
    parts_of,
)


def faults(pair: StatementComparison, rules: AnswerRules, *, evaluates: bool) -> Iterator[ModuleFinding]:
    """Yield the findings against the answers of a module, whichever part of the statement speaks of them.

    `evaluates` means that the caller compares them with expected ones.
    """
    if rules.required:
        yield from _missing(pair)
    for name in sorted(rules.closed, key=shown):
        if name in pair.submission.names and not pair.is_same(name):
            sentence = "{}, which the task forbids to answer, differs from the challenge's."
            yield found(Word.PREREQUISITE_DIFFERS, name, sentence)
    for name in sorted(pair.given, key=shown):
        constant = pair.submission.constant(name)
        if constant is not None and constant.value is not None:
            yield from prerequisites(pair, constant)[0]
            yield from _form_faults(pair, rules, constant, constant.value)
            yield from _expected_faults(pair, rules, name, evaluates=evaluates)


def _missing(pair: StatementComparison) -> Iterator[ModuleFinding]:
    """Yield a finding for each definition that the challenge leaves open and the module does not give."""
    for name in sorted(pair.kept, key=shown):
        is_there = name in pair.submission.names
        does = "is left open" if is_there else "is missing"
        yield found(Word.ANSWER_MISSING, name, f"{{}} {does}, but the task asks for an answer there.")
    for name in sorted(pair.answers - pair.kept - pair.given, key=shown):
        sentence = f"{{}}, for which the task asks an answer, {pair.difference(name)}."
        yield found(Word.PREREQUISITE_DIFFERS, name, sentence)


def _form_faults(
    pair: StatementComparison, rules: AnswerRules, constant: Constant, value: int
) -> Iterator[ModuleFinding]:
    name = constant.name
    if rules.shape is not None and not _Form(pair, constant.type, many=rules.shape == NUMERALS).holds(value):
        told = "a list, set or tuple of numerals" if rules.shape == NUMERALS else "a numeral"
        yield found(Word.ANSWER_SHAPE, name, f"The answer {{}} is not {told}, as the task demands.")
    for each in sorted(pair.below(value) & set(rules.without), key=shown):
        sentence = f"The answer {{}} rests on {shown(each)}, which the task excludes."
        yield found(Word.ANSWER_SHAPE, name, sentence)


def _expected_faults(
    pair: StatementComparison, rules: AnswerRules, name: Name, *, evaluates: bool
) -> Iterator[ModuleFinding]:
    """Yield findings if an answer cannot be compared with the expected one, or would be with another one."""
    stated = rules.stated(name)
    if stated is None:
        return
    if not evaluates:
        yield found(Word.ANSWER_UNDECIDED, name, "Nothing here can compare {} with the expected answer.")
    if fault := expected_fault(pair.challenge, pair.theirs, name, stated[0]):
        yield fault
        return
    yield from _differing(pair, name, stated)


def expected_fault(
    challenge: Module, reading: Reading, name: Name, proposition: Name
) -> ModuleFinding | None:
    """Return why no answer can be compared with the one that a proposition expects, None if one can."""
    holder = challenge.constant(proposition)
    says = None if holder is None else equation(challenge.olean, holder, name)
    if says is None:
        return found(Word.BAD_CHALLENGE, name, "The expected answer of {} does not elaborate to a value.")
    if {name, SORRY} & below(challenge, reading, says.value):
        sentence = "The expected answer of {} contains a sorry, or the definition itself."
        return found(Word.BAD_CHALLENGE, name, sentence)
    return None


def _differing(pair: StatementComparison, answer: Name, stated: tuple[Name, Name]) -> Iterator[ModuleFinding]:
    """Yield findings for what an expected answer speaks of and the submission gives another meaning."""
    walk, seen, todo = Walk(pair.theirs), {*stated, *pair.answers}, list(stated)
    while todo:
        constant = pair.challenge.constant(todo.pop())
        if constant is None:
            continue
        for place in constant.expressions():
            new = walk.constants(place)[0] - seen
            seen |= new
            todo += new
    for name in sorted(
        seen & pair.challenge.names.keys() & pair.submission.names.keys() - pair.answers, key=shown
    ):
        if pair.is_same(name):
            continue
        if pair.auxiliaries.has(name):
            sentence = f"The expected answer of {{}} rests on {shown(name)}, which is another constant here."
            yield found(Word.ANSWER_UNDECIDED, answer, sentence)
        else:
            sentence = "{}, part of the expected answer, differs from the challenge's."
            yield found(Word.PREREQUISITE_DIFFERS, name, sentence)


#: The functions of which answers in numbers consist: the number of their arguments, and how many of the last
#: ones are such answers themselves; the others are types and instances. First those of one number.
_OF_NUMBERS: dict[Name, tuple[int, int]] = {
    ("Neg", "neg"): (3, 1),
    ("HDiv", "hDiv"): (6, 2),
    ("Nat", "cast"): (3, 1),
    ("Int", "cast"): (3, 1),
}
_OF_MANY: dict[Name, tuple[int, int]] = {
    ("List", "nil"): (1, 0),
    ("List", "cons"): (3, 2),
    ("List", "toArray"): (2, 1),
    ("Prod", "mk"): (4, 2),
    ("EmptyCollection", "emptyCollection"): (2, 0),
    ("Singleton", "singleton"): (4, 1),
    ("Insert", "insert"): (5, 2),
}
_LITERALS: dict[Name, int] = {("OfNat", "ofNat"): 3, ("OfScientific", "ofScientific"): 5}
_TRUTHS = frozenset({("Bool", "true"), ("Bool", "false")})
#: Types that instances of numbers speak of.
_TYPES = frozenset(
    (name,)
    for name in ("Nat", "Int", "Rat", "Real", "Complex", "List", "Array", "Prod", "Set", "Finset", "Multiset")
)
_MOST_ARGUMENTS = max(count for count, _ in (_OF_NUMBERS | _OF_MANY).values())


class _Form:
    """Tells whether terms of a submission are written as numbers.

    An instance decides what a numeral means. So it must consist of instances of the imports or of the
    challenge, which have names such as `instOfNatNat` and `Monoid.toOne`, and of types.
    """

    def __init__(self, pair: StatementComparison, type_: int, *, many: bool) -> None:
        self._pair, self._olean = pair, pair.ours.olean
        self._functions = _OF_NUMBERS | _OF_MANY if many else _OF_NUMBERS
        self._types = _TYPES | Walk(pair.ours).constants(type_)[0]

    def holds(self, value: int) -> bool:
        """Return whether a term has the form."""
        todo, seen = [value], set[int]()
        while todo:
            place = self._bare(todo.pop())
            if place in seen or self._is_number(place):
                continue
            seen.add(place)
            inner = self._inner(place)
            if inner is None:
                return False
            todo += inner
        return True

    def _inner(self, place: int) -> list[int] | None:
        """Return the arguments of a known function that must have the form, None for any other term."""
        function, arguments = applied(self._olean, place, _MOST_ARGUMENTS)
        if self._olean.words[function] != CONST:
            return None
        name = self._olean.name(self._olean.child(function, 0))
        count, own = self._functions.get(name, (-1, 0))
        if count != len(arguments) or not all(map(self._is_standard, arguments[own:])):
            return None
        return arguments[:own]

    def _is_number(self, place: int) -> bool:
        olean = self._olean
        if self._is_literal(place):
            return True
        function, arguments = applied(olean, place, _MOST_ARGUMENTS)
        if olean.words[function] != CONST:
            return False
        name = olean.name(olean.child(function, 0))
        if _LITERALS.get(name) != len(arguments):
            return False
        if name == ("OfNat", "ofNat"):
            instance, number, type_ = arguments
            return self._is_literal(number) and self._is_standard(instance) and self._is_standard(type_)
        exponent, sign, mantissa, instance, type_ = arguments
        is_sign = any(is_constant(olean, self._bare(sign), each) for each in _TRUTHS)
        numbers = self._is_number(self._bare(exponent)) and self._is_number(self._bare(mantissa))
        return is_sign and numbers and self._is_standard(instance) and self._is_standard(type_)

    def _is_literal(self, place: int) -> bool:
        olean, place = self._olean, self._bare(place)
        return olean.words[place] == LITERAL and olean.words[olean.object(place, 0)] == NAT

    def _is_standard(self, root: int) -> bool:
        """Return whether a term consists of types and of instances that no submission has made."""
        olean, seen, todo = self._olean, set[int](), [root]
        while todo:
            place = todo.pop()
            if place in seen:
                continue
            seen.add(place)
            shape = olean.words[place]
            if shape == CONST:
                if not self._is_known(olean.name(olean.child(place, 0))):
                    return False
            elif shape not in (APP, LAMBDA, MDATA, BVAR, LITERAL):
                return False
            todo += parts_of(olean, place)
        return True

    def _is_known(self, name: Name) -> bool:
        if name in self._pair.submission.names and not self._pair.is_same(name):
            return False
        last = name[-1] if name else ""
        return name in self._types or (isinstance(last, str) and last.startswith(("inst", "to")))

    def _bare(self, place: int) -> int:
        """Return a term without its metadata."""
        while self._olean.words[place] == MDATA:
            place = self._olean.object(place, 1)
        return place
