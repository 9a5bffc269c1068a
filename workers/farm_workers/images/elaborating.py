"""Image step, the way to elaborate: the best one that the toolchain's binding allows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from farm_workers.binding.description import decoded
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


def described(path: str) -> Description | None:
    """Return the description in a file, None for the farm's own. Raises NotDescribed and OSError."""
    return decoded(Path(path).read_text(encoding="utf-8")) if path else None


def ways(name: str) -> list[Ability]:
    """Return the ways to try: that of a name, or all of them."""
    return [Ability(name)] if name else list(WAYS)


def loaded(
    library: Path,
    options: Sequence[str],
    description: Description | None = None,
    among: Sequence[Ability] = tuple(WAYS),
) -> Frontend:
    """Load Lean with options of its command line, to elaborate in the first of these ways that it has.

    Raises LeanError for an unknown option, and for a Lean that has none of the ways.
    """
    lean = Lean(str(library), NEEDED, description, sysroot(library))
    lean.runtime(INITIALIZERS_RUN)()
    for way in among:
        if lean.lacks(way) is None:
            return WAYS[way](lean, options)
    raise LeanError(f"this Lean does not fit the farm: {lean.lacks(among[-1])}")
