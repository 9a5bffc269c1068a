"""Image step, types: prints a type as Lean does, in the place of a goal."""

from __future__ import annotations

from farm_workers.binding import table
from farm_workers.binding.lean import Callback, Lean
from farm_workers.binding.objects import FALSE, NOTHING, LeanError, boxed, shared, text
from farm_workers.images.goals import COLUMNS

_ZERO = boxed(0)
_GOAL, _MOST_BYTES = "⊢ ", 16_384


def printed_type(lean: Lean, tree: int, type_: int) -> str | None:
    """Return a type as Lean prints it where the tree of a command begins; None where it cannot."""
    found: list[int] = []

    def visit(context: int, _info: int, result: int) -> int:
        if not found:
            found.append(shared(context))
        return result

    if tree != NOTHING:
        seen = Callback(visit)
        lean.call(table.FOLD_TREE, lean.closure(seen), NOTHING, shared(tree))
    return _printed(lean, found[0], type_) if found else None


def _printed(lean: Lean, context: int, type_: int) -> str | None:
    name, own = lean.name("_farm_type"), lean.copy(lean.get(table.COMMAND_CONTEXT, context))
    words = shared(lean.constant(table.NO_VARIABLES)), lean.array([]), shared(type_), FALSE, _ZERO
    holes = shared(lean.get(table.CONTEXT_HOLES, own))
    lean.put(table.CONTEXT_HOLES, own, lean.call(table.ADD_HOLE, holes, shared(name), NOTHING, *words))
    whole = lean.copy(context)
    lean.put(table.COMMAND_CONTEXT, whole, own)
    try:
        made = lean.call(table.PRINT_GOALS, whole, lean.list([name]))
    except LeanError:
        return None
    said = text(lean.call(table.PRETTY, made, COLUMNS, _ZERO, _ZERO), _MOST_BYTES).strip()
    return said.removeprefix(_GOAL) if said.startswith(_GOAL) else None
