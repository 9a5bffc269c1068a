"""Systems step: the record of HOL Light."""

from __future__ import annotations

from collections.abc import Mapping

from farm.assembly.faults import Unstated
from farm.systems.hol_light.assembly import assemble, challenge, unproved
from farm.systems.system import BenchmarkFiles, System, only_image


def term(text: str, _name: str) -> tuple[str, Mapping[str, object]]:
    """Return the one term of a file with its backquotes, and no further fields; raises Unstated.

    The text around it is not needed, and is no valid OCaml if a name has dashes.
    """
    parts = text.split("`")
    if len(parts) != 3:
        raise Unstated(f"holds {len(parts) // 2} terms between backquotes instead of one")
    inside = parts[1].strip()
    if not inside:
        raise Unstated("its term is empty")
    return f"`{inside}`", {}


HOL_LIGHT = System(
    name="HOL Light",
    assemble=assemble,
    challenge=challenge,
    unproved=unproved,
    image=only_image,
    minif2f=BenchmarkFiles(
        folder="hollight", suffix=".ml", statement=term, counts={"test": 163, "valid": 163}
    ),
)
