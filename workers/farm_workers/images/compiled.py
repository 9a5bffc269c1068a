"""Image step, compiled code: evaluates terms of type `Bool` by Lean's compiler, in the header's environment.

`Lean.Meta.nativeEqTrue` compiles a term and runs it, as the tactic `native_decide` does
(``src/Lean/Meta/Native.lean`` of Lean 4.35, run with that version). A seal's process calls it again: no code
of the submission has run there, and in the header's environment a term can only refer to imported constants.
"""

from __future__ import annotations

import ctypes

from farm_workers.images.frontend import Callback, Frontend
from farm_workers.replay.lean import NOTHING, LeanError, field, shared, tag

#: Parameters of `nativeEqTrue`: name, term, place; context and state of `MetaM` and of `CoreM`; the world.
_PARAMETERS = 8
_CLOSURE_TAG, _CLOSURE_BYTES = 245, 24
_SUCCESS = 0  # the constructor `NativeEqTrueResult.success`; `notTrue` has no fields


class Compiler:
    """Evaluates terms in the context of the last program that the frontend elaborated."""

    def __init__(self, frontend: Frontend) -> None:
        """Keep a `Lean.Elab.ContextInfo` of that program. Raises LeanError if Lean kept none."""
        self._lean = frontend
        found: list[int] = []

        def visit(context: int, _info: int, accumulated: int) -> int:
            if not found:
                found.append(shared(context))
            return accumulated

        callback = Callback(visit)
        for tree in (field(each, 2) for each in frontend.snapshots()):
            if tree != NOTHING:
                fold = "l_Lean_Elab_InfoTree_foldInfo___redArg"
                frontend.call(fold, frontend.closure(callback), NOTHING, shared(field(tree, 0)))
        if not found:
            raise LeanError("Lean kept no context of a program")
        self._context = found[0]

    def evaluate(self, term: int) -> bool | None:
        """Return whether a closed term of type `Bool` evaluates to true; None if it cannot be compiled."""
        lean = self._lean
        lean.call("lean_io_set_heartbeats", NOTHING, NOTHING)  # 0: earlier heartbeats do not count
        name = lean.call("lean_name_mk_string", NOTHING, lean.string("farm"))
        action = self._action("l_Lean_Meta_nativeEqTrue___boxed", name, shared(term), NOTHING)
        variables = lean.constant("l_Lean_LocalContext_empty")
        run = "l_Lean_Elab_ContextInfo_runMetaM___redArg___boxed"
        try:
            result = lean.result(lean.call(run, shared(self._context), variables, action, NOTHING))
        except LeanError:
            return None
        return not result & 1 and tag(result) == _SUCCESS

    def _action(self, function: str, *given: int) -> int:
        """Return a closure of a function of Lean's with its first arguments."""
        size = _CLOSURE_BYTES + 8 * len(given)
        place = self._lean.call("lean_alloc_object", size)
        address = ctypes.cast(self._lean.function(function, _PARAMETERS), ctypes.c_void_p).value or 0  # type: ignore[arg-type]
        words = [_CLOSURE_TAG << 56 | size << 32 | 1, address, len(given) << 16 | _PARAMETERS, *given]
        for number, word in enumerate(words):
            ctypes.c_uint64.from_address(place + 8 * number).value = word
        return place
