"""Image step, terms in print: prints a term as Lean does, in the place of a goal."""

from __future__ import annotations

from farm_workers.binding import table
from farm_workers.binding.lean import Callback, Lean
from farm_workers.binding.objects import FALSE, NOTHING, LeanError, boxed, shared, text
from farm_workers.images.goals import COLUMNS

#: The most bytes of a printed term: a longer one is not printed.
_MOST_BYTES = 8192
#: The mark before the type of a goal.
_GOAL = "⊢ "
#: The text of a goal that Lean fails to print.
_FAILED = "⊢ failed to pretty print expression (use 'set_option pp.rawOnError true' for raw representation)"
_ZERO = boxed(0)


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
    return printed(lean, found[0], lean.get(table.COMMAND_CONTEXT, found[0]), type_) if found else None


def printed(lean: Lean, context: int, here: int, term: int) -> str | None:
    """Return a term as Lean prints it, in the place of a goal's type, whether it is a type or not.

    `here` is the `CommandContextInfo` that takes the place of the context's own. None for a term that Lean
    cannot print, or whose text is too long.
    """
    lean.runtime(table.SET_HEARTBEATS)(_ZERO, _ZERO)
    name = lean.name("_farm_term")
    words = shared(lean.constant(table.NO_VARIABLES)), lean.array([]), shared(term), FALSE, _ZERO
    holes = shared(lean.get(table.CONTEXT_HOLES, here))
    own = lean.copy(here)
    lean.put(table.CONTEXT_HOLES, own, lean.call(table.ADD_HOLE, holes, shared(name), NOTHING, *words))
    whole = lean.copy(context)
    lean.put(table.COMMAND_CONTEXT, whole, own)
    try:
        made = lean.call(table.PRINT_GOALS, whole, lean.list([name]))
    except LeanError:
        return None
    found = text(lean.call(table.PRETTY, made, COLUMNS, _ZERO, _ZERO), _MOST_BYTES + 1).strip()
    if len(found.encode()) > _MOST_BYTES or not found.startswith(_GOAL):
        return None
    return None if found == _FAILED else found.removeprefix(_GOAL)
