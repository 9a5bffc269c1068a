"""Seal step, evaluation: evaluates the terms that a proof's axioms of `native_decide` state to be `true`.

An axiom ``t._native.native_decide.ax_1 : b = true`` does not show its origin: a submission can write the same
axiom by hand. So its term is evaluated once more. A term that refers to imported constants alone is compiled
in the header's environment and run in a process of its own, since compiled code can do whatever a program
can. Lean's kernel evaluates any other term: it gets a theorem with the axiom's statement and `rfl` as the
proof. Neither evaluation uses code of the submission: not its `implemented_by` and `extern`, nor the compiled
code of its recursive functions.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from enum import Enum
from typing import NamedTuple

from farm_workers.audit.declarations import CONSTANT, VALUES, ConstantKind
from farm_workers.audit.findings import ModuleFinding, Word, found
from farm_workers.audit.olean import Name
from farm_workers.binding import table
from farm_workers.binding.lean import Lean
from farm_workers.binding.objects import NOTHING, shared
from farm_workers.replay.replay import KernelRefused, compared, replayed
from farm_workers.seal.image import ModuleImage
from farm_workers.seal.memory import word_at
from farm_workers.seal.rebuild import INFO, Rebuilt


class Value(Enum):
    """The result of compiling and running a closed term of type `Bool`."""

    TRUE = "true"
    FALSE = "false"
    NOT_COMPILED = "not compiled"
    #: The process that ran it ended without a value, or used up its processor time.
    ENDED, TIME = "ended", "time"


#: Compiles and runs the term at an address.
Compiled = Callable[[int], Value]


def not_compiled(_term: int) -> Value:
    """Return `NOT_COMPILED` for any term: the `Compiled` of a process that has no compiler."""
    return Value.NOT_COMPILED


def evaluated(
    lean: Lean, environment: int, rebuilt: Rebuilt, axioms: Sequence[Name], compiled: Compiled
) -> list[ModuleFinding]:
    """Return the findings against axioms of a module, in an environment that has accepted its constants.

    Raises LeanError if the kernel gives up on a term, and ChildProcessError if this machine cannot evaluate
    any.
    """
    evaluation = _Evaluation(lean, environment, rebuilt.image, compiled)
    faults = ((name, evaluation.fault(rebuilt.constants[name])) for name in axioms)
    return [
        found(fault.word, name, f"The proof rests on the axiom {{}}, {fault.says}.")
        for name, fault in faults
        if fault is not None
    ]


def free_name(lean: Lean, environment: int, image: ModuleImage) -> int:
    """Return a name that no constant of an environment has: a replay skips a theorem that it knows."""
    find = lean.function(table.FIND)
    names = (image.name(("farm", f"evaluated_{number}")) for number in itertools.count())
    return next(name for name in names if find(shared(environment), name) == NOTHING)


class _Fault(NamedTuple):
    """The fault of an axiom: the finding's word, and the end of its sentence."""

    word: Word
    says: str


_FALSE = _Fault(Word.AXIOM, "whose term evaluates to false")
_UNKNOWN = _Fault(Word.AXIOM, "whose term Lean's kernel cannot evaluate")
_ENDED = _Fault(Word.AXIOM, "whose term ends the process that evaluates it")
_TIME = _Fault(Word.KERNEL_TIME, "whose term takes longer to evaluate than the line's limit")


class _Evaluation:
    """Evaluates terms of type `Bool`; the kernel checks theorems under a name that no constant has."""

    def __init__(self, lean: Lean, environment: int, image: ModuleImage, compiled: Compiled) -> None:
        self._lean, self._environment, self._image = lean, environment, image
        self._compiled = compiled
        self._one = image.list([image.successor(NOTHING)])
        self._bool = image.const(("Bool",))
        self._name = free_name(lean, environment, image)

    def fault(self, axiom: int) -> _Fault | None:
        """Return the fault of an axiom ``@Eq Bool e Bool.true``, None if `e` evaluates to `true`."""
        header = word_at(word_at(axiom, 0), 0)
        parameters, type_ = word_at(header, 1), word_at(header, 2)
        term = word_at(word_at(type_, 0), 1)
        value = self._compiled(term)
        if value is Value.ENDED and self._compiled(self._image.const(("Bool", "true"))) is not Value.TRUE:
            raise ChildProcessError("processes that evaluate terms end, whatever the term is")
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
        held = image.put(VALUES[ConstantKind.THEOREM], stated, proof, image.list([self._name]))
        names, infos = [self._name], [image.put(INFO[ConstantKind.THEOREM], held)]
        try:
            after = replayed(self._lean, names, infos, shared(self._environment))
            compared(self._lean, names, infos, after)
        except KernelRefused:
            return False
        return True
