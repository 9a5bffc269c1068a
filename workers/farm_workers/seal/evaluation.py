"""Seal step, evaluation: whether the terms that compiled code is said to have computed are `true`.

Nothing about an axiom ``t._native.native_decide.ax_1 : b = true`` shows where it comes from: written by hand,
it is what `native_decide` leaves. So its term is evaluated once more. A term that refers to imported
constants alone is compiled in the header's environment and run in a process of its own: what imports compile
to can do whatever a program can. Any other term is evaluated by Lean's kernel, which is given a theorem with
the statement of the axiom and `rfl` for a proof. Neither rests on code of the submission: not on its
`implemented_by` and `extern`, nor on the compiled code of its recursive functions.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from enum import Enum
from typing import NamedTuple

from farm_workers.audit.declarations import CONSTANT, VALUES, Kind
from farm_workers.audit.findings import Finding, Word, found
from farm_workers.audit.olean import Name
from farm_workers.replay.lean import NOTHING, Lean, shared
from farm_workers.replay.replay import Refused, compared, replayed
from farm_workers.seal.image import ModuleImage
from farm_workers.seal.memory import WORDS
from farm_workers.seal.rebuild import INFO, Rebuilt


class Value(Enum):
    """What became of a closed term of type `Bool` that was to be compiled and run."""

    TRUE = "true"
    FALSE = "false"
    NOT_COMPILED = "not compiled"
    #: The process that ran it ended without a value, or used up its processor time.
    ENDED, TIME = "ended", "time"


#: Compiles and runs a term, by its address.
Compiled = Callable[[int], Value]


def not_compiled(_term: int) -> Value:
    """Return that a term cannot be compiled: a `Compiled` where no compiler is to be had."""
    return Value.NOT_COMPILED


def evaluated(
    lean: Lean, environment: int, rebuilt: Rebuilt, axioms: Sequence[Name], compiled: Compiled
) -> list[Finding]:
    """Return what speaks against axioms of a module, in an environment that has accepted its constants.

    Raises LeanError where the kernel gave up on a term.
    """
    evaluation = _Evaluation(lean, environment, rebuilt.image, compiled)
    faults = ((name, evaluation.fault(rebuilt.constants[name])) for name in axioms)
    return [
        found(fault.word, name, f"The proof rests on the axiom {{}}, {fault.says}.")
        for name, fault in faults
        if fault is not None
    ]


class _Fault(NamedTuple):
    """Why an axiom is not believed: the finding's word, and the end of its sentence."""

    word: Word
    says: str


_FALSE = _Fault(Word.AXIOM, "whose term evaluates to false")
_UNKNOWN = _Fault(Word.AXIOM, "whose term Lean's kernel cannot evaluate")
_ENDED = _Fault(Word.AXIOM, "whose term ends the process that evaluates it")
_TIME = _Fault(Word.KERNEL_TIME, "whose term takes longer to evaluate than the line's limit")


class _Evaluation:
    """Evaluates terms of type `Bool`; asks the kernel by theorems under a name that nothing has."""

    def __init__(self, lean: Lean, environment: int, image: ModuleImage, compiled: Compiled) -> None:
        self._lean, self._environment, self._image = lean, environment, image
        self._compiled = compiled
        self._one = image.list([image.successor(NOTHING)])
        self._bool = image.const(("Bool",))
        # A replay passes over a theorem that is there.
        find = lean.function("lean_environment_find", 2)
        names = (image.name(("farm", f"evaluated_{number}")) for number in itertools.count())
        self._name = next(name for name in names if find(shared(environment), name) == NOTHING)

    def fault(self, axiom: int) -> _Fault | None:
        """Return why an axiom ``@Eq Bool e Bool.true`` is not to be believed, None where it is."""
        header = _field(_field(axiom, 0), 0)
        parameters, type_ = _field(header, 1), _field(header, 2)
        term = _field(_field(type_, 0), 1)
        value = self._compiled(term)
        if value is Value.NOT_COMPILED:
            return self._kernels(term, parameters)
        return {Value.TRUE: None, Value.FALSE: _FALSE, Value.ENDED: _ENDED, Value.TIME: _TIME}[value]

    def _kernels(self, term: int, parameters: int) -> _Fault | None:
        if self._is(term, "true", parameters):
            return None
        return _FALSE if self._is(term, "false", parameters) else _UNKNOWN

    def _is(self, term: int, value: str, parameters: int) -> bool:
        """Return whether the kernel accepts `rfl` as a proof that a term is `true`, or `false`."""
        image, constant = self._image, self._image.const(("Bool", value))
        type_ = image.app(image.const(("Eq",), self._one), self._bool, term, constant)
        proof = image.app(image.const(("Eq", "refl"), self._one), self._bool, constant)
        stated = image.put(CONSTANT, self._name, parameters, type_)
        held = image.put(VALUES[Kind.THEOREM], stated, proof, image.list([self._name]))
        names, infos = [self._name], [image.put(INFO[Kind.THEOREM], held)]
        try:
            after = replayed(self._lean, names, infos, shared(self._environment))
            compared(self._lean, names, infos, after)
        except Refused:
            return False
        return True


def _field(place: int, number: int) -> int:
    """Return a field of an object of the image."""
    return WORDS[(place >> 3) + 1 + number]
