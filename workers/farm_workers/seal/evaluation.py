"""Seal step, evaluation: whether the terms that compiled code is said to have computed are `true`.

Nothing about an axiom ``t._native.native_decide.ax_1 : b = true`` shows where it comes from: written by hand,
it is what `native_decide` leaves. So Lean's kernel evaluates the term once more: it is given a theorem with
the statement of the axiom and `rfl` for a proof. That rests on no code of the submission, neither on its
`implemented_by` and `extern` nor on what its recursive functions are compiled to.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from farm_workers.audit.declarations import CONSTANT, VALUES, Kind
from farm_workers.audit.findings import Finding, Word, found
from farm_workers.audit.olean import Name
from farm_workers.replay.lean import NOTHING, Lean, shared
from farm_workers.replay.replay import Refused, compared, replayed
from farm_workers.seal.image import ModuleImage
from farm_workers.seal.memory import WORDS
from farm_workers.seal.rebuild import INFO, Rebuilt


def evaluated(lean: Lean, environment: int, rebuilt: Rebuilt, axioms: Sequence[Name]) -> list[Finding]:
    """Return what speaks against axioms of a module, in an environment that has accepted its constants.

    Raises LeanError where the kernel gave up on a term.
    """
    free = _free(lean, environment, rebuilt.image)
    sentence = "The proof rests on the axiom {}, whose term does not evaluate to true in Lean's kernel."
    return [
        found(Word.AXIOM, name, sentence)
        for name in axioms
        if not _is_true(lean, environment, _theorem(rebuilt.image, free, rebuilt.constants[name]))
    ]


def _free(lean: Lean, environment: int, image: ModuleImage) -> int:
    """Return a name that the environment does not declare: a replay passes over a theorem that is there."""
    find = lean.function("lean_environment_find", 2)
    names = (image.name(("farm", f"evaluated_{number}")) for number in itertools.count())
    return next(name for name in names if find(shared(environment), name) == NOTHING)


def _is_true(lean: Lean, environment: int, theorem: tuple[int, int]) -> bool:
    """Return whether the kernel accepts a theorem, a name and an info."""
    names, infos = [theorem[0]], [theorem[1]]
    try:
        compared(lean, names, infos, replayed(lean, names, infos, shared(environment)))
    except Refused:
        return False
    return True


def _theorem(image: ModuleImage, name: int, axiom: int) -> tuple[int, int]:
    """Put a theorem that states what an axiom does, proved by `rfl`; return its name and its info."""
    header = WORDS[(WORDS[(axiom >> 3) + 1] >> 3) + 1] >> 3
    parameters, type_ = WORDS[header + 2], WORDS[header + 3]
    one = image.list([image.successor(NOTHING)])
    proof = image.app(image.const(("Eq", "refl"), one), image.const(("Bool",)), image.const(("Bool", "true")))
    value = image.put(
        VALUES[Kind.THEOREM], image.put(CONSTANT, name, parameters, type_), proof, image.list([name])
    )
    return name, image.put(INFO[Kind.THEOREM], value)
