"""Systems step: the record of Lean."""

from __future__ import annotations

from farm.assembly.challenge import Challenge, challenge_to
from farm.assembly.images import image_of
from farm.assembly.program import assemble
from farm.systems.system import System, challenge_itself


def challenge(header: str, context: str, statement: str) -> Challenge | None:
    """Return the challenge of a statement, None without one."""
    return challenge_to(header, statement, context)


LEAN = System(
    name="Lean",
    assemble=assemble,
    challenge=challenge,
    unproved=challenge_itself,
    image=image_of,
    minif2f=None,  # `farm.datasets.layouts` reads its copies, which have many forms
)
