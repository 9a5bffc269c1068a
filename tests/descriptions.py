"""Descriptions of the embedded Lean that lack newer functions, for tests of the older ones."""

from __future__ import annotations

from dataclasses import replace

from farm_workers.binding import table
from farm_workers.binding.signatures import Description, Parameter, Shape

_WORLD = Parameter("", Shape.WORLD)


def without(description: Description, *names: str) -> Description:
    """Return a description that lacks functions and structures."""
    return replace(
        description,
        functions={name: each for name, each in description.functions.items() if name not in names},
        structures={name: each for name, each in description.structures.items() if name not in names},
    )


def with_older_kernel(description: Description) -> Description:
    """Return a description with the functions of a release before 4.34, which this Lean still has."""
    older = without(description, table.REPLAY.name, table.SAME_CONSTANT.name)
    functions = {
        table.REPLAY_VIEW.name: (Parameter("newConstants"), Parameter("env"), _WORLD),
        table.VIEW_OF_KERNEL.name: (Parameter("env"),),
    }
    return replace(older, functions={**older.functions, **functions})
