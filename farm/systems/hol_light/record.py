"""Systems step: the record of HOL Light."""

from __future__ import annotations

from farm.systems.hol_light.assembly import assemble, challenge, unproved
from farm.systems.hol_light.benchmark_files import term
from farm.systems.system import BenchmarkFiles, System, only_image

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
