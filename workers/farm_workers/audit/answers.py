"""Audit step, answers: finds the definitions that a challenge leaves open, for a submission to give.

A definition is open if all of its value is a sorry, below the binders of its arguments. A submission may give
it a value; the statement is then compared up to that value.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence, Set
from dataclasses import dataclass
from typing import TypedDict

from farm_workers.audit.declarations import Constant, ConstantKind, Module, Safety
from farm_workers.audit.kernel import SORRY
from farm_workers.audit.names import parsed
from farm_workers.audit.olean import Name, Olean
from farm_workers.audit.terms import APP, LAMBDA, MDATA, is_constant

#: The words for forms of answers: one number, and numbers in lists, sets and pairs.
NUMERAL, NUMERALS = "numeral", "numerals"


class AnswersAsked(TypedDict):
    """The JSON of `AnswerRules`, with full names in the form of `names.dotted`."""

    open: Sequence[str]
    required: bool
    form: str | None
    without: Sequence[str]
    compared: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class AnswerRules:
    """The definitions that a submission may give, by name, and what the dataset demands of them.

    With `required` all that the statement speaks of must be given. `shape` is the form of their values,
    `NUMERAL` or `NUMERALS`, and `without` are constants that these may not rest on; `compared` means that the
    caller compares them with expected ones.
    """

    open: Set[Name]
    required: bool = False
    shape: str | None = None
    without: Collection[Name] = ()
    compared: bool = False

    @classmethod
    def of(cls, asked: AnswersAsked) -> AnswerRules:
        """Return the rules that a request names."""
        return cls(
            open=frozenset(map(parsed, asked["open"])),
            required=asked["required"],
            shape=asked["form"],
            without=frozenset(map(parsed, asked["without"])),
            compared=asked["compared"],
        )

    @property
    def has_rule(self) -> bool:
        """Whether more is demanded than that there is an answer."""
        return self.compared or self.shape is not None or bool(self.without)


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
