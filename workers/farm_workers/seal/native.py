"""Seal step, compiled code: replaces uses of `Lean.ofReduceBool` by axioms in proofs that trust the compiler.

Lean's `native_decide` runs compiled code and states the result, since Lean 4.29 or so as an axiom of its own
for each use: ``t._native.native_decide.ax_1 : b = true``. Earlier releases put `Lean.ofReduceBool c b h` into
the term, and a kernel that checks `h` runs the compiled code of `c`. The seal's kernel never runs it: if the
line trusts the compiler, the seal replaces such a term by an axiom of the newer form, ``c = b``, without `h`.
"""

from __future__ import annotations

from dataclasses import dataclass

from farm_workers.audit.kernel import OF_REDUCE_BOOL
from farm_workers.audit.olean import MalformedOlean, Name, Olean
from farm_workers.audit.terms import CONST, LEVEL_PARAMETER, applied, is_constant

#: The suffix that turns a constant's name into the name of the axiom about its value.
_BEHIND: Name = ("_native", "of_reduce_bool", "ax")
_TRUE: Name = ("Bool", "true")


@dataclass(frozen=True, kw_only=True, slots=True)
class Axiom:
    """An axiom that a compiled constant is `true`; `levels` is a ref into the submission's file."""

    name: Name
    constant: Name
    levels: int
    parameters: tuple[Name, ...]


class Trusted:
    """Finds uses of `Lean.ofReduceBool` in a file; `axioms` are their replacements by name."""

    def __init__(self, olean: Olean) -> None:
        self._olean = olean
        self.axioms: dict[Name, Axiom] = {}

    def axiom(self, place: int) -> Axiom | None:
        """Return the axiom for an application, None if it does not apply `Lean.ofReduceBool`."""
        olean = self._olean
        function, arguments = applied(olean, place, 3)
        if len(arguments) < 3 or not is_constant(olean, function, OF_REDUCE_BOOL):
            return None
        _, value, constant = arguments
        if not is_constant(olean, value, _TRUE):
            return None
        if olean.words[constant] != CONST:
            return None
        return self._of(olean.name(olean.child(constant, 0)), olean.child(constant, 1))

    def _of(self, constant: Name, levels: int) -> Axiom | None:
        """Return the axiom for a constant, if its levels are different parameters and nothing else."""
        parameters = tuple(self._parameter(each) for each in self._olean.list(levels, "levels"))
        name = (*constant, *_BEHIND)
        if len(set(parameters)) < len(parameters) or () in parameters:
            return None
        new = Axiom(name=name, constant=constant, levels=levels, parameters=parameters)
        old = self.axioms.setdefault(name, new)
        return old if old.parameters == parameters else None

    def _parameter(self, ref: int) -> Name:
        olean = self._olean
        if ref < 0 or olean.words[ref] != LEVEL_PARAMETER:
            return ()
        return olean.name(olean.child(ref, 0))


def require_free(names: dict[Name, int], axioms: dict[Name, Axiom]) -> None:
    """Raise `MalformedOlean` if a module declares a constant with the name of one of these axioms."""
    if not names.keys().isdisjoint(axioms):
        raise MalformedOlean("a constant has the name of an axiom about compiled code")
