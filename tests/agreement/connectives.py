"""Made statements of logic with a proof each, in the many ways in which tactics can say the same."""

from __future__ import annotations

import random
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count

_ATOMS = ("p", "q", "r", "s")
_DEPTH = 4

Tactics = list[str]


@dataclass(frozen=True, slots=True)
class _Atom:
    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two propositions with a connective between them."""

    sign: str
    left: _Prop
    right: _Prop

    def __str__(self) -> str:
        return f"({self.left} {self.sign} {self.right})"


_Prop = _Atom | _Pair
_Known = Mapping[str, _Prop]


def made_proof(chance: random.Random) -> tuple[str, tuple[str, ...]]:
    """Return a statement without its proof, and the tactics of a proof."""
    maker = _Maker(chance)
    known: dict[str, _Prop] = {f"h{name}": _Atom(name) for name in chance.sample(_ATOMS, 3)}
    goal, tactics = maker.derived(known, _DEPTH)
    given = " ".join(f"({name} : {prop})" for name, prop in known.items())
    return f"theorem t ({' '.join(_ATOMS)} : Prop) {given} : {goal}", tuple(tactics)


def _bullet(tactics: Tactics) -> str:
    return "· " + textwrap.indent("\n".join(tactics), "  ")[2:]


def _under(words: str, tactics: Tactics) -> str:
    return f"{words}\n" + textwrap.indent("\n".join(tactics), "  ")


class _Maker:
    """Makes propositions that follow from known ones, with a proof."""

    def __init__(self, chance: random.Random) -> None:
        self._chance, self._numbers = chance, count()

    def _new(self) -> str:
        return f"k{next(self._numbers)}"

    def derived(self, known: _Known, depth: int) -> tuple[_Prop, Tactics]:
        """Return a proposition that follows, and tactics that prove it."""
        if depth <= 0 or self._chance.random() < 0.15:
            return self._known(known)
        ways = (self._and, self._or, self._implies, self._implies, self._iff, self._lemma)
        return self._chance.choice(ways)(known, depth - 1)

    def _known(self, known: _Known) -> tuple[_Prop, Tactics]:
        name, prop = self._chance.choice(list(known.items()))
        other, new = self._chance.choice(list(known)), self._new()
        ways: Sequence[Tactics] = (
            [f"exact {name}"],
            ["assumption"],
            [f"apply {name}"],
            [f"refine {name}"],
            ["trivial"],
            [f"first | exact ({name} : {prop}) | exact {other}"],
            [f"first\n| fail\n| exact {name}"],
            [f"try exact {name}"],
            ["skip", f"exact {name}"],
            [f"show {prop}", f"exact {name}"],
            [f"change {prop}", "assumption"],
            [f"have {new} : {prop} := {name}", f"exact {new}"],
            [f"have {new} : {prop} := by\n  assumption", f"exact {new}"],
            [f"have {new} := {name}", f"exact {new}"],
            [f"suffices {new} : {prop} from {new}", f"exact {name}"],
            [f"let {new} : {prop} := {name}", f"exact {new}"],
            [f"revert {name}", f"intro {name}", f"exact {name}"],
            [f"simpa using {name}"],
            [f"simp [{name}]"],
            ["simp_all"],
            ["· repeat assumption"],
            [f"exact by exact {name} -- the end"],
            [f"exact /- it is known -/ {name}"],
            ["fail_if_success exact True.intro True.intro", f"exact {name}"],
        )
        return prop, list(self._chance.choice(ways))

    def _and(self, known: _Known, depth: int) -> tuple[_Prop, Tactics]:
        left, one = self.derived(known, depth)
        right, other = self.derived(known, depth)
        both, new = "; ".join, self._new()
        ways: list[Tactics] = [
            ["constructor", _bullet(one), _bullet(other)],
            ["apply And.intro", *one, *other],
            ["refine ⟨?_, ?_⟩", *one, *other],
            [
                f"refine And.intro ?one_{new} ?two_{new}",
                _under(f"case one_{new} =>", one),
                _under(f"case two_{new} =>", other),
            ],
            ["constructor", _under("case right =>", other), _under("case left =>", one)],
            [_under("focus", ["constructor", "rotate_left", *other, *one])],
            ["apply And.intro ?_ ?_", _under("next =>", one), _under("focus", other)],
            [_under("refine ⟨by", one) + ", ?_⟩", *other],
            ["constructor", _under("· show _", one), _under("focus", other)],
        ]
        if not any("\n" in each or "--" in each for each in [*one, *other]):
            ways += [
                [f"exact ⟨by {both(one)}, by {both(other)}⟩"],
                [f"constructor <;> first | ({both(one)}; done) | ({both(other)}; done)"],
                [
                    f"and_intros; {both(one)}" if left.__class__ is _Atom else f"constructor; {both(one)}",
                    *other,
                ],
            ]
        return _Pair("∧", left, right), self._chance.choice(ways)

    def _or(self, known: _Known, depth: int) -> tuple[_Prop, Tactics]:
        prop, tactics = self.derived(known, depth)
        other = _Atom(self._chance.choice(_ATOMS))
        if self._chance.random() < 0.5:
            ways: tuple[Tactics, ...] = (
                ["left"],
                ["apply Or.inl"],
                ["refine .inl ?_"],
                ["first | left | right"],
            )
            return _Pair("∨", prop, other), [*self._chance.choice(ways), *tactics]
        ways = (["right"], ["apply Or.inr"], ["refine Or.inr ?_"], [f"suffices k : {prop} from Or.inr k"])
        return _Pair("∨", other, prop), [*self._chance.choice(ways), *tactics]

    def _implies(self, known: _Known, depth: int) -> tuple[_Prop, Tactics]:
        kind = self._chance.choice(("atom", "and", "or", "not"))
        one, other = self._new(), self._new()
        first, second = (_Atom(self._chance.choice(_ATOMS)) for _ in range(2))
        if kind == "atom":
            prop, tactics = self.derived({**known, one: first}, depth)
            ways: tuple[Tactics, ...] = (
                [f"intro {one}"],
                [f"rintro {one}"],
                [f"refine fun {one} => ?_"],
                [f"intro ({one} : {first})"],
            )
            return _Pair("→", first, prop), [*self._chance.choice(ways), *tactics]
        if kind == "not":
            absurd = _Pair("→", first, _Atom("False"))
            contradicted: tuple[Tactics, ...] = (
                [f"intro {one} {other}", f"exact absurd {one} {other}"],
                [f"intro {one} {other}", "contradiction"],
                [f"intro {one} {other}", "exfalso", f"exact {other} {one}"],
                [f"intro {one} {other}", f"cases {other} {one}"],
                ["intros", "contradiction"],
            )
            return _Pair("→", first, _Pair("→", absurd, second)), list(self._chance.choice(contradicted))
        if kind == "and":
            return self._from_both(known, depth, (one, first), (other, second))
        return self._from_either(known, depth, (one, first), (other, second))

    def _from_both(
        self, known: _Known, depth: int, one: tuple[str, _Prop], other: tuple[str, _Prop]
    ) -> tuple[_Prop, Tactics]:
        prop, tactics = self.derived({**known, one[0]: one[1], other[0]: other[1]}, depth)
        names, whole = f"{one[0]}, {other[0]}", self._new()
        given = [f"intro {whole}"]
        ways: Sequence[Tactics] = (
            [f"intro ⟨{names}⟩", *tactics],
            [f"rintro ⟨{names}⟩", *tactics],
            [*given, f"obtain ⟨{names}⟩ := {whole}", *tactics],
            [*given, f"rcases {whole} with ⟨{names}⟩", *tactics],
            [*given, f"have ⟨{names}⟩ := {whole}", *tactics],
            [*given, f"have {one[0]} := {whole}.1", f"have {other[0]} := {whole}.right", *tactics],
            [*given, _under(f"cases {whole} with\n| intro {one[0]} {other[0]} =>", tactics)],
            [*given, f"cases {whole}", f"rename_i {one[0]} {other[0]}", *tactics],
            [*given, f"cases {whole}", _under(f"next {one[0]} {other[0]} =>", tactics)],
            [*given, _under(f"match {whole} with\n| ⟨{names}⟩ =>", tactics)],
        )
        return _Pair("→", _Pair("∧", one[1], other[1]), prop), list(self._chance.choice(ways))

    def _from_either(
        self, known: _Known, depth: int, one: tuple[str, _Prop], other: tuple[str, _Prop]
    ) -> tuple[_Prop, Tactics]:
        prop, tactics = self.derived(known, depth)
        whole = self._new()
        given, both = [f"intro {whole}"], [_bullet(tactics), _bullet(tactics)]
        both_intro = [_bullet([f"intro {one[0]}", *tactics])] * 2
        cases = _under(f"| inl {one[0]} =>", tactics) + "\n" + _under(f"| inr {other[0]} =>", tactics)
        terms = _under(f"| .inl {one[0]} =>", tactics) + "\n" + _under("| .inr _ =>", tactics)
        ways: Sequence[Tactics] = (
            [f"rintro ({one[0]} | {other[0]})", *both],
            [*given, f"rcases {whole} with {one[0]} | {other[0]}", *both],
            [*given, f"obtain {one[0]} | {other[0]} := {whole}", *both],
            [*given, f"cases {whole} with\n{cases}"],
            [*given, f"induction {whole} with\n{cases}"],
            [*given, f"match {whole} with\n{terms}"],
            [*given, f"cases {whole}", _under("case inl a =>", tactics), _under("case inr b =>", tactics)],
            [*given, _under("focus", [f"cases {whole}", _under("all_goals", tactics)])],
            [*given, f"apply Or.elim {whole}", *both_intro],
            [*given, _under(f"cases {whole} <;> (", tactics) + "\n  )"],
            [*given, f"by_cases {other[0]} : {one[1]}", *both],
        )
        return _Pair("→", _Pair("∨", one[1], other[1]), prop), list(self._chance.choice(ways))

    def _iff(self, known: _Known, depth: int) -> tuple[_Prop, Tactics]:
        left, one = self.derived(known, depth)
        right, other = self.derived(known, depth)
        ways: tuple[Tactics, ...] = (
            ["constructor", _bullet(["intro _", *other]), _bullet(["intro _", *one])],
            ["apply Iff.intro", _under("case mp =>", ["intro _", *other]), "intro _", *one],
            ["refine ⟨fun _ => ?_, fun _ => ?_⟩", *other, *one],
            ["apply iff_of_true", _bullet(one), _bullet(other)],
        )
        return _Pair("↔", left, right), list(self._chance.choice(ways))

    def _lemma(self, known: _Known, depth: int) -> tuple[_Prop, Tactics]:
        """Prove something first, which the rest may use."""
        new = self._new()
        prop, one = self.derived(known, depth - 1)
        goal, rest = self.derived({**known, new: prop}, depth)
        ways: Sequence[Tactics] = (
            [_under(f"have {new} : {prop} := by", one), *rest],
            [f"have {new} : {prop} := ?_", *rest, *one],
            [_under(f"suffices {new} : {prop} by", rest), *one],
            [
                f"refine (fun {new} : {prop} => ?rest_{new}) ?first_{new}",
                _under(f"case first_{new} =>", one),
                *rest,
            ],
        )
        return goal, list(self._chance.choice(ways))
