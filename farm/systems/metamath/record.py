"""Systems step: the record of Metamath."""

from __future__ import annotations

from farm.systems.metamath.assembly import assemble, state
from farm.systems.metamath.benchmark_files import block
from farm.systems.system import BenchmarkFiles, System, challenge_itself, only_image

METAMATH = System(
    name="Metamath",
    assemble=assemble,
    challenge=state,
    unproved=challenge_itself,
    image=only_image,
    minif2f=BenchmarkFiles(
        folder="metamath", suffix=".mm", statement=block, counts={"test": 244, "valid": 244}
    ),
)
