"""Image step, the way to elaborate: the best one that the toolchain's binding allows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from farm_workers.binding.lean import Lean
from farm_workers.binding.objects import LeanError
from farm_workers.binding.signatures import Description
from farm_workers.binding.table import INITIALIZERS_RUN, Ability
from farm_workers.images.commands import Commands
from farm_workers.images.frontend import NEEDED, Frontend, sysroot
from farm_workers.images.snapshots import Snapshots

#: The ways to elaborate, the best one first.
WAYS: dict[Ability, type[Snapshots] | type[Commands]] = {
    Ability.SNAPSHOTS: Snapshots,
    Ability.COMMANDS: Commands,
}


def loaded(
    library: Path,
    options: Sequence[str],
    description: Description | None = None,
    ways: Sequence[Ability] = tuple(WAYS),
) -> Frontend:
    """Load Lean with options of its command line, to elaborate in the first of these ways that it has.

    Raises LeanError for an unknown option, and for a Lean that has none of the ways.
    """
    lean = Lean(str(library), NEEDED, description, sysroot(library))
    lean.runtime(INITIALIZERS_RUN)()
    for way in ways:
        if lean.lacks(way) is None:
            return WAYS[way](lean, options)
    raise LeanError(f"this Lean does not fit the farm: {lean.lacks(ways[-1])}")
