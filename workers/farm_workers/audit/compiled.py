"""Audit step, compiled code: finds the axioms by which a proof trusts the result of compiled code.

Lean makes one for each use of `native_decide`, `decide +native` or `bv_decide` (``nativeEqTrue`` in
``src/Lean/Meta/Native.lean``, read at and run with 4.35.0): its name is the theorem's with ``_native``, the
tactic and ``ax_1_1`` behind it, and it states of some closed term of type `Bool` that it is `true`. Lean does
not record that it made the axiom itself: one that is written by hand has the same name and the same form. So
the form only selects the terms to evaluate again (`farm_workers.seal.evaluation`).
"""

from __future__ import annotations

from farm_workers.audit.declarations import Constant, ConstantKind, Safety
from farm_workers.audit.olean import Olean
from farm_workers.audit.terms import applied, is_constant

_MARK = "_native"
_EQ, _BOOL, _TRUE = ("Eq",), ("Bool",), ("Bool", "true")


def is_compiled(constant: Constant, olean: Olean) -> bool:
    """Return whether a constant is such an axiom, by its name and by its shape ``@Eq Bool e Bool.true``."""
    if (
        constant.kind is not ConstantKind.AXIOM
        or constant.safety is not Safety.SAFE
        or _MARK not in constant.name
    ):
        return False
    function, arguments = applied(olean, constant.type, 3)
    return (
        len(arguments) == 3
        and is_constant(olean, function, _EQ)
        and is_constant(olean, arguments[2], _BOOL)
        and is_constant(olean, arguments[0], _TRUE)
    )
