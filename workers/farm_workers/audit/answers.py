"""Audit step, answers: finds the definitions that a challenge leaves open, for a submission to give.

A definition is open if all of its value is a sorry, below the binders of its arguments. A submission may give
it a value; the statement is then compared up to that value.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence, Set
from dataclasses import dataclass
from typing import NamedTuple, TypedDict

from farm_workers.audit.declarations import Constant, ConstantKind, Module, Safety
from farm_workers.audit.kernel import SORRY
from farm_workers.audit.names import parsed, shown
from farm_workers.audit.olean import Name, Olean
from farm_workers.audit.terms import APP, LAMBDA, MDATA, applied, is_constant

#: The namespaces of the constants that the farm adds to a challenge: propositions that answers are the
#: expected ones, and Booleans that decide them.
EXPECTED, DECIDED = "farm_expected", "farm_decided"
#: The form of answers with several numbers, in lists, sets and pairs; any other form is one number.
NUMERALS = "numerals"


class AnswersAsked(TypedDict):
    """The JSON of `AnswerRules`, with full names in the form of `names.dotted`."""

    open: Sequence[str]
    required: bool
    form: str | None
    without: Sequence[str]
    expected: Sequence[str]
    closed: Sequence[str]


@dataclass(frozen=True, kw_only=True, slots=True)
class AnswerRules:
    """The definitions that a submission may give, by name, and what the dataset demands of them.

    With `required` all of them must be given. `shape` is the form of their values, and `without` are
    constants that these may not rest on. The challenge states that those in `expected` have the values that
    the dataset expects, each in the constants that `stated` names. Those that are `closed` must not be given.
    """

    open: Set[Name]
    required: bool = False
    shape: str | None = None
    without: Collection[Name] = ()
    expected: Sequence[Name] = ()
    closed: Collection[Name] = ()

    @classmethod
    def of(cls, asked: AnswersAsked) -> AnswerRules:
        """Return the rules that a request names."""
        return cls(
            open=frozenset(map(parsed, asked["open"])),
            required=asked["required"],
            shape=asked["form"],
            without=frozenset(map(parsed, asked["without"])),
            expected=tuple(map(parsed, asked["expected"])),
            closed=tuple(map(parsed, asked["closed"])),
        )

    def stated(self, answer: Name) -> tuple[Name, Name] | None:
        """Return the names of the proposition that an answer is the expected one, and of its decision."""
        if answer not in self.expected:
            return None
        last = f"of_{self.expected.index(answer)}"
        return (EXPECTED, last), (DECIDED, last)

    def is_free(self, answer: Name) -> bool:
        """Return whether nothing is demanded of the value of an answer."""
        return answer not in self.expected and self.shape is None and not self.without


@dataclass(frozen=True, kw_only=True, slots=True)
class Given:
    """An answer: the digest of its value, and the value in full, None if that is too long.

    With `is_own` the value contains declarations of the submission, or names that none would write by hand.
    """

    name: Name
    value_sha256: str
    full: str | None
    is_own: bool

    def facts(self) -> dict[str, object]:
        """Return the answer as a seal has it before Lean prints its text."""
        return {
            "name": shown(self.name),
            "text_by_submission": self.is_own,
            "value_sha256": self.value_sha256,
            "full": self.full,
        }


def open_definitions(challenge: Module, above: tuple[int, int]) -> frozenset[Name]:
    """Return the definitions that a challenge leaves open below a line and column.

    Raises `MalformedOlean`.
    """
    constants = [
        each
        for each in map(challenge.constant, challenge.of_kind(ConstantKind.DEFINITION))
        if each is not None and is_open(challenge.olean, each)
    ]
    places = challenge.ends() if constants else {}
    return frozenset(each.name for each in constants if places.get(each.name, above) > above)


def is_open(olean: Olean, constant: Constant) -> bool:
    """Return whether a constant is a definition whose whole value is a sorry."""
    if constant.kind is not ConstantKind.DEFINITION or constant.safety is not Safety.SAFE:
        return False
    place = -1 if constant.value is None else constant.value
    while place >= 0 and olean.words[place] in (LAMBDA, MDATA, APP):
        place = olean.object(place, {LAMBDA: 2, MDATA: 1, APP: 0}[olean.words[place]])
    return place >= 0 and is_constant(olean, place, SORRY)


class Equation(NamedTuple):
    """A proposition that an answer has a value: the constant that holds it, and its parts there."""

    holder: Constant
    whole: int
    levels: int
    type: int
    value: int


def equation(olean: Olean, holder: Constant, answer: Name) -> Equation | None:
    """Return the equation about an answer that is a constant's value, None if that is something else."""
    if holder.value is None:
        return None
    function, arguments = applied(olean, holder.value, 3)
    if len(arguments) != 3 or not is_constant(olean, function, ("Eq",)):
        return None
    value, mine, type_ = arguments
    while olean.words[mine] == MDATA:
        mine = olean.object(mine, 1)
    if not is_constant(olean, mine, answer):
        return None
    return Equation(holder, holder.value, olean.child(function, 1), type_, value)
