"""Seal step, expected answers: has Lean's kernel compare the answers of a module with the expected ones.

The challenge states that an answer is the expected one, as Lean elaborated it from the dataset's text. First
the kernel checks `rfl` as a proof of that. If it refuses, it evaluates the decision of the proposition, where
Lean found an instance for one. No code is run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from farm_workers.audit.answers import AnswerRules, Equation, equation
from farm_workers.audit.declarations import CONSTANT, VALUES, Constant, ConstantKind, Module
from farm_workers.audit.findings import ModuleFinding, Word, found
from farm_workers.audit.olean import Name
from farm_workers.audit.terms import Reading, Terms, Walk
from farm_workers.binding.lean import Lean
from farm_workers.binding.objects import NOTHING, LeanError, shared
from farm_workers.replay.replay import KernelRefused, compared, replayed
from farm_workers.seal.evaluation import free_name
from farm_workers.seal.rebuild import INFO, Copies, Rebuilt


@dataclass(frozen=True, kw_only=True, slots=True)
class _Stated:
    """A proposition about an answer, and its decision if it has one."""

    answer: Name
    equation: Equation
    decision: Constant | None


def answers_differ(
    lean: Lean,
    environment: int,
    rebuilt: Rebuilt,
    challenge: Module,
    rules: AnswerRules,
    given: Sequence[Name],
) -> list[ModuleFinding]:
    """Return the findings against answers of a module that are expected to have other values.

    The environment has accepted the module's constants.
    """
    comparison = _Comparison(lean, environment, rebuilt, challenge)
    return [
        finding
        for name in given
        if (stated := _stated(challenge, rules, name)) is not None
        for finding in comparison.findings(stated)
    ]


def _stated(challenge: Module, rules: AnswerRules, answer: Name) -> _Stated | None:
    names = rules.stated(answer)
    if names is None:
        return None
    proposition = challenge.constant(names[0])
    says = None if proposition is None else equation(challenge.olean, proposition, answer)
    return (
        None if says is None else _Stated(answer=answer, equation=says, decision=challenge.constant(names[1]))
    )


class _Comparison:
    """Compares answers; the kernel checks theorems under a name that no constant has."""

    def __init__(self, lean: Lean, environment: int, rebuilt: Rebuilt, challenge: Module) -> None:
        self._lean, self._environment, self._rebuilt = lean, environment, rebuilt
        self._challenge, self._image = challenge, rebuilt.image
        self._name = free_name(lean, environment, rebuilt.image)
        self._copies = Copies(lean, challenge, rebuilt.image)

    def findings(self, stated: _Stated) -> Iterator[ModuleFinding]:
        """Yield the finding against one answer, if it is not the expected one."""
        if self._is_proved(stated):
            return
        decided = {value: self._is(stated, value) for value in ("true", "false")} if stated.decision else {}
        if decided.get("true"):
            return
        if decided.get("false"):
            yield found(Word.ANSWER_DIFFERS, stated.answer, "The answer {} is not the expected one.")
            return
        sentence = "Lean's kernel can neither prove by rfl nor decide whether {} is the expected answer."
        yield found(Word.ANSWER_UNDECIDED, stated.answer, sentence)

    def _is_proved(self, stated: _Stated) -> bool:
        """Return whether the kernel accepts `rfl` as a proof that an answer is the expected one."""
        says, put = stated.equation, self._copies
        refl = self._image.const(("Eq", "refl"), put.levels(says.levels))
        proof = self._image.app(refl, put.term(says.type), put.term(says.value))
        return self._holds(says.holder, put.term(says.whole), proof)

    def _is(self, stated: _Stated, value: str) -> bool:
        """Return whether the kernel evaluates a decision to a Boolean."""
        image, decision = self._image, stated.decision
        if decision is None or decision.value is None:
            return False
        one, boolean = image.list([image.successor(NOTHING)]), image.const(("Bool",))
        constant = image.const(("Bool", value))
        type_ = image.app(image.const(("Eq",), one), boolean, self._copies.term(decision.value), constant)
        return self._holds(decision, type_, image.app(image.const(("Eq", "refl"), one), boolean, constant))

    def _holds(self, holder: Constant, type_: int, proof: int) -> bool:
        """Return whether the kernel accepts a theorem; constants of the challenge alone are added."""
        image = self._image
        name = self._name
        stated = image.put(CONSTANT, name, self._copies.names(holder.parameters), type_)
        theorem = image.put(VALUES[ConstantKind.THEOREM], stated, proof, image.list([name]))
        more = self._missing(holder)
        names = [*(image.name(each) for each in more), name]
        infos = [
            *(self._copies.constant(each) for each in more),
            image.put(INFO[ConstantKind.THEOREM], theorem),
        ]
        try:
            after = replayed(self._lean, names, infos, shared(self._environment))
            compared(self._lean, names, infos, after)
        except (KernelRefused, LeanError):
            return False
        return True

    def _missing(self, holder: Constant) -> list[Name]:
        """Return the challenge's constants below a proposition that the module lacks, such as a matcher."""
        walk, seen, todo = Walk(Reading(self._challenge.olean, Terms())), set[Name](), [holder]
        while todo:
            constant = todo.pop()
            for place in constant.expressions():
                for name in walk.constants(place)[0] - seen:
                    seen.add(name)
                    below = self._challenge.constant(name)
                    if below is not None and name not in self._rebuilt.constants:
                        todo.append(below)
        return sorted(
            name for name in seen if name in self._challenge.names and name not in self._rebuilt.constants
        )
