"""Assembly step, kinds: selects the functions that assemble the lines of a proof system."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from farm.assembly import hol_light, metamath, program
from farm.assembly.challenge import Challenge, challenge_to
from farm.assembly.foreign import refuse_foreign
from farm.assembly.images import image_of
from farm.assembly.program import AssemblyOptions, Program
from farm.kinds import Kind
from farm.manifest.entry import Entry


def _the_only_one(_entry: Entry, _program: Program) -> int:
    return 0


def _itself(challenge: Challenge) -> str:
    return challenge.program


class Assembling(NamedTuple):
    """The functions that assemble the lines of one proof system.

    `assemble` returns the program of a line. `challenge` returns the challenge of a header, context and
    statement, None for a blank statement. Both raise StatementFault for a faulty line. `image` returns the
    number of the image that can fork for a program, 0 if the environment has only one. `unproved` returns a
    program that states a challenge and proves nothing.
    """

    assemble: Callable[[Entry, AssemblyOptions], Program]
    challenge: Callable[[str, str, str], Challenge | None]
    image: Callable[[Entry, Program], int] = _the_only_one
    unproved: Callable[[Challenge], str] = _itself


def assembling(kind: str) -> Assembling:
    """Return the functions that assemble lines of a kind; raises ValueError for an unknown kind."""
    return _ASSEMBLING[Kind(kind)]


def _stated_in_lean(header: str, context: str, statement: str) -> Challenge | None:
    refuse_foreign(header=header, formal_statement=statement)
    return challenge_to(header, statement, context)


_ASSEMBLING: Mapping[Kind, Assembling] = MappingProxyType(
    {
        Kind.LEAN: Assembling(assemble=program.assemble, challenge=_stated_in_lean, image=image_of),
        Kind.METAMATH: Assembling(assemble=metamath.assemble, challenge=metamath.state),
        Kind.HOL_LIGHT: Assembling(
            assemble=hol_light.assemble, challenge=hol_light.challenge, unproved=hol_light.unproved
        ),
    }
)
